package wholefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/wholefile"
)

// TestWrite: content and mode whatever the umask, in the place of what was there, and nothing
// beside it.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"one", "", "another one"} {
		if err := wholefile.Write(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		info, err2 := os.Stat(path)
		if err := errors.Join(err, err2); err != nil || string(data) != text || info.Mode() != 0o640 {
			t.Errorf("%q, %v: %v", data, info.Mode(), err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestErrors: the same failure is the same text each time, and leaves nothing.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	inTheWay := filepath.Join(dir, "directory")
	if err := os.MkdirAll(filepath.Join(inTheWay, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{filepath.Join(dir, "none", "file"): unix.ENOENT, inTheWay: unix.EEXIST} {
		first, second := wholefile.Write(path, []byte("x"), 0o600), wholefile.Write(path, []byte("x"), 0o600)
		if !errors.Is(first, want) || first.Error() != second.Error() || strings.Contains(first.Error(), dir) {
			t.Errorf("%s: %v, then %v, want %v", path, first, second, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if err := wholefile.SyncDir(filepath.Join(dir, "none")); !errors.Is(err, unix.ENOENT) {
		t.Error(err)
	}
}
