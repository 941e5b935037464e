package capture

import (
	"errors"
	"io/fs"
	"path"
	"syscall"
)

// FS is a tree of a capture. It implements fs.ReadLinkFS, fs.ReadFileFS, fs.ReadDirFS and
// fs.StatFS, and gives the errors that were given when it was captured.
type FS struct {
	c    *Capture
	root string
}

var _ interface {
	fs.ReadLinkFS
	fs.ReadFileFS
	fs.ReadDirFS
	fs.StatFS
} = FS{}

// Sys is what is below /sys. Links lead where they do on the host.
func (c *Capture) Sys() FS { return FS{c, "/sys"} }

// FS is all of it: the name of /var/run/cdi/x.json is var/run/cdi/x.json.
func (c *Capture) FS() FS { return FS{c, "/"} }

func (f FS) find(op, name string, follow bool) (*Entry, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	_, e, err := f.c.find(op, path.Join(f.root, name), follow)
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		at.Path = name
	}
	return e, err
}

// ReadFile implements fs.ReadFileFS.
func (f FS) ReadFile(name string) ([]byte, error) {
	e, err := f.find("open", name, true)
	if err != nil {
		return nil, err
	}
	return e.read(name)
}

// ReadDir implements fs.ReadDirFS.
func (f FS) ReadDir(name string) ([]fs.DirEntry, error) {
	e, err := f.find("open", name, true)
	if err != nil {
		return nil, err
	}
	names, err := e.list(name)
	if err != nil {
		return nil, err
	}
	all := make([]fs.DirEntry, 0, len(names))
	for _, n := range names {
		all = append(all, dirEntry{f.c, path.Join(e.Path, n)})
	}
	return all, nil
}

// ReadLink implements fs.ReadLinkFS.
func (f FS) ReadLink(name string) (string, error) {
	e, err := f.find("readlink", name, false)
	switch {
	case err != nil:
		return "", err
	case e.Failure != nil && e.Failure.Op == "readlink":
		return "", e.Failure.at(name)
	case e.Kind != Symlink:
		return "", &fs.PathError{Op: "readlink", Path: name, Err: syscall.EINVAL}
	case e.Unread:
		return "", &fs.PathError{Op: "readlink", Path: name, Err: ErrNotCaptured}
	}
	return e.Target, nil
}

// Lstat implements fs.ReadLinkFS.
func (f FS) Lstat(name string) (fs.FileInfo, error) { return f.stat("lstat", name, false) }

// Stat implements fs.StatFS.
func (f FS) Stat(name string) (fs.FileInfo, error) { return f.stat("stat", name, true) }

func (f FS) stat(op, name string, follow bool) (fs.FileInfo, error) {
	e, err := f.find(op, name, follow)
	if err != nil {
		return nil, err
	}
	return info{e, path.Base(name)}, nil
}

// Open implements fs.FS.
func (f FS) Open(name string) (fs.File, error) {
	e, err := f.find("open", name, true)
	if err != nil {
		return nil, err
	}
	file := &openFile{fs: f, name: name, info: info{e, path.Base(name)}}
	if e.Kind == Dir {
		return &openDir{openFile: file}, nil
	}
	text, err := e.read(name)
	if err != nil {
		return nil, err
	}
	file.text.Reset(text)
	return file, nil
}
