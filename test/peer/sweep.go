package peer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Names. What follows the prefix is the same for a state directory and its control groups.
const (
	statePrefix  = "kata-peer-"
	cgroupPrefix = "kata-peer-"
	keptPrefix   = "kept-"
	lockFile     = "lock"
	specFile     = "spec" // what the first process is told
)

// stateDir is a directory that shows whether the process that made it lives: the kernel
// gives up the lock on a file in it however that process ends. A number would not do, since
// another process may get it, also one that cannot be seen from here.
type stateDir struct {
	path string
	lock *os.File
}

func newStateDir() (stateDir, error) {
	path, err := os.MkdirTemp("", statePrefix)
	if err != nil {
		return stateDir{}, fmt.Errorf("make a state directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		return stateDir{}, errors.Join(fmt.Errorf("lock the state directory: %w", err), os.RemoveAll(path))
	}
	return stateDir{path: path, lock: lock}, nil
}

// remove removes the directory and gives up the lock.
func (d stateDir) remove() error {
	if d.path == "" {
		return nil
	}
	return errors.Join(os.RemoveAll(d.path), d.lock.Close())
}

// sweep removes what a test process left that was killed: its nodes ended with it, but
// nobody removed their directories and control groups. Their logs are kept, as those of a
// test that fails: a test that takes too long is killed as well.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), statePrefix+"*"))
	for _, dir := range dirs {
		if lock := abandoned(dir); lock != nil {
			discard(dir)
			_ = lock.Close()
		}
	}
}

// abandoned takes the lock of a state directory whose process has gone, and returns nil for
// any other. The directory of temporary files is everybody's: what is not a directory of our
// own that nobody else can write to is not looked into.
func abandoned(dir string) *os.File {
	info, err := os.Lstat(dir)
	if err != nil || info.Mode() != os.ModeDir|0o700 || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		return nil
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil // it is being made, or was left in that moment
	}
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		_ = lock.Close()
		return nil
	}
	return lock
}

// discard removes an abandoned state directory, if its control groups are empty by now:
// without the directory nobody would find them again.
func discard(dir string) {
	name := strings.TrimPrefix(filepath.Base(dir), statePrefix)
	if !removeEmpty(cgroupPrefix + name) {
		return
	}
	if logs, _ := filepath.Glob(filepath.Join(dir, "log/*.log")); logs != nil {
		_ = os.Rename(filepath.Join(dir, "log"), filepath.Join(filepath.Dir(dir), keptPrefix+filepath.Base(dir)))
	}
	_ = os.RemoveAll(dir)
}

// removeEmpty removes control groups, and says whether none is left. The kernel refuses one
// that is not empty.
func removeEmpty(name string) bool {
	all, err := cgroups(name)
	for _, dir := range all {
		err = errors.Join(err, os.Remove(dir))
	}
	return err == nil
}
