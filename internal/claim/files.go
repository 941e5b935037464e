package claim

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// maxSize bounds a record's file. A claim has 32 devices at most, with less than 1 KiB each.
const maxSize = 1 << 20

var (
	errKind = errors.New("not a regular file")
	errSize = fmt.Errorf("larger than %d bytes", maxSize)
)

// read reads a file of the size of a record. It follows no link and waits for no writer of a
// FIFO, and opens no device node, since that alone can do something. Of a larger file, what
// it has read is returned with errSize.
func read(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", info.Mode(), errKind)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil { // it may have been replaced
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", info.Mode(), errKind)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(data) > maxSize {
		return data, errSize
	}
	return data, err
}

// write replaces a file. When it returns nil, the new one survives a power cut. After an error
// there is the old one or the new one, and it is whole.
func write(path string, data []byte) error {
	dir := filepath.Dir(path)
	// The temporary name is the file's with a dot before and a number behind it.
	pending, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return cause(err)
	}
	_, err = pending.Write(data)
	if err == nil {
		err = pending.CloseAtomicallyReplace() // syncs the file before it renames
	}
	if err != nil {
		_ = pending.Cleanup() // what is left is swept under the next lock
		return cause(err)
	}
	return syncDir(dir)
}

// cause is an error without the name of the temporary file: that is another one each time,
// and would make each attempt look like another error.
func cause(err error) error {
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

// syncDir makes the names in a directory survive a power cut: a file's own sync is about its
// content.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// makeDir makes a directory that is this user's alone, with those above it.
func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		if err = makeDir(filepath.Dir(dir)); err == nil {
			err = os.Mkdir(dir, 0o700)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(dir))
}
