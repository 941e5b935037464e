// Package nodelock is the node-wide lock of a resource. It keeps two agents of this
// project from offering the same hardware: two copies of a plugin, or a plugin and
// the DRA driver.
//
// The lock is an open-file-description lock (fcntl F_OFD_SETLK) on a file in the
// host's CDI directory, which every agent writes to anyway. The kernel releases it
// when the holder dies, however it dies. Whoever takes it alone has a write lock on all of
// the file. Those who share it have a read lock on its first byte, and each a write lock on
// bytes of its own, which its name is in: so nobody is named who has gone.
package nodelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// NICs is the lock of all network functions of a node. Their resources have the names that a
// configuration gives them, so that two agents need have none of them in common.
const NICs = "vfio.katacontainers.io/nic"

// ErrHeld is returned, wrapped, by Take and TakeShared while another agent has the lock.
var ErrHeld = errors.New("held by another agent")

// HeldError says who has the lock.
type HeldError struct {
	Path   string
	Holder string // as the holder named itself, or all who share the lock; "" when none did
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
	return take(dir, resource, holder, everything(), (*Lock).sign)
}

// TakeShared takes the lock together with all who take it so, and never beside one who has
// taken it alone. It does not wait either.
func TakeShared(dir, resource, holder string) (*Lock, error) {
	return take(dir, resource, holder, gate(), (*Lock).sit)
}

// take opens the file, asks the kernel for a part of it, which decides, and notes who holds it.
func take(dir, resource, holder string, part unix.Flock_t, note func(*Lock, string) error) (*Lock, error) {
	path := filepath.Join(dir, FileName(resource))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// Nobody else may open the file: a read lock of whoever can read it would keep the
	// lock from every agent.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, unix.EROFS) || errors.Is(err, fs.ErrPermission) {
		return nil, readOnly(path, part, err)
	}
	if err != nil {
		return nil, fmt.Errorf("lock resource: %w", err)
	}
	l := &Lock{file: f, path: path}
	if err := l.take(part, holder, note); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

func (l *Lock) take(part unix.Flock_t, holder string, note func(*Lock, string) error) error {
	held, err := lock(l.file, part)
	switch {
	case err != nil:
		return fmt.Errorf("lock %s: %w", l.path, err)
	case held:
		return &HeldError{Path: l.path, Holder: holders(l.file)}
	}
	if err := l.file.Chmod(0o600); err != nil { // an earlier version, or an umask's work
		return fmt.Errorf("lock %s: %w", l.path, err)
	}
	if !l.Held() {
		// Somebody removed the file between open and lock; the next try makes a new one.
		return fmt.Errorf("lock %s: the file was replaced", l.path)
	}
	if err := note(l, holder); err != nil {
		return fmt.Errorf("lock %s: %w", l.path, err)
	}
	return nil
}

// lock asks the kernel for a part of a file, and says whether somebody has it.
func lock(f *os.File, part unix.Flock_t) (held bool, err error) {
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &part)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return true, nil
	}
	return false, err
}

// readOnly looks whether somebody else has a lock on a file that we may not write.
func readOnly(path string, part unix.Flock_t, cause error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("lock resource: %w", cause)
	}
	defer f.Close()
	if taken(f, part) {
		return &HeldError{Path: path, Holder: holders(f)}
	}
	return fmt.Errorf("lock resource: %w", cause)
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
