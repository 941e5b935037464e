package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// merge packs the images of several archives into one, for sites without a registry. What they share,
// such as the health probe, is in it once.
func merge(file string, archives []string, at time.Time) error {
	dir, err := os.MkdirTemp("", "images-*")
	if err != nil {
		return fmt.Errorf("make a place for the layout: %w", err)
	}
	defer os.RemoveAll(dir)
	var all v1.IndexManifest
	for _, archive := range archives {
		if err := unpack(archive, dir); err != nil {
			return fmt.Errorf("unpack %s: %w", archive, err)
		}
		one, err := readIndex(dir)
		if err != nil {
			return fmt.Errorf("read the index of %s: %w", archive, err)
		}
		one.Manifests = slices.Concat(all.Manifests, one.Manifests)
		all = one
	}
	index, err := json.MarshalIndent(all, "", "   ")
	if err != nil {
		return fmt.Errorf("encode the index of all images: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "index.json"), index, 0o600); err != nil {
		return fmt.Errorf("write the index of all images: %w", err)
	}
	return pack(file, dir, at)
}

func readIndex(dir string) (v1.IndexManifest, error) {
	var index v1.IndexManifest
	content, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		return index, err
	}
	return index, json.Unmarshal(content, &index)
}

// unpack writes the files of an archive over those of the archives before it. Blobs have their
// content as their name, so only the index is another.
func unpack(archive, dir string) error {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(in); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := unpackEntry(root, header, r); err != nil {
			return fmt.Errorf("unpack %s: %w", header.Name, err)
		}
	}
}

func unpackEntry(root *os.Root, header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeDir {
		err := root.Mkdir(strings.TrimSuffix(header.Name, "/"), 0o755)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	file, err := root.Create(header.Name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, content); err != nil {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}
