package sim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Hold makes a temporary directory in parent, which belongs to this process for as long as
// that lives, and removes those whose process was killed before it could. The caller
// removes the directory where it can. Without a parent it is below $TMPDIR or /tmp. The
// prefix begins the name, and may be used for nothing else.
//
// A directory is held by its lock (flock), which the kernel gives up when the process ends,
// however that ends, and not before: the descriptor is nobody's, so nothing closes it, nor
// does a program inherit it that is started meanwhile.
func Hold(parent, prefix string) (string, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	sweep(parent, prefix)
	for {
		dir, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return "", err
		}
		if held, err := hold(dir); err != nil {
			return "", fmt.Errorf("lock %s: %w", dir, errors.Join(err, os.Remove(dir)))
		} else if held {
			return dir, nil
		}
	}
}

// hold locks a new directory, unless a sweep in another process came in between.
func hold(dir string) (bool, error) {
	fd, err := lock(dir)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if _, err := os.Lstat(dir); err != nil { // it was swept before it was locked
		return false, unix.Close(fd)
	}
	return true, nil
}

// sweep removes the directories that nobody holds. What cannot be removed is in nobody's way.
func sweep(parent, prefix string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		if fd, err := lock(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = unix.Close(fd)
		}
	}
}

// lock takes the lock of a directory of ours. Anybody may put things into /tmp, so links,
// files and what belongs to others are refused.
func lock(dir string) (fd int, err error) {
	fd, err = unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && st.Uid != uint32(os.Geteuid()) {
		err = unix.EPERM
	}
	if err == nil {
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}
