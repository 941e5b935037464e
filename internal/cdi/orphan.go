package cdi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kata-device-plugin/internal/wholefile"
)

// Orphan is the spec of a resource that its owner does not have any more.
type Orphan struct {
	Path string
	// Name is the resource's, as it is in the name of the file: without a slash.
	Name string
}

// Orphans finds the spec files of an owner in a directory that are none of its resources':
// what a configuration left behind that was replaced while nobody ran.
func Orphans(dir, owner string, resources []string) ([]Orphan, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for CDI specs of an earlier life: %w", err)
	}
	var all []Orphan
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, owner) || !strings.HasSuffix(name, ext) || !e.Type().IsRegular() ||
			slices.ContainsFunc(resources, func(r string) bool { return FileName(owner, r) == name }) {
			continue
		}
		middle := strings.TrimSuffix(strings.TrimPrefix(name, owner), ext)
		all = append(all, Orphan{Path: filepath.Join(dir, name), Name: middle})
	}
	return all, nil
}

// Remove removes the file. Only the holder of the resource's lock may call it.
func (o Orphan) Remove() error {
	if err := os.Remove(o.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove CDI spec: %w", err)
	}
	return wholefile.SyncDir(filepath.Dir(o.Path))
}
