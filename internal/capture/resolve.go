package capture

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
)

// maxHops is how many links Linux follows on one path (include/linux/namei.h, MAXSYMLINKS).
const maxHops = 40

// find walks to a path as the kernel does, following links on the way, and the last element
// too if follow says so. It returns where that is, and what is there. The error is about the
// path that was asked for.
func (c *Capture) find(op, name string, follow bool) (at string, e *Entry, err error) {
	fail := func(err error) (string, *Entry, error) {
		return at, nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	at = "/"
	hops := 0
	for rest := strings.Split(name, "/"); len(rest) > 0; {
		elem := rest[0]
		rest = rest[1:]
		switch elem {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, elem)
		e, err := c.step(at, elem)
		switch {
		case err != nil:
			return fail(err)
		case e.Kind == Unknown:
			return next, nil, e.Failure.at(name)
		case e.Kind == Symlink && (follow || len(rest) > 0):
			if hops++; hops > maxHops {
				return fail(syscall.ELOOP)
			}
			if e.Failure != nil {
				return next, nil, e.Failure.at(name)
			}
			if e.Unread {
				return fail(ErrNotCaptured)
			}
			if strings.HasPrefix(e.Target, "/") {
				at = "/"
			}
			rest = slices.Concat(strings.Split(e.Target, "/"), rest)
			continue
		case e.Kind != Dir && len(rest) > 0:
			return fail(syscall.ENOTDIR)
		}
		at = next
	}
	e, err = c.known(at)
	if err != nil {
		return fail(err)
	}
	return at, e, nil
}

// step is what is in a directory under a name.
func (c *Capture) step(dir, name string) (*Entry, error) {
	if e, err := c.known(path.Join(dir, name)); err == nil || errors.Is(err, syscall.ENOENT) {
		return e, err
	}
	if c.unlisted(path.Join(dir, name)) {
		return nil, syscall.ENOENT
	}
	return nil, ErrNotCaptured
}

// unlisted says whether a directory's names tell that there is no such file in it.
func (c *Capture) unlisted(at string) bool {
	in, ok := c.entries[path.Dir(at)]
	if !ok || in.Kind != Dir || in.Unread || in.Failure != nil {
		return false
	}
	_, listed := slices.BinarySearch(in.Names, path.Base(at))
	return !listed
}

// known is the entry of a path. A directory that is on the way to something is one too.
func (c *Capture) known(at string) (*Entry, error) {
	e, ok := c.entries[at]
	switch {
	case ok && e.Kind == Absent:
		return nil, syscall.ENOENT
	case ok:
		return e, nil
	case c.implied[at]:
		return &Entry{Path: at, Kind: Dir, Unread: true}, nil
	}
	return nil, ErrNotCaptured
}

// list are the names in a directory, as it was asked for.
func (e *Entry) list(name string) ([]string, error) {
	switch {
	case e.Kind != Dir:
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	case e.Failure != nil:
		return nil, e.Failure.at(name)
	case e.Unread:
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotCaptured}
	}
	return e.Names, nil
}

// read is the text of a file, as it was asked for.
func (e *Entry) read(name string) ([]byte, error) {
	switch {
	case e.Kind == Dir:
		return nil, &fs.PathError{Op: "read", Path: name, Err: syscall.EISDIR}
	case e.Failure != nil:
		return nil, e.Failure.at(name)
	case e.Kind != File && e.Kind != Lock || e.Unread:
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrNotCaptured}
	}
	return slices.Clone(e.Text), nil
}
