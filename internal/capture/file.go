package capture

import (
	"bytes"
	"io"
	"io/fs"
	"path"
	"time"
)

// info is an entry as a file's description.
type info struct {
	*Entry
	name string
}

func (i info) Name() string { return i.name }

func (i info) Size() int64 {
	if i.Kind == File {
		return int64(len(i.Text))
	}
	return 0
}

// Mode has no permissions where they were not asked for.
func (i info) Mode() fs.FileMode {
	if i.Perm == nil {
		return i.fileType()
	}
	return i.fileType() | fs.FileMode(i.Perm.Mode)&fs.ModePerm
}

func (i info) ModTime() time.Time { return i.Modified }
func (i info) IsDir() bool        { return i.Kind == Dir }

// Sys is the *Entry.
func (i info) Sys() any { return i.Entry }

// fileType is the type of an entry as package fs spells it.
func (e *Entry) fileType() fs.FileMode {
	switch e.Kind {
	case Dir:
		return fs.ModeDir
	case File, Lock:
		return 0
	case Symlink:
		return fs.ModeSymlink
	case Node:
		if e.Block {
			return fs.ModeDevice
		}
		return fs.ModeDevice | fs.ModeCharDevice
	case Socket:
		return fs.ModeSocket
	case FIFO:
		return fs.ModeNamedPipe
	case Other, Absent, Unknown:
	}
	return fs.ModeIrregular
}

// dirEntry is a name in a directory, which may be all that is known.
type dirEntry struct {
	c  *Capture
	at string
}

func (d dirEntry) Name() string { return path.Base(d.at) }

func (d dirEntry) Type() fs.FileMode {
	e, err := d.c.known(d.at)
	if err != nil {
		return fs.ModeIrregular
	}
	return e.fileType()
}

func (d dirEntry) IsDir() bool { return d.Type().IsDir() }

func (d dirEntry) Info() (fs.FileInfo, error) {
	e, err := d.c.known(d.at)
	if err != nil {
		return nil, &fs.PathError{Op: "lstat", Path: d.Name(), Err: err}
	}
	if e.Kind == Unknown {
		return nil, e.Failure.at(d.Name())
	}
	return info{e, d.Name()}, nil
}

// openFile is an open file, or directory.
type openFile struct {
	fs   FS
	name string
	info info
	text bytes.Reader
}

func (f *openFile) Stat() (fs.FileInfo, error)               { return f.info, nil }
func (f *openFile) Read(b []byte) (int, error)               { return f.text.Read(b) }
func (f *openFile) Close() error                             { return nil }
func (f *openFile) ReadAt(b []byte, at int64) (int, error)   { return f.text.ReadAt(b, at) }
func (f *openFile) Seek(at int64, whence int) (int64, error) { return f.text.Seek(at, whence) }

type openDir struct {
	*openFile
	read int // entries that were handed out
}

// Read of a directory is an error, as everywhere.
func (d *openDir) Read([]byte) (int, error) { return 0, d.unreadable() }

func (d *openDir) unreadable() error {
	_, err := d.info.read(d.name)
	return err
}

// ReadDir implements fs.ReadDirFile.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	all, err := d.fs.ReadDir(d.name)
	if err != nil {
		return nil, err
	}
	all = all[min(d.read, len(all)):]
	if n <= 0 {
		d.read += len(all)
		return all, nil
	}
	if len(all) == 0 {
		return nil, io.EOF
	}
	all = all[:min(n, len(all))]
	d.read += len(all)
	return all, nil
}
