package nodelock_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kata-device-plugin/internal/nodelock"
)

// take is one of the two ways to take the lock.
type take func(dir, resource, holder string) (*nodelock.Lock, error)

func taken(t *testing.T, f take, dir, holder string) *nodelock.Lock {
	t.Helper()
	l, err := f(dir, resource, holder)
	if err != nil {
		t.Fatalf("%s: %v", holder, err)
	}
	return l
}

// refused wants a lock to be held by just these.
func refused(t *testing.T, f take, dir, holders string) {
	t.Helper()
	_, err := f(dir, resource, "one who comes late")
	var held *nodelock.HeldError
	if !errors.As(err, &held) || !errors.Is(err, nodelock.ErrHeld) || held.Holder != holders {
		t.Errorf("got %v, want it to be held by %q", err, holders)
	}
}

// TestShared: those who share hold it together, nobody alone beside them, and they not beside
// him. Whoever is refused is told who they are now, whoever has been there before.
func TestShared(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cdi") // it need not exist
	alone := taken(t, nodelock.Take, dir, "a plugin with a name that is longer than those of the others")
	refused(t, nodelock.TakeShared, dir, "a plugin with a name that is longer than those of the others")
	release(t, alone)

	first := taken(t, nodelock.TakeShared, dir, "the first driver")
	second := taken(t, nodelock.TakeShared, dir, "the second")
	if !first.Held() || !second.Held() {
		t.Error("not held")
	}
	refused(t, nodelock.Take, dir, "the first driver, the second")
	release(t, first)
	refused(t, nodelock.Take, dir, "the second")
	third := taken(t, nodelock.TakeShared, dir, "3rd")
	refused(t, nodelock.Take, dir, "3rd, the second")
	release(t, second)
	release(t, third)

	alone = taken(t, nodelock.Take, dir, "a plugin")
	refused(t, nodelock.TakeShared, dir, "a plugin")
	refused(t, nodelock.Take, dir, "a plugin")
	release(t, alone)
	release(t, taken(t, nodelock.TakeShared, dir, "a driver"))
}

// TestManyShare: there is a name for some, and the lock for all.
func TestManyShare(t *testing.T) {
	dir := t.TempDir()
	for range 40 {
		l := taken(t, nodelock.TakeShared, dir, strings.Repeat("x", 300))
		defer release(t, l)
	}
	_, err := nodelock.Take(dir, resource, "a plugin")
	if !errors.Is(err, nodelock.ErrHeld) || !strings.Contains(err.Error(), "held by xxx") {
		t.Errorf("got %v", err)
	}
}

// TestSharedFile: the file is nobody else's to open, and is opened by its own name only.
func TestSharedFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, nodelock.FileName(resource))
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	l := taken(t, nodelock.TakeShared, dir, "a driver")
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if l.Held() {
		t.Error("held without a file")
	}
	release(t, taken(t, nodelock.Take, dir, "a plugin"))
	release(t, l)

	victim := filepath.Join(dir, "victim")
	if err := errors.Join(os.Remove(path), os.WriteFile(victim, []byte("precious"), 0o644), os.Symlink(victim, path)); err != nil {
		t.Fatal(err)
	}
	if _, err := nodelock.TakeShared(dir, resource, "a driver"); err == nil || errors.Is(err, nodelock.ErrHeld) {
		t.Errorf("followed a link: %v", err)
	}
	if data, _ := os.ReadFile(victim); string(data) != "precious" {
		t.Errorf("the link's target says %q", data)
	}
}
