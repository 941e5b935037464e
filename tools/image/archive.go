package main

import (
	"archive/tar"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
)

// writeArchive writes an OCI image layout that holds the index under a name, packed into
// one tar file, and returns the digest of the index: what a registry calls the image. Referrers have
// no name. They stand beside the index, since what they are about is in themselves.
func writeArchive(file string, index v1.ImageIndex, referrers []contents, reference string, at time.Time) (v1.Hash, error) {
	digest, err := index.Digest()
	if err != nil {
		return v1.Hash{}, fmt.Errorf("compute the digest: %w", err)
	}
	dir, err := os.MkdirTemp("", "image-*")
	if err != nil {
		return v1.Hash{}, fmt.Errorf("make a place for the layout: %w", err)
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("write the empty layout: %w", err)
	}
	names := layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          reference, // read by ctr images import
		"org.opencontainers.image.ref.name": reference, // read by the others
	})
	if err := path.ReplaceIndex(index, match.Digests(digest), names); err != nil {
		return v1.Hash{}, fmt.Errorf("write the layout: %w", err)
	}
	for _, r := range referrers {
		if err := path.AppendImage(r.referrer); err != nil {
			return v1.Hash{}, fmt.Errorf("write the SBOM for %s into the layout: %w", r.arch, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return v1.Hash{}, fmt.Errorf("make the output directory: %w", err)
	}
	if err := pack(file, dir, at); err != nil {
		return v1.Hash{}, err
	}
	return digest, nil
}

// pack writes the files of a directory as a tar file. WalkDir goes in lexical order, and
// owner, mode and time are fixed, so the bytes depend on names and contents alone.
func pack(file, dir string, at time.Time) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("create the archive: %w", err)
	}
	defer func() {
		if closeErr := out.Close(); err == nil {
			err = closeErr
		}
	}()
	w := tar.NewWriter(out)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		header := tar.Header{Format: tar.FormatUSTAR, Name: filepath.ToSlash(name), ModTime: at}
		if entry.IsDir() {
			header.Typeflag, header.Mode, header.Name = tar.TypeDir, 0o755, header.Name+"/"
			return w.WriteHeader(&header)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		header.Typeflag, header.Mode, header.Size = tar.TypeReg, 0o644, int64(len(content))
		return writeEntry(w, &header, content)
	})
	if err != nil {
		return fmt.Errorf("pack the layout: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("finish the archive: %w", err)
	}
	return nil
}

func writeEntry(w *tar.Writer, header *tar.Header, content []byte) error {
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}
