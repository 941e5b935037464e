package claim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNotLocked is returned, wrapped, by what writes without the lock. Whoever removes the
// lock's file takes it from its holder, who must not go on: another one may have begun.
var ErrNotLocked = errors.New("the lock of the claims is not held")

// ErrBusy is returned, wrapped, by TryLock while somebody else has the lock.
var ErrBusy = errors.New("held by somebody else")

// Lock waits for the lock: at most one goroutine of all processes has it. It is held from the
// look at who holds what until the record of the decision is written. The kernel releases it
// when its holder dies. An error means that the context ended, or that the file cannot be had.
func (s *Store) Lock(ctx context.Context) (unlock func() error, err error) {
	f, err := s.lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock the claims in %s: %w", s.dir, err)
	}
	return s.unlock(f), nil
}

// TryLock is Lock, but it does not wait.
func (s *Store) TryLock() (unlock func() error, err error) {
	err = ErrBusy
	select {
	case s.turn <- struct{}{}:
		var f *os.File
		if f, err = s.try(); err == nil {
			s.held.Store(f)
			s.sweep()
			return s.unlock(f), nil
		}
		<-s.turn
	default:
	}
	return nil, fmt.Errorf("lock the claims in %s: %w", s.dir, err)
}

// unlock is the end of a lock, once.
func (s *Store) unlock(f *os.File) func() error {
	return sync.OnceValue(func() error {
		s.held.Store(nil)
		err := f.Close()
		<-s.turn
		return err
	})
}

func (s *Store) lock(ctx context.Context) (*os.File, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	// The goroutines of this process come in turn, and do not have to poll.
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	f, err := s.wait(ctx)
	if err != nil {
		<-s.turn
		return nil, err
	}
	s.held.Store(f)
	s.sweep()
	return f, nil
}

// wait asks for the lock again and again. The system call that waits would not end with the
// context, and would go on waiting for a file that was removed.
func (s *Store) wait(ctx context.Context) (*os.File, error) {
	const longest = 50 * time.Millisecond
	for delay := time.Millisecond; ; delay = min(2*delay, longest) {
		f, err := s.try()
		if !errors.Is(err, ErrBusy) {
			return f, err
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *Store) lockPath() string { return filepath.Join(s.dir, "lock") }

// try takes the lock if it is free. The lock is one of the open file description, which two
// stores in one process do not share either.
func (s *Store) try() (*os.File, error) {
	const flags = os.O_RDWR | os.O_CREATE | unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(s.lockPath(), flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		// Somebody has removed the whole directory. Without it no pod would start or end until the
		// next start, and what is lost is lost: what kubelet says of claims is still there.
		if err = makeDir(s.dir); err == nil {
			f, err = os.OpenFile(s.lockPath(), flags, 0o600)
		}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", s.lockPath(), errKind)
	}
	if err == nil {
		err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		err = ErrBusy
	}
	if err == nil && !s.current(f) {
		err = ErrBusy // it was removed between open and lock: there is another one now
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// current says whether a file is the one that everybody locks.
func (s *Store) current(f *os.File) bool {
	mine, err1 := f.Stat()
	there, err2 := os.Lstat(s.lockPath())
	return err1 == nil && err2 == nil && os.SameFile(mine, there)
}

// locked is an error if the lock is not held, or not any more.
func (s *Store) locked() error {
	f := s.held.Load()
	if f == nil {
		return ErrNotLocked
	}
	if !s.current(f) {
		return fmt.Errorf("%w any more: its file was removed or replaced", ErrNotLocked)
	}
	return nil
}

// sweep removes what a writer left that was killed before it renamed. Whoever has the lock is
// the only one that writes, so nothing of a living one is among it. A file that cannot be
// removed takes room and nothing else; the next one to lock tries again.
func (s *Store) sweep() {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name, hidden := strings.CutPrefix(e.Name(), ".")
		uid, number, ok := strings.Cut(name, ext)
		if hidden && ok && checkUID(uid) == nil && strings.Trim(number, "0123456789") == "" && e.Type().IsRegular() {
			_ = os.Remove(filepath.Join(s.dir, e.Name()))
		}
	}
}
