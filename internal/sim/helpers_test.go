package sim

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"kata-device-plugin/internal/pci"
)

// newNode lays out a platform for one test.
func newNode(t testing.TB, p Platform) *Node {
	t.Helper()
	dir, err := TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	n, err := New(filepath.Join(dir, "node"), p)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// must ends a test at an error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func addr(t testing.TB, s string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(s)
	must(t, err)
	return a
}

// gpus is a machine with GPUs that have no driver, in groups 1, 2, ...
func gpus(count int) Platform {
	var b board
	for i := range count {
		dir := b.add("pci0000:00", pci.Address{Device: uint8(i + 1)}.String(), 0, rootPort())
		b.add(dir, pci.Address{Bus: uint8(i + 1)}.String(), 0, nvidiaGPU(0x2330, 0x16c1, ""))
	}
	for i := range b.list {
		b.list[i].Group = []string{"10", "1", "11", "2", "12", "3", "13", "4"}[i]
	}
	return Platform{Name: "gpus", Functions: b.list}
}

// read is the text of a file below the node's directory.
func read(t testing.TB, n *Node, rel string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(n.dir, rel))
	must(t, err)
	return string(b)
}

// exists says whether there is an entry below the node's directory.
func exists(t testing.TB, n *Node, rel string) bool {
	t.Helper()
	_, err := os.Lstat(filepath.Join(n.dir, rel))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// names are the entries of a directory below the node's; nil without one.
func names(t testing.TB, n *Node, rel string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(n.dir, rel))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	must(t, err)
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}
