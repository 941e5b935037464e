package sysfs

import (
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// ReadDir implements fs.ReadDirFS. Entries are sorted by name, as text: vfio10
// comes before vfio2.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	names, err := f.Names(name)
	if err != nil {
		return nil, err
	}
	entries := make([]fs.DirEntry, 0, len(names))
	for _, n := range names {
		entries = append(entries, dirEntry{fsys: f, dir: name, name: n})
	}
	return entries, nil
}

// Names lists the names in a directory, sorted as text.
func (f *FS) Names(name string) ([]string, error) {
	fd, err := f.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	names, err := Names(fd)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return names, nil
}

// listSize holds a few hundred entries, so that most directories take one call.
const listSize = 8 * pageSize

// Names lists the names in an open directory, sorted as text.
func Names(fd int) ([]string, error) {
	var names []string
	buf := make([]byte, listSize)
	for {
		n, err := again(func() (int, error) { return unix.ReadDirent(fd, buf) })
		if err != nil {
			return nil, os.NewSyscallError("getdents64", err)
		}
		if n == 0 {
			slices.Sort(names)
			return names, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// dirEntry looks its type up only when asked: sysfs is walked by name.
type dirEntry struct {
	fsys      *FS
	dir, name string
}

func (e dirEntry) Name() string { return e.name }

func (e dirEntry) Type() fs.FileMode {
	info, err := e.Info()
	if err != nil {
		return fs.ModeIrregular
	}
	return info.Mode().Type()
}

func (e dirEntry) IsDir() bool { return e.Type().IsDir() }

func (e dirEntry) Info() (fs.FileInfo, error) {
	if e.dir == "." {
		return e.fsys.Lstat(e.name)
	}
	return e.fsys.Lstat(e.dir + "/" + e.name)
}
