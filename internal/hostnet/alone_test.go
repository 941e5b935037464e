package hostnet

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Alone gives the test a network namespace of its own, in which there is lo, down, and
// nothing happens by itself. Its thread is never unlocked, so it ends with the test, and so
// does the namespace. A subtest is on another thread.
func Alone(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		Skip(t, "no network namespace can be made", err)
	}
}

// Skip ends a test that cannot run here, which in CI it has to.
func Skip(t *testing.T, why string, err error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("CI has to run this, but %s: %v", why, err)
	}
	t.Skipf("SKIPPED: %s: %v", why, err)
}
