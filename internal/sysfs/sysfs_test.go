package sysfs_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/sim/simtest"
	"kata-device-plugin/internal/sysfs"
)

// open lays out a machine and opens its sysfs.
func open(t *testing.T, platform string) (fsys *sysfs.FS, dir string) {
	t.Helper()
	n, _ := simtest.Node(t, simtest.Preset(t, platform))
	_, err := n.AddMdev("83b8f4f2-509f-382f-3c1e-e6bfe0fa1001")
	must(t, err)
	dir = n.Roots("test").Sys
	return reopen(t, dir), dir
}

func reopen(t *testing.T, dir string) *sysfs.FS {
	t.Helper()
	fsys, err := sysfs.Open(dir)
	must(t, err)
	t.Cleanup(func() { must(t, fsys.Close()) })
	return fsys
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAgainstDirFS holds every entry of a machine against what the standard library
// makes of it.
func TestAgainstDirFS(t *testing.T) {
	got, dir := open(t, "workstation")
	want := os.DirFS(dir).(fs.ReadLinkFS)
	entries := 0
	err := fs.WalkDir(want, ".", func(name string, d fs.DirEntry, err error) error {
		must(t, err)
		entries++
		sameInfo(t, got, want, name)
		switch {
		case d.IsDir():
			sameDir(t, got, want, name)
		case d.Type()&fs.ModeSymlink != 0:
			a, err1 := got.ReadLink(name)
			b, err2 := want.ReadLink(name)
			if a != b || err1 != nil || err2 != nil {
				t.Errorf("link %s: %q, %v, want %q, %v", name, a, err1, b, err2)
			}
		default:
			sameFile(t, got, want, name)
		}
		return nil
	})
	must(t, err)
	if entries < 300 {
		t.Errorf("only %d entries were compared", entries)
	}
	// Through links, as a look reads members of an IOMMU group.
	sameFile(t, got, want, "bus/pci/devices/0000:01:00.0/class")
	sameDir(t, got, want, "bus/pci/devices/0000:01:00.0")
	if os.Geteuid() != 0 {
		return // files that only root may read are compared above by their errors
	}
	if err := fstest.TestFS(got, "devices/pci0000:00/0000:00:01.0/0000:01:00.0/class", "class/vfio-dev/vfio0"); err != nil {
		t.Error(err)
	}
}

func sameInfo(t *testing.T, got, want fs.ReadLinkFS, name string) {
	t.Helper()
	a, err := got.Lstat(name)
	must(t, err)
	b, err := want.Lstat(name)
	must(t, err)
	if a.Name() != b.Name() || a.Mode() != b.Mode() || a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()) || !os.SameFile(a, b) {
		t.Errorf("lstat %s: %s, want %s", name, fs.FormatFileInfo(a), fs.FormatFileInfo(b))
	}
}

func sameDir(t *testing.T, got, want fs.FS, name string) {
	t.Helper()
	a, err := fs.ReadDir(got, name)
	must(t, err)
	b, err := fs.ReadDir(want, name)
	must(t, err)
	text := func(entries []fs.DirEntry) (lines []string) {
		for _, e := range entries {
			lines = append(lines, fs.FormatDirEntry(e)+" "+e.Type().String())
		}
		return lines
	}
	if !slices.Equal(text(a), text(b)) {
		t.Errorf("%s holds\n%v, want\n%v", name, text(a), text(b))
	}
}

func sameFile(t *testing.T, got, want fs.FS, name string) {
	t.Helper()
	a, err1 := fs.ReadFile(got, name)
	b, err2 := fs.ReadFile(want, name)
	if !bytes.Equal(a, b) || (err1 == nil) != (err2 == nil) || err2 == nil && (a == nil) != (b == nil) {
		t.Errorf("file %s: %q, %v, want %q, %v", name, a, err1, b, err2)
	}
	if err1 != nil && !errors.Is(err1, errors.Unwrap(err2)) {
		t.Errorf("file %s: %v, want %v", name, err1, err2)
	}
}

// TestFirstPage reads no more than an attribute can have.
func TestFirstPage(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("0123456789abcde\n", 257)
	for name, text := range map[string]string{"long": long, "page": long[:4096], "empty": ""} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		got, err := reopen(t, dir).ReadFile(name)
		if want := text[:min(len(text), 4096)]; err != nil || string(got) != want || got == nil {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

// TestOwnBytes sees that what was read is not overwritten by the next read.
func TestOwnBytes(t *testing.T) {
	fsys, _ := open(t, "cpu-only")
	a, err := fsys.ReadFile("bus/pci/devices/0000:01:00.0/vendor")
	must(t, err)
	b, err := fsys.ReadFile("bus/pci/devices/0000:41:00.0/vendor")
	must(t, err)
	if string(a) != "0x144d\n" || string(b) != "0x15b3\n" || cap(a) != len(a) {
		t.Errorf("%q (of %d), %q", a, cap(a), b)
	}
}

// calls are all ways to ask for a name.
func calls(fsys *sysfs.FS) map[string]func(name string) error {
	return map[string]func(name string) error{
		"open":     func(name string) error { _, err := fsys.Open(name); return err },
		"readfile": func(name string) error { _, err := fsys.ReadFile(name); return err },
		"readlink": func(name string) error { _, err := fsys.ReadLink(name); return err },
		"readdir":  func(name string) error { _, err := fsys.ReadDir(name); return err },
		"names":    func(name string) error { _, err := fsys.Names(name); return err },
		"lstat":    func(name string) error { _, err := fsys.Lstat(name); return err },
	}
}

func TestErrors(t *testing.T) {
	fsys, dir := open(t, "workstation")
	must(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	const gpu = "bus/pci/devices/0000:01:00.0"
	check := func(call, name string, want error) {
		t.Helper()
		err := calls(fsys)[call](name)
		var path *fs.PathError
		if !errors.Is(err, want) || !errors.As(err, &path) || path.Path != name || err != error(path) { //nolint:errorlint // it is to be one itself
			t.Errorf("%s %q: %#v, want a path error of %v", call, name, err, want)
		}
	}
	for call := range calls(fsys) {
		for _, name := range []string{"", "/", "/bus", "bus/", "../sys", "bus/../bus", "./bus", "bus//pci", ".."} {
			check(call, name, fs.ErrInvalid)
		}
		check(call, "bus/pci/devices/0000:99:00.0/vendor", fs.ErrNotExist)
		check(call, gpu+"/vendor/x", unix.ENOTDIR)
		check(call, strings.Repeat("x", 256), unix.ENAMETOOLONG)
	}
	check("readfile", "bus", unix.EISDIR)
	check("readfile", gpu, unix.EISDIR)
	check("readfile", "dangling", fs.ErrNotExist)
	check("readfile", "loop", unix.ELOOP)
	check("readdir", "dangling", fs.ErrNotExist)
	check("readdir", gpu+"/vendor", unix.ENOTDIR)
	check("names", gpu+"/vendor", unix.ENOTDIR)
	check("readlink", gpu+"/vendor", unix.EINVAL)
	check("readlink", "bus", unix.EINVAL)
	check("readlink", ".", unix.EINVAL)
	if _, err := fsys.Lstat("dangling"); err != nil {
		t.Errorf("lstat follows: %v", err)
	}
	if target, err := fsys.ReadLink("dangling"); err != nil || target != "nowhere" {
		t.Errorf("%q, %v", target, err)
	}
	if _, err := sysfs.Open(filepath.Join(dir, "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open of nothing: %v", err)
	}
	if _, err := sysfs.Open(filepath.Join(dir, gpu, "vendor")); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("open of a file: %v", err)
	}
}

// TestClosed sees that a closed tree is not the working directory's.
func TestClosed(t *testing.T) {
	_, dir := open(t, "cpu-only")
	fsys, err := sysfs.Open(dir)
	must(t, err)
	must(t, fsys.Close())
	for call, do := range calls(fsys) {
		if err := do("bus"); !errors.Is(err, unix.EBADF) {
			t.Errorf("%s after close: %v", call, err)
		}
	}
}

// TestGoneEntry asks an entry of a listing after it went.
func TestGoneEntry(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"vfio10", "vfio2", "vfio1"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	entries, err := reopen(t, dir).ReadDir(".")
	must(t, err)
	if len(entries) != 3 || entries[0].Name() != "vfio1" || entries[1].Name() != "vfio10" || entries[2].Name() != "vfio2" {
		t.Fatalf("%v", entries)
	}
	must(t, os.Remove(filepath.Join(dir, "vfio1")))
	if _, err := entries[0].Info(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if entries[0].IsDir() || entries[0].Type() != fs.ModeIrregular || !entries[1].Type().IsRegular() {
		t.Errorf("types %v and %v", entries[0].Type(), entries[1].Type())
	}
}

// TestManyNames lists a directory that does not fit into one call.
func TestManyNames(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range 600 {
		name := "0000:41:00.0-with-a-longer-name-" + string(rune('a'+i%26)) + strings.Repeat("z", i/26)
		want = append(want, name)
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	slices.Sort(want)
	got, err := reopen(t, dir).Names(".")
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d names, %v", len(got), err)
	}
}

// TestConcurrent reads from several goroutines, with errors among them, and counts
// the open files afterwards.
func TestConcurrent(t *testing.T) {
	fsys, _ := open(t, "workstation")
	const gpu = "bus/pci/devices/0000:01:00.0"
	want := map[string]string{"vendor": "0x10de\n", "class": "0x030000\n", "device": "0x2204\n", "revision": "0xa1\n"}
	round := func() {
		for name, text := range want {
			if got, err := fsys.ReadFile(gpu + "/" + name); err != nil || string(got) != text {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		if got, err := fsys.ReadLink(gpu + "/driver"); err != nil || filepath.Base(got) != "vfio-pci" {
			t.Errorf("driver: %q, %v", got, err)
		}
		entries, err := fsys.ReadDir(gpu)
		if err != nil || len(entries) < 20 {
			t.Errorf("%d entries, %v", len(entries), err)
		}
		for _, e := range entries {
			if e.Type() == fs.ModeIrregular {
				t.Errorf("%s has no type", e.Name())
			}
		}
		for _, do := range calls(fsys) {
			if do("nothing") == nil || do("..") == nil {
				t.Error("no error")
			}
		}
		if err := calls(fsys)["readfile"]("bus"); err == nil {
			t.Error("no error")
		}
	}
	round()
	before := openFiles(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 8 {
				round()
			}
		})
	}
	wg.Wait()
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open, %d were", after, before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(fds)
}
