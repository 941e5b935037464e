package collect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/capture"
)

// list notes the names in a directory, with its mode and owner, and returns them.
func (n *node) list(dir string) []string {
	e := capture.Entry{Path: dir, Kind: capture.Dir}
	info, err := os.Stat(n.real(dir))
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
	}
	var names []string
	if err == nil {
		e.Perm = perm(info)
		n.mark(&e, info)
		names, err = readNames(n.real(dir))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		n.c.Add(capture.Entry{Path: dir, Kind: capture.Absent})
		return nil
	case err != nil:
		e.Failure = capture.FailureOf("open", err)
		if info != nil && !info.IsDir() {
			e.Kind = capture.Unknown
		}
		n.c.Add(e)
		n.c.Miss(dir, n.told(err))
		return nil
	}
	if len(names) > maxNames {
		n.c.Miss(dir, fmt.Errorf("it has %d files: the first %d are here", len(names), maxNames))
		names = names[:maxNames]
	}
	e.Names = names
	n.c.Add(e)
	return names
}

// readNames are the names in a directory, sorted.
func readNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// told is an error with the path that is the host's.
func (n *node) told(err error) error {
	if err == nil || n.Root == "/" {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), filepath.Clean(n.Root)+"/", "/"))
}

// perm is who may do what with a file.
func perm(info fs.FileInfo) *capture.Perm {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return &capture.Perm{Mode: st.Mode & 0o7777, UID: int(st.Uid), GID: int(st.Gid)}
}

// examine notes what a path is, without opening it. It is nil where that is all there is to say.
func (n *node) examine(name string) *capture.Entry {
	info, err := os.Lstat(n.real(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		n.c.Add(capture.Entry{Path: name, Kind: capture.Absent})
		return nil
	case err != nil:
		n.c.Add(capture.Entry{Path: name, Kind: capture.Unknown, Failure: capture.FailureOf("lstat", err)})
		n.c.Miss(name, n.told(err))
		return nil
	}
	e := &capture.Entry{Path: name, Kind: capture.Other, Perm: perm(info), Unread: true}
	switch t := info.Mode().Type(); {
	case t == 0:
		e.Kind = capture.File
	case t == fs.ModeDir:
		e.Kind = capture.Dir
	case t == fs.ModeSocket:
		e.Kind = capture.Socket
	case t == fs.ModeNamedPipe:
		e.Kind, e.Unread = capture.FIFO, false
	case t == fs.ModeSymlink:
		e.Kind = capture.Symlink
		if target, err := os.Readlink(n.real(name)); err == nil {
			e.Target, e.Unread = target, false
		}
	case t&fs.ModeDevice != 0:
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			e.Kind, e.Unread, e.Block = capture.Node, false, t&fs.ModeCharDevice == 0
			e.Major, e.Minor = unix.Major(st.Rdev), unix.Minor(st.Rdev)
		}
	}
	n.mark(e, info)
	n.c.Add(*e)
	return e
}

// file notes a file with what keep leaves of its text; nil keeps all. What is no regular file is
// noted as what it is; where a link leads is noted as well.
func (n *node) file(name string, limit int, keep func([]byte) ([]byte, error)) {
	e := n.examine(name)
	if e != nil && e.Kind == capture.Symlink && !e.Unread {
		if name = n.target(name); name == "" {
			return
		}
		e = n.examine(name)
	}
	if e == nil || e.Kind != capture.File {
		return
	}
	text, err := n.read(name, limit)
	if err == nil && keep != nil {
		text, err = keep(text)
	}
	e.Unread, e.Text = false, text
	if err != nil {
		e.Text, e.Failure = nil, capture.FailureOf("read", err)
		n.c.Miss(name, n.told(err))
	}
	n.c.Add(*e)
}

// target is where a link leads to in the end, "" where that is nothing, or not below the root.
func (n *node) target(name string) string {
	real, err := filepath.EvalSymlinks(n.real(name))
	if err != nil {
		n.miss(name, n.told(err))
		return ""
	}
	root, err := filepath.EvalSymlinks(n.Root)
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(root, real)
	if err != nil || !filepath.IsLocal(rel) {
		n.c.Miss(name, errors.New("the link leads out of the node's files"))
		return ""
	}
	return path.Join("/", rel)
}

// read reads a regular file. It follows no link, and waits for no writer of a FIFO.
func (n *node) read(name string, limit int) ([]byte, error) {
	limit = min(limit, maxTotal-n.bytes)
	f, err := os.OpenFile(n.real(name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file any more", name)
	}
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(data) > limit {
		return nil, fmt.Errorf("%s has more than the %d bytes that are kept of it", name, limit)
	}
	n.bytes += len(data)
	return data, err
}
