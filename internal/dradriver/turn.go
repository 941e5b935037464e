package dradriver

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// turn is the right to publish. In a rolling update two copies run beside each other, and two that
// publish different things, since one knows an attribute more, would go on correcting each other.
// The kernel gives the lock up when its holder ends.
type turn struct {
	path string
	file *os.File // locked, nil while another copy publishes
}

// mine takes the lock if it is free, and says whether this copy has it. It does not wait. Whoever
// removes the file takes it from its holder.
func (t *turn) mine() (bool, error) {
	if t.file != nil && current(t.file, t.path) {
		return true, nil
	}
	if err := t.release(); err != nil {
		return false, err
	}
	f, err := os.OpenFile(t.path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return false, fmt.Errorf("lock publishing: %w", err)
	}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		return false, f.Close()
	case err != nil:
		return false, errors.Join(fmt.Errorf("lock %s: %w", t.path, err), f.Close())
	case !current(f, t.path):
		return false, f.Close() // it was removed between open and lock: the next try makes a new one
	}
	t.file = f
	return true, nil
}

// release gives the lock up. The file stays.
func (t *turn) release() error {
	if t.file == nil {
		return nil
	}
	f := t.file
	t.file = nil
	return f.Close()
}

// current says whether a file is the one at a path.
func current(f *os.File, path string) bool {
	mine, err1 := f.Stat()
	there, err2 := os.Lstat(path)
	return err1 == nil && err2 == nil && os.SameFile(mine, there)
}
