package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// member is a file in an archive.
type member struct {
	name    string
	mode    int64
	content []byte
}

// pack makes the archive that the name of its file asks for. Order, owners and times are fixed.
func pack(name string, members []member, at time.Time) ([]byte, error) {
	var buf bytes.Buffer
	var err error
	if strings.HasSuffix(name, ".zip") {
		err = zipped(&buf, members, at)
	} else {
		err = tarred(&buf, members, at)
	}
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", name, err)
	}
	return buf.Bytes(), nil
}

func tarred(buf *bytes.Buffer, members []member, at time.Time) error {
	compressed, err := gzip.NewWriterLevel(buf, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(compressed)
	for _, m := range members {
		header := tar.Header{
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
			Name: m.name, Mode: m.mode, Size: int64(len(m.content)), ModTime: at,
		}
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := w.Write(m.content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

func zipped(buf *bytes.Buffer, members []member, at time.Time) error {
	w := zip.NewWriter(buf)
	for _, m := range members {
		header := zip.FileHeader{Name: m.name, Method: zip.Deflate, Modified: at}
		header.SetMode(fs.FileMode(m.mode))
		file, err := w.CreateHeader(&header)
		if err != nil {
			return err
		}
		if _, err := file.Write(m.content); err != nil {
			return err
		}
	}
	return w.Close()
}
