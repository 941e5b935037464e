package devinfo_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/devinfo"
	"kata-device-plugin/internal/pci"
)

func vf() devinfo.Info { return devinfo.Info{PCI: &devinfo.PCI{Address: "0000:65:00.3"}} }

// list are the names in a directory.
func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestWrite: name, mode and content are the old plugin's, the directory is made, and what is
// right is left alone.
func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "devinfo", "dp")
	files := devinfo.Files{Dir: dir}
	if err := files.Write("intel.com/vfio", "0000:65:00.3", vf()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "intel.com-vfio-0000:65:00.3-device.json")
	before, err := os.Stat(path)
	if err != nil || before.Mode() != 0o444 {
		t.Fatalf("%v, %v; there is %v", before, err, list(t, dir))
	}
	const want = `{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:65:00.3"}}`
	content := func() string {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if got := content(); got != want {
		t.Errorf("%s", got)
	}
	same := func() bool {
		t.Helper()
		now, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return os.SameFile(before, now)
	}
	if err := files.Write("intel.com/vfio", "0000:65:00.3", vf()); err != nil || !same() {
		t.Errorf("a file that is right was written again: %v", err)
	}
	for what, spoil := range map[string]func() error{
		"another content": func() error { return os.WriteFile(path, []byte(strings.Replace(want, "65", "66", 1)), 0o444) },
		"another mode":    func() error { return os.Chmod(path, 0o600) },
		"a link": func() error {
			return errors.Join(os.Remove(path), os.WriteFile(filepath.Join(dir, "other"), []byte(want), 0o444), os.Symlink("other", path))
		},
	} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(files.Write("intel.com/vfio", "0000:65:00.3", vf()), spoil()); err != nil {
			t.Fatal(err)
		}
		if err := files.Write("intel.com/vfio", "0000:65:00.3", vf()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != 0o444 || content() != want {
			t.Errorf("%s was not put right: %v, %v", what, info, err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "other")); err != nil {
			t.Fatal(err)
		}
	}
	if names := list(t, dir); len(names) != 1 {
		t.Errorf("something is left: %v", names)
	}
}

func TestWriteErrors(t *testing.T) {
	dir := t.TempDir()
	for what, err := range map[string]error{
		"no address":     devinfo.Files{Dir: dir}.Write("intel.com/a", "mlx5_core.sf.4", vf()),
		"a way out":      devinfo.Files{Dir: dir}.Write("intel.com/a", "../0000:65:00.3", vf()),
		"no information": devinfo.Files{Dir: dir}.Write("intel.com/a", "0000:65:00.3", devinfo.Info{}),
		"two types":      devinfo.Files{Dir: dir}.Write("intel.com/a", "0000:65:00.3", devinfo.Info{PCI: &devinfo.PCI{}, VDPA: &devinfo.VDPA{}}),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "write device-info of ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := devinfo.Files{Dir: filepath.Join(file, "dp")}.Write("intel.com/a", "0000:65:00.3", vf())
	if _, ok := errors.AsType[*fs.PathError](err); !ok {
		t.Errorf("the cause is lost: %v", err)
	}
	if err := (devinfo.Files{Dir: file}).Sync(nil); err == nil || !strings.HasPrefix(err.Error(), "list device-info files: ") {
		t.Errorf("a file as directory: %v", err)
	}
	if names := list(t, dir); !slices.Equal(names, []string{"file"}) {
		t.Errorf("something was written: %v", names)
	}
}

// TestSync: what no pod holds goes, and nothing else. The old plugin removes the files of
// running pods when it starts (D10).
func TestSync(t *testing.T) {
	dir := t.TempDir()
	names := []string{
		".intel.com-vfio-0000:65:00.3-device.json123456",       // of a life that was killed
		".other.com-vfio-0000:65:00.3-device.json123456",       // somebody else's
		"intel.com-vfio-0000:65:00.3-device.json",              // held
		"intel.com-vfio-0000:65:00.4-device.json",              // not held
		"intel.com-vfio-10000:e1:00.0-device.json",             // not held
		"intel.com-vfio-65:00.4-device.json",                   // no address
		"intel.com-vfio-b-0000:65:00.4-device.json",            // of intel.com/vfio-b
		"intel.com-vfio-0000:65:00.4-device.json.bak",          // somebody else's
		"intel.com-vfio.x-0000:65:00.4-device.json",            // of intel.com/vfio.x
		"other.com-vfio-0000:65:00.4-device.json",              // no resource of the configuration
		"a-b-c-0000:01:00.0-device.json",                       // of a-b/c or a/b-c, one of which is held
		"a-b-c-0000:02:00.0-device.json",                       // of neither
		"intel.com-vfio-mlx5_core.sf.4-device.json",            // which we would not write
		"intel.com-vfio-0000:65:00.5-device.json-device.json",  // nor this
		"intel.com-vfio-0000:65:00.4-device.json-directory",    // nor this
		"intel.com-vfio-0000:65:00.3-0000:65:00.4-device.json", // nor this
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	directory := "intel.com-vfio-0000:65:00.6-device.json"
	if err := os.Mkdir(filepath.Join(dir, directory), 0o700); err != nil {
		t.Fatal(err)
	}
	files := devinfo.Files{Dir: dir}
	keep := map[string][]string{"intel.com/vfio": {"0000:65:00.3"}, "a-b/c": {"0000:01:00.0"}, "a/b-c": nil}
	for range 2 {
		if err := files.Sync(keep); err != nil {
			t.Fatal(err)
		}
		want := slices.DeleteFunc(append(slices.Clone(names), directory), func(name string) bool {
			return slices.Contains([]string{names[0], names[3], names[4], names[11]}, name)
		})
		slices.Sort(want)
		if got := list(t, dir); !slices.Equal(got, want) {
			t.Errorf("left are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if err := (devinfo.Files{Dir: filepath.Join(dir, "none")}).Sync(keep); err != nil {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// FuzzSync: a file that was written is found again by its own resource, and by no device but
// its own; a name of somebody else's making is never removed.
func FuzzSync(f *testing.F) {
	f.Add("intel.com/vfio", "0000:65:00.3", "intel.com-vfio-0000:65:00.4-device.json")
	f.Add("a-b/c", "10000:e1:00.0", ".a-b-c-10000:e1:00.0-device.json1")
	f.Add("a", "0000:65:00.3", "a--device.json")
	f.Fuzz(func(t *testing.T, resource, id, other string) {
		if strings.ContainsAny(resource+id+other, "\x00") || strings.Contains(other, "/") || other == "" || other == "." || other == ".." ||
			len(resource)+len(id) > 100 || len(other) > 100 {
			t.Skip("no file of this name can be")
		}
		_, err := pci.ParseAddress(id)
		files := devinfo.Files{Dir: t.TempDir()}
		if written := files.Write(resource, id, vf()); (written == nil) != (err == nil) {
			t.Fatalf("%q: %v, but the address: %v", id, written, err)
		}
		if err != nil {
			return
		}
		name := devinfo.FileName(resource, id)
		foreign := other != name && os.WriteFile(filepath.Join(files.Dir, other), nil, 0o600) == nil
		if err := files.Sync(map[string][]string{resource: {id}}); err != nil {
			t.Fatal(err)
		}
		left := list(t, files.Dir)
		if !slices.Contains(left, name) {
			t.Fatalf("%s is held, and not among %v", name, left)
		}
		mine := strings.HasPrefix(strings.TrimPrefix(other, "."), strings.ReplaceAll(resource, "/", "-")+"-") && strings.Contains(other, "-device.json")
		if foreign && !mine && !slices.Contains(left, other) {
			t.Errorf("%q was removed", other)
		}
		if err := files.Sync(map[string][]string{resource: nil}); err != nil || slices.Contains(list(t, files.Dir), name) {
			t.Errorf("%s is left: %v", name, err)
		}
	})
}
