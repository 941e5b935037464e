package collect

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/host"
)

// sysRecorder notes what is read of /sys, and what came of it. Files in a capture have one path
// each, so it walks to each by itself and notes the links on the way.
type sysRecorder struct {
	*recording
	sys   fs.ReadLinkFS
	plain map[string]bool // paths that are no links
}

var _ interface {
	fs.ReadLinkFS
	fs.ReadFileFS
	fs.ReadDirFS
} = (*sysRecorder)(nil)

// walk goes to a path below /sys, and notes the links on the way. Where it gets no further it
// returns the path that it did not get beyond, with the reason.
func (r *sysRecorder) walk(name string, follow bool) (at string, err error) {
	const maxHops = 40 // as the kernel
	at = "."
	rest := strings.Split(name, "/")
	for hops := 0; len(rest) > 0; {
		elem := rest[0]
		rest = rest[1:]
		next := path.Join(at, elem)
		if r.plain[next] || !follow && len(rest) == 0 {
			at = next
			continue
		}
		target, err := r.sys.ReadLink(next)
		switch {
		case errors.Is(err, syscall.EINVAL) || errors.Is(err, fs.ErrInvalid):
			r.plain[next] = true
			at = next
		case errors.Is(err, syscall.ENOTDIR):
			return at, err // at is a file
		case err != nil:
			return next, err
		default:
			r.note(capture.Entry{Path: below(next), Kind: capture.Symlink, Target: target})
			if hops++; hops > maxHops || path.IsAbs(target) {
				return next, syscall.ELOOP
			}
			rest = append(strings.Split(target, "/"), rest...)
		}
	}
	return at, nil
}

// below is the path on the host of a name in /sys.
func below(name string) string { return path.Join("/sys", name) }

// ReadFile implements fs.ReadFileFS.
func (r *sysRecorder) ReadFile(name string) ([]byte, error) {
	r.begin(below(name))
	at, err := r.walk(name, true)
	data, readErr := fs.ReadFile(r.sys, name)
	if err == nil && readErr == nil {
		r.note(capture.Entry{Path: below(at), Kind: capture.File, Text: data})
	} else if readErr != nil {
		r.refused(at, capture.File, readErr)
	}
	return data, readErr
}

// ReadDir implements fs.ReadDirFS.
func (r *sysRecorder) ReadDir(name string) ([]fs.DirEntry, error) {
	r.begin(below(name))
	at, err := r.walk(name, true)
	entries, readErr := fs.ReadDir(r.sys, name)
	if err == nil && readErr == nil {
		names := make([]string, 0, len(entries))
		for _, e := range entries {
			names = append(names, e.Name())
		}
		r.note(capture.Entry{Path: below(at), Kind: capture.Dir, Names: names})
	} else if readErr != nil {
		r.refused(at, capture.Dir, readErr)
	}
	return entries, readErr
}

// ReadLink implements fs.ReadLinkFS.
func (r *sysRecorder) ReadLink(name string) (string, error) {
	r.begin(below(name))
	at, err := r.walk(name, false)
	target, readErr := r.sys.ReadLink(name)
	if err == nil && readErr == nil {
		r.note(capture.Entry{Path: below(at), Kind: capture.Symlink, Target: target})
	} else if readErr != nil {
		r.refused(at, capture.Symlink, readErr)
	}
	return target, readErr
}

// Lstat implements fs.ReadLinkFS.
func (r *sysRecorder) Lstat(name string) (fs.FileInfo, error) {
	r.begin(below(name))
	at, err := r.walk(name, false)
	info, statErr := r.sys.Lstat(name)
	if err == nil && statErr == nil {
		r.note(capture.DevEntry(below(at), host.DevFile{Type: info.Mode().Type()}))
	} else if statErr != nil {
		r.refused(at, capture.Unknown, statErr)
	}
	return info, statErr
}

// Open implements fs.FS. What is in the file is noted before it is opened.
func (r *sysRecorder) Open(name string) (fs.File, error) {
	if _, err := r.ReadFile(name); errors.Is(err, syscall.EISDIR) {
		_, _ = r.ReadDir(name) // an error is noted too
	}
	return r.sys.Open(name)
}

// refused notes that something could not be read as a file, directory or link, and what is there.
func (r *sysRecorder) refused(at string, as capture.Kind, why error) {
	failure := capture.FailureOf("open", why)
	info, err := r.sys.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		r.note(capture.Entry{Path: below(at), Kind: capture.Absent})
		return
	}
	if err != nil {
		r.note(capture.Entry{Path: below(at), Kind: capture.Unknown, Failure: failure})
		return
	}
	e := capture.DevEntry(below(at), host.DevFile{Type: info.Mode().Type()})
	if e.Kind == as {
		e.Failure, e.Unread = failure, false
	}
	r.note(e)
}
