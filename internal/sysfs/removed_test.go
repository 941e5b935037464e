package sysfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/sysfs"
)

// TestNamesOfRemoved: a directory that is removed between open and listing says that it is
// not there, so that whoever lists one that may go can tell it from one that cannot be read.
func TestNamesOfRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "devices")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if names, err := sysfs.Names(fd); !errors.Is(err, unix.ENOENT) {
		t.Errorf("%v, %v; want that it does not exist", names, err)
	}
}
