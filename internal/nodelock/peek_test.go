package nodelock_test

import (
	"os"
	"path/filepath"
	"testing"

	"kata-device-plugin/internal/nodelock"
)

// TestPeek: how a lock is held is seen by anybody, and looking takes nothing.
func TestPeek(t *testing.T) {
	dir := t.TempDir()
	peek := func(what string, want nodelock.State) {
		t.Helper()
		for range 2 {
			if got, err := nodelock.Peek(dir, "example.com/x"); err != nil || got != want {
				t.Errorf("%s: %v %v, want %v", what, got, err, want)
			}
		}
	}
	peek("without a file", nodelock.Free)
	alone, err := nodelock.Take(dir, "example.com/x", "a plugin")
	if err != nil {
		t.Fatal(err)
	}
	peek("taken alone", nodelock.Alone)
	if err := alone.Release(); err != nil {
		t.Fatal(err)
	}
	peek("given up", nodelock.Free)
	for range 2 {
		shared, err := nodelock.TakeShared(dir, "example.com/x", "a driver")
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := shared.Release(); err != nil {
				t.Error(err)
			}
		}()
		peek("shared", nodelock.Shared)
	}
	link := filepath.Join(dir, nodelock.FileName("example.com/link"))
	if err := os.Symlink("elsewhere", link); err != nil {
		t.Fatal(err)
	}
	if got, err := nodelock.Peek(dir, "example.com/link"); err == nil {
		t.Errorf("a link in its place: %v", got)
	}
}
