package nodelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// State says how a lock is held.
type State uint8

// The states.
const (
	Free   State = iota
	Alone        // by a device plugin
	Shared       // by instances of the DRA driver
)

// Peek asks the kernel how the lock of a resource is held, and does not take it.
func Peek(dir, resource string) (State, error) {
	f, err := os.OpenFile(filepath.Join(dir, FileName(resource)), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Free, nil // it was never taken
	}
	if err != nil {
		return Free, fmt.Errorf("look at the lock of %s: %w", resource, err)
	}
	defer f.Close()
	// Who has it alone keeps the gate from being read-locked as well.
	for _, by := range []struct {
		part  unix.Flock_t
		state State
	}{{gate(), Alone}, {everything(), Shared}} {
		if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &by.part); err != nil {
			return Free, fmt.Errorf("look at the lock of %s: %w", resource, err)
		}
		if by.part.Type != unix.F_UNLCK {
			return by.state, nil
		}
	}
	return Free, nil
}
