// Package sysfs reads the kernel's attribute files and links as an fs.FS, with as
// few system calls as they need.
//
// The standard library's os.DirFS does the same and is what the DRA attribute
// helpers use, but it costs eight system calls an attribute: it asks for the
// file's size (which sysfs states wrongly), offers the file to the network poller
// (which kernfs accepts) and reads until end of file. A node with 2,048 functions
// has 30,000 attributes, so this one opens, reads once and closes.
package sysfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"

	"golang.org/x/sys/unix"
)

// pageSize bounds an attribute: sysfs_emit writes at most one page
// (fs/sysfs/file.c), so a read of that size returns all of it.
const pageSize = 4096

// FS is a directory tree read through a directory handle. It implements
// fs.ReadLinkFS, fs.ReadFileFS and fs.ReadDirFS. Paths are resolved by the kernel,
// which follows sysfs's relative links as in a mounted sysfs. It is safe for
// concurrent use.
type FS struct {
	dir     *os.File
	buffers sync.Pool
}

var _ interface {
	fs.ReadLinkFS
	fs.ReadFileFS
	fs.ReadDirFS
} = (*FS)(nil)

// Open opens the tree below dir, for example /sys.
func Open(dir string) (*FS, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err // a *PathError, which names the operation and the path
	}
	return &FS{dir: f, buffers: sync.Pool{New: func() any { return new([pageSize]byte) }}}, nil
}

// Close releases the directory handle.
func (f *FS) Close() error { return f.dir.Close() }

// Open implements fs.FS.
func (f *FS) Open(name string) (fs.File, error) {
	fd, err := f.open(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	// The entries that the file lists are looked up by its name: it must be the whole.
	return os.NewFile(uintptr(fd), f.dir.Name()+"/"+name), nil
}

// ReadFile implements fs.ReadFileFS. It returns the first page of the file, which
// for a sysfs attribute is all of it.
func (f *FS) ReadFile(name string) ([]byte, error) {
	fd, err := f.open(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd) // read-only: nothing to lose
	buf := f.buffers.Get().(*[pageSize]byte)
	defer f.buffers.Put(buf)
	n, err := again(func() (int, error) { return unix.Read(fd, buf[:]) })
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return append(make([]byte, 0, n), buf[:n]...), nil
}

// ReadLink implements fs.ReadLinkFS.
func (f *FS) ReadLink(name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	buf := f.buffers.Get().(*[pageSize]byte)
	defer f.buffers.Put(buf)
	n, err := again(func() (int, error) { return unix.Readlinkat(int(f.dir.Fd()), name, buf[:]) })
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return string(buf[:n]), nil
}

// Lstat implements fs.ReadLinkFS.
func (f *FS) Lstat(name string) (fs.FileInfo, error) {
	fd, err := f.open(name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), path.Base(name))
	defer file.Close()
	return file.Stat()
}

func (f *FS) open(name string, flags int) (int, error) {
	if !fs.ValidPath(name) {
		return -1, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	fd, err := again(func() (int, error) {
		return unix.Openat(int(f.dir.Fd()), name, flags|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

// again repeats a system call that a signal interrupted. The Go runtime preempts
// goroutines with signals, so this is not rare.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
