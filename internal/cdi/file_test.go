package cdi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cncf "tags.cncf.io/container-device-interface/pkg/cdi"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"kata-device-plugin/internal/cdi"
)

const kind = "nvidia.com/gpu"

// vfio is the node of a VFIO device.
func vfio(path string) []cdi.Node { return []cdi.Node{{Path: path, Permissions: "rw"}} }

func devices(n int) []cdi.Device {
	var all []cdi.Device
	for i := range n {
		all = append(all, cdi.Device{Name: fmt.Sprintf("0000:%02x:00.0", i), Nodes: vfio(fmt.Sprintf("/dev/vfio/devices/vfio%d", i))})
	}
	return all
}

func sync(t *testing.T, f *cdi.File, devices []cdi.Device, want bool) {
	t.Helper()
	changed, err := f.Sync(devices)
	if err != nil {
		t.Fatal(err)
	}
	if changed != want {
		t.Errorf("changed %v, want %v", changed, want)
	}
	if !f.InStep() {
		t.Error("not in step after a sync")
	}
}

// TestContent: the file is what every consumer accepts, byte for byte. The module
// test/consumers reads the golden file with the libraries of Kata's shims.
func TestContent(t *testing.T) {
	f := cdi.NewFile(t.TempDir(), "kata.", kind)
	sync(t, f, []cdi.Device{
		{Name: "0000:53:00.0", Nodes: vfio("/dev/vfio/devices/vfio0")},
		{Name: "0008:06:00.0", Nodes: vfio("/dev/vfio/devices/vfio1")},
		{Name: "10000:01:00.0", Nodes: vfio("/dev/vfio/devices/vfio2")},
	}, true)
	got, err := os.ReadFile(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", cdi.FileName("kata.", kind)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s", got)
	}
	var raw specs.Spec
	if err := json.Unmarshal(got, &raw); err != nil {
		t.Fatal(err)
	}
	if lowest, err := specs.MinimumRequiredVersion(&raw); err != nil || lowest > cdi.Version || cdi.Version > cdi.Ceiling {
		t.Errorf("needs %s, declares %s, consumers accept %s: %v", lowest, raw.Version, cdi.Ceiling, err)
	}
	spec, err := cncf.ReadSpec(f.Path(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if d := spec.GetDevice("0008:06:00.0"); d == nil || d.GetQualifiedName() != cdi.QualifiedName(kind, "0008:06:00.0") {
		t.Errorf("the library finds %v", d)
	}
}

// TestSync: the file is written when it has to change, and only then; whatever anybody
// did to it is put right.
func TestSync(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run", "cdi")
	f := cdi.NewFile(dir, "kata.", kind)
	sync(t, f, nil, false) // no device, no file, no directory
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("made a directory for nothing: %v", err)
	}
	sync(t, f, devices(3), true)
	sync(t, f, devices(3), false)
	data, err := os.ReadFile(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"deleted", func() error { return os.Remove(f.Path()) }},
		{"emptied", func() error { return os.Truncate(f.Path(), 0) }},
		{"edited at equal length", func() error {
			return os.WriteFile(f.Path(), bytes.Replace(data, []byte("vfio1"), []byte("vfio9"), 1), 0o644)
		}},
		{"made unreadable", func() error { return os.Chmod(f.Path(), 0o600) }},
		{"made writable", func() error { return os.Chmod(f.Path(), 0o666) }},
		{"replaced by a link", func() error {
			return os.Remove(f.Path())
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.do(); err != nil {
				t.Fatal(err)
			}
			if c.name == "replaced by a link" {
				target := filepath.Join(t.TempDir(), "elsewhere.json")
				if err := os.WriteFile(target, data, 0o644); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(target, f.Path()); err != nil {
					t.Fatal(err)
				}
			}
			if f.InStep() {
				t.Error("in step")
			}
			sync(t, f, devices(3), true)
			got, err := os.ReadFile(f.Path())
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("got %s, %v", got, err)
			}
			if info, err := os.Lstat(f.Path()); err != nil || info.Mode() != 0o644 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		})
	}
	// Somebody wrote the same again: there is nothing to put right.
	if err := os.WriteFile(f.Path(), data, 0o644); err != nil {
		t.Fatal(err)
	}
	sync(t, f, devices(3), false)
	// A new life finds the file of the one before.
	sync(t, cdi.NewFile(dir, "kata.", kind), devices(3), false)
	sync(t, cdi.NewFile(dir, "kata.", kind), devices(2), true)
	sync(t, f, nil, true)
	if _, err := os.Stat(f.Path()); !os.IsNotExist(err) {
		t.Errorf("a file without devices: %v", err)
	}
	sync(t, f, nil, false)
}

// TestLetterDomain: an address may begin with a letter, and an older version would do then.
func TestLetterDomain(t *testing.T) {
	f := cdi.NewFile(t.TempDir(), "kata.", kind)
	sync(t, f, []cdi.Device{{Name: "c05e:00:00.0", Nodes: vfio("/dev/vfio/devices/vfio0")}}, true)
	if spec, err := cncf.ReadSpec(f.Path(), 0); err != nil || spec.Version != cdi.Version || spec.GetDevice("c05e:00:00.0") == nil {
		t.Errorf("%+v, %v", spec, err)
	}
}

func TestResolves(t *testing.T) {
	f := cdi.NewFile(t.TempDir(), "kata.", kind)
	all := devices(2)
	sync(t, f, all, true)
	if !f.Resolves(all[1]) || f.Resolves(cdi.Device{Name: all[0].Name, Nodes: all[1].Nodes}) || f.Resolves(cdi.Device{Name: "x"}) {
		t.Error("wrong")
	}
}

// TestRefused: what no consumer would accept is not written, and the old file stays.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name, kind string
		devices    []cdi.Device
		want       string
	}{
		{"name twice", kind, append(devices(1), devices(1)...), "twice"},
		{"bad name", kind, []cdi.Device{{Name: "0000/00", Nodes: vfio("/dev/x")}}, "0000/00"},
		{"no node", kind, []cdi.Device{{Name: "0000:00:00.0"}}, "0000:00:00.0"},
		{"a kind that needs a later version", "nvidia.com/gpu.x", devices(1), "0.6.0"},
		{"bad kind", "nvidia", devices(1), "nvidia"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := cdi.NewFile(t.TempDir(), "kata.", c.kind)
			changed, err := f.Sync(c.devices)
			if err == nil || changed || !strings.Contains(err.Error(), c.want) {
				t.Errorf("changed %v, error %v", changed, err)
			}
			if _, err := os.Stat(f.Path()); !os.IsNotExist(err) {
				t.Errorf("written: %v", err)
			}
		})
	}
}

// TestUnwritable: the error names the file, and the next sync makes up for it.
func TestUnwritable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cdi")
	if err := os.WriteFile(dir, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f := cdi.NewFile(dir, "kata.", kind)
	if _, err := f.Sync(devices(1)); err == nil || !strings.Contains(err.Error(), f.Path()) {
		t.Errorf("got %v", err)
	}
	if f.InStep() {
		t.Error("in step")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	sync(t, f, devices(1), true)
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	f := cdi.NewFile(dir, "kata.", kind)
	keep := []string{"kata.nvidia.com-gpu.json", "kata.nvidia.com-gpu.lock", ".kata.nvidia.com-nvswitch.json77", "other.json", ".other.json1"}
	for _, name := range append([]string{".kata.nvidia.com-gpu.json123", ".kata.nvidia.com-gpu.json"}, keep...) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Sweep(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	slices.Sort(keep)
	if !slices.Equal(left, keep) {
		t.Errorf("left %v", left)
	}
	if err := cdi.NewFile(filepath.Join(dir, "absent"), "kata.", kind).Sweep(); err != nil {
		t.Error(err)
	}
}

func TestNeighbours(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spec := func(version, kind, name string) string {
		return "cdiVersion: " + version + "\nkind: " + kind + "\ndevices:\n- name: \"" + name + "\"\n  containerEdits:\n    env: [A=b]\n"
	}
	n := cdi.NewNeighbours(dir)
	own := []string{cdi.FileName("kata.", kind)}
	read := func() map[string]cdi.Foreign {
		t.Helper()
		all, err := n.Read(own)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]cdi.Foreign{}
		for _, f := range all {
			found[filepath.Base(f.Path)] = f
		}
		return found
	}
	write(cdi.FileName("kata.", kind), "ours, and never parsed")
	write("a.yaml", spec("0.5.0", kind, "all"))
	write("b.json", "{")
	write("c.yaml", spec("1.0.0", "x.example/y", "z"))
	write("d.yaml", "cdiVersion: 0.5.0\nkind: x.example/y\ndevices: []\n") // Kata's Rust shim refuses it
	write("e.tmp", "not a spec")
	write("f.yml", "nor is this")
	if err := os.Mkdir(filepath.Join(dir, "g.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	write("h.json", strings.Repeat(" ", 300<<10)) // too large to be worth the memory
	found := read()
	if h := found["h.json"]; h.Err != nil || h.Unexamined != 300<<10 || h.TooNew() {
		t.Errorf("h: %+v", h)
	}
	delete(found, "h.json")
	if err := os.Remove(filepath.Join(dir, "h.json")); err != nil {
		t.Fatal(err)
	}
	if len(found) != 4 {
		t.Fatalf("found %v", found)
	}
	if a := found["a.yaml"]; a.Err != nil || a.Kind != kind || !slices.Equal(a.Names, []string{"all"}) || a.TooNew() {
		t.Errorf("a: %+v", a)
	}
	if c := found["c.yaml"]; c.Err != nil || !c.TooNew() {
		t.Errorf("c: %+v", c)
	}
	for _, name := range []string{"b.json", "d.yaml"} {
		if f := found[name]; f.Err == nil {
			t.Errorf("%s: %+v", name, f)
		}
	}
	write("b.json", `{"cdiVersion":"0.5.0","kind":"x.example/y","devices":[{"name":"n","containerEdits":{"env":["A=b"]}}]}`)
	if err := os.Remove(filepath.Join(dir, "d.yaml")); err != nil {
		t.Fatal(err)
	}
	found = read()
	if b := found["b.json"]; len(found) != 3 || b.Err != nil || !slices.Equal(b.Names, []string{"n"}) {
		t.Errorf("after the repair: %+v", found)
	}
	if all, err := cdi.NewNeighbours(filepath.Join(dir, "absent")).Read(own); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
}
