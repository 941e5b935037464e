package cdi_test

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/cdi"
)

// full makes every write of this process end at a size, as a full disk would, while f runs.
func full(t *testing.T, size uint64, f func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
			t.Error(err)
		}
	}()
	f()
}

// TestFull: a spec that cannot be replaced stays as long as all it says is true, and goes
// when it would name an absent device or another one's node.
func TestFull(t *testing.T) {
	two := devices(2)
	swapped := []cdi.Device{{Name: two[0].Name, Nodes: two[1].Nodes}, {Name: two[1].Name, Nodes: two[0].Nodes}}
	for _, c := range []struct {
		name string
		next []cdi.Device
		stay bool
	}{
		{"one more device", devices(3), true},
		{"one device less", two[:1], false},
		{"numbers swapped", swapped, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := cdi.NewFile(t.TempDir(), "kata.", kind)
			sync(t, f, two, true)
			before, err := os.ReadFile(f.Path())
			if err != nil {
				t.Fatal(err)
			}
			full(t, 100, func() {
				if _, err := f.Sync(c.next); err == nil || !strings.Contains(err.Error(), f.Path()) {
					t.Errorf("got %v", err)
				}
			})
			after, err := os.ReadFile(f.Path())
			if c.stay && !bytes.Equal(after, before) || !c.stay && !os.IsNotExist(err) {
				t.Errorf("left %s, %v", after, err)
			}
			if f.InStep() {
				t.Error("in step")
			}
			sync(t, f, c.next, true)
			if entries, _ := os.ReadDir(filepath.Dir(f.Path())); len(entries) != 1 || slices.ContainsFunc(entries, os.DirEntry.IsDir) {
				t.Errorf("left %v", entries)
			}
		})
	}
}
