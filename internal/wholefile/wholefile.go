// Package wholefile writes files that are whole or not there: whoever reads one beside a write, or
// after a power cut, finds what was there before or what is there now.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Write replaces a file. When it returns nil, the new one survives a power cut. After an error
// there is the old one or the new one. What a process leaves that is killed in between has the
// file's name with a dot before and a number behind it.
func Write(path string, data []byte, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	pending, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithStaticPermissions(mode))
	if err != nil {
		return Cause(err)
	}
	_, err = pending.Write(data)
	if err == nil {
		err = pending.CloseAtomicallyReplace() // syncs the file before it renames
	}
	if err != nil {
		_ = pending.Cleanup() // its owner sweeps what is left
		return Cause(err)
	}
	return SyncDir(dir)
}

// Cause is an error without the name of the temporary file: that is another one each time,
// and would make each attempt look like another error.
func Cause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &link):
		return link.Err
	case errors.As(err, &path):
		return path.Err
	}
	return err
}

// SyncDir makes the names in a directory survive a power cut: a file's own sync is about its
// content.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
