// Package nodelock is the node-wide lock of a resource. It keeps two agents of this
// project from offering the same hardware: two copies of a plugin, or a plugin and
// the DRA driver.
//
// The lock is an open-file-description lock (fcntl F_OFD_SETLK) on a file in the
// host's CDI directory, which every agent writes to anyway. The kernel releases it
// when the holder dies, however it dies.
package nodelock

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrHeld is returned, wrapped, by Take while another agent has the lock.
var ErrHeld = errors.New("held by another agent")

// HeldError says who has the lock.
type HeldError struct {
	Path   string
	Holder string // as the holder named itself; "" when it did not
}

func (e *HeldError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("lock %s: %v", e.Path, ErrHeld)
	}
	return fmt.Sprintf("lock %s: held by %s", e.Path, e.Holder)
}

// Unwrap makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Unwrap() error { return ErrHeld }

// Lock is a lock that this process holds.
type Lock struct {
	file *os.File
	path string
}

// FileName is the name of a resource's lock file: kata.nvidia.com-gpu.lock. CDI readers
// pass over the suffix.
func FileName(resource string) string {
	return "kata." + strings.ReplaceAll(resource, "/", "-") + ".lock"
}

// Take takes the lock of a resource in a directory, and notes in the file who holds
// it. It does not wait: a lock that is held elsewhere is a *HeldError.
func Take(dir, resource, holder string) (*Lock, error) {
	path := filepath.Join(dir, FileName(resource))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// Nobody else may open the file: a read lock of whoever can read it would keep the
	// lock from every agent.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, unix.EROFS) || errors.Is(err, fs.ErrPermission) {
		return nil, readOnly(path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("lock resource: %w", err)
	}
	l := &Lock{file: f, path: path}
	if err := l.take(holder); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

func (l *Lock) take(holder string) error {
	err := unix.FcntlFlock(l.file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return &HeldError{Path: l.path, Holder: holderOf(l.file)}
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", l.path, err)
	}
	if err := l.file.Chmod(0o600); err != nil { // an earlier version, or an umask's work
		return fmt.Errorf("lock %s: %w", l.path, err)
	}
	if !l.Held() {
		// Somebody removed the file between open and lock; the next try makes a new one.
		return fmt.Errorf("lock %s: the file was replaced", l.path)
	}
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("lock %s: %w", l.path, err)
	}
	if _, err := l.file.WriteAt([]byte(holder+"\n"), 0); err != nil {
		return fmt.Errorf("lock %s: %w", l.path, err)
	}
	return nil
}

// readOnly looks whether somebody else has a lock on a file that we may not write.
func readOnly(path string, cause error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("lock resource: %w", cause)
	}
	defer f.Close()
	probe := unix.Flock_t{Type: unix.F_RDLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &probe); err == nil && probe.Type != unix.F_UNLCK {
		return &HeldError{Path: path, Holder: holderOf(f)}
	}
	return fmt.Errorf("lock resource: %w", cause)
}

func holderOf(f *os.File) string {
	b := make([]byte, 256)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	line, _, _ := strings.Cut(string(b[:n]), "\n")
	return line
}

// Held says whether the lock is still the node's: the file at the path is the locked
// one. Whoever empties the CDI directory takes the lock from its holder.
func (l *Lock) Held() bool {
	mine, err1 := l.file.Stat()
	there, err2 := os.Lstat(l.path)
	return err1 == nil && err2 == nil && os.SameFile(mine, there)
}

// Release gives the lock up. The file stays: to remove it would race with the next
// holder, who may have opened it already.
func (l *Lock) Release() error { return l.file.Close() }
