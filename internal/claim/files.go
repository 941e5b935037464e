package claim

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/wholefile"
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
	return wholefile.SyncDir(filepath.Dir(dir))
}
