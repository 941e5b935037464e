package host_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// brokenRig has one function of each kind: a PF with VFs and a companion, a VF and a
// function without a driver.
func brokenRig(t *testing.T) *rig {
	t.Helper()
	pf := sriov()
	pf.Group = "7"
	r := newRig(t, pf, audio("0000:41:00.1", "7", "snd_hda_intel"), gpu(gpuB, "8", ""), gpu("0000:61:00.0", "9", "vfio-pci"))
	must(t, r.SetVFs(addr(t, gpuA), 1, "vfio-pci"))
	return r
}

const vf = "0000:41:00.4"

// withErr is a function as it was, but for the error.
func withErr(f host.Function, err error) host.Function {
	f.Err = err
	return f
}

// TestBroken makes each attribute unreadable in turn.
func TestBroken(t *testing.T) {
	r := brokenRig(t)
	before := r.src.Look(nil)
	if before.Partial() || len(before.Functions) != 4 {
		t.Fatalf("%+v", before)
	}
	cdev := "vfio-dev/" + function(t, before, gpuA).Cdev.Name + "/dev"
	for _, tt := range []struct {
		address, broken string
		unread          []string // functions with an error then
	}{
		{gpuA, "vendor", []string{gpuA}}, {gpuA, "device", []string{gpuA}}, {gpuA, "class", []string{gpuA}},
		{gpuA, "revision", []string{gpuA}}, {gpuA, "subsystem_vendor", []string{gpuA}}, {gpuA, "subsystem_device", []string{gpuA}},
		{gpuA, "numa_node", []string{gpuA}}, {gpuA, "virtfn0", []string{gpuA}}, {gpuA, "sriov_numvfs", nil}, {gpuA, "driver", []string{gpuA}},
		{gpuA, "iommu_group", []string{gpuA}}, {gpuA, cdev, []string{gpuA}},
		{vf, "physfn", []string{vf}}, {vf, "class", []string{vf}},
		{gpuB, "vendor", []string{gpuB}}, {gpuB, "class", []string{gpuB}}, {gpuB, "numa_node", []string{gpuB}},
		{"0000:41:00.1", "class", []string{gpuA}}, {"0000:41:00.1", "driver", []string{gpuA}}, {"0000:41:00.1", "vendor", nil},
	} {
		t.Run(tt.address+" "+tt.broken, func(t *testing.T) {
			a := addr(t, tt.address)
			must(t, r.BreakAttribute(a, tt.broken))
			s := r.src.Look(before)
			later := r.src.Glance(r.src.Look(s)) // it lasts
			for what, s := range map[string]*host.Snapshot{"look": s, "later": later} {
				if len(s.Functions) != len(before.Functions) || s.Partial() != (len(tt.unread) > 0) || s.Torn() {
					t.Errorf("%s: %d functions, partial %v, torn %v", what, len(s.Functions), s.Partial(), s.Torn())
				}
				for _, old := range before.Functions {
					f := function(t, s, old.Address.String())
					same(t, what+": facts", *f, withErr(old, f.Err))
					broken := strings.Contains(strings.Join(tt.unread, " "), old.Address.String())
					if (f.Err != nil) != broken {
						t.Errorf("%s: error of %s: %v", what, old.Address, f.Err)
					}
					if broken && (!strings.HasPrefix(f.Err.Error(), "read /sys/devices/pci") || !strings.Contains(f.Err.Error(), "/"+filepath.Base(tt.broken)+": ") &&
						!strings.Contains(f.Err.Error(), "read member "+tt.address+" of IOMMU group 7: ")) {
						t.Errorf("%s: error of %s: %v", what, old.Address, f.Err)
					}
				}
			}
			first := r.src.Look(nil) // nothing to keep
			for _, address := range tt.unread {
				f := function(t, first, address)
				if f.Err == nil || f.Known {
					t.Errorf("first look at %s: %+v", address, f)
				}
				if tt.broken == "numa_node" && f.NUMA != host.NoNode {
					t.Errorf("an unreadable node is taken for node %d", f.NUMA)
				}
				if tt.broken == cdev && f.Cdev.State != host.CdevPending {
					t.Errorf("a device of an unknown number is ready: %+v", f.Cdev)
				}
			}
			must(t, r.RestoreAttribute(a, tt.broken))
			same(t, "restored, glance", r.src.Glance(later), before)
			same(t, "restored, look", r.src.Look(first), before)
		})
	}
}

// TestBrokenMany has more than one thing unreadable: each is said.
func TestBrokenMany(t *testing.T) {
	r := brokenRig(t)
	before := r.src.Look(nil)
	for _, name := range []string{"class", "numa_node", "driver"} {
		must(t, r.BreakAttribute(addr(t, gpuA), name))
	}
	f := function(t, r.src.Look(before), gpuA)
	same(t, "facts", *f, withErr(*function(t, before, gpuA), f.Err))
	for _, name := range []string{"class", "numa_node", "driver"} {
		if !strings.Contains(f.Err.Error(), "/"+name+": ") {
			t.Errorf("%s is not in %v", name, f.Err)
		}
	}
}

// TestBrokenMoves changes what can be read while something else cannot.
func TestBrokenMoves(t *testing.T) {
	r := newRig(t, gpu(gpuA, "7", "vfio-pci"), gpu(gpuB, "8", "vfio-pci"))
	a := addr(t, gpuA)
	s := r.src.Look(nil)
	must(t, r.BreakAttribute(a, "vfio-dev/vfio0/dev"))
	s = r.src.Look(s)
	if c := function(t, s, gpuA).Cdev; c.State != host.CdevReady {
		t.Errorf("%+v", c)
	}
	// The number is not readable, but that the node goes is.
	must(t, r.RemovePlaced("vfio0"))
	s = r.src.Look(s)
	if c := function(t, s, gpuA).Cdev; c.State != host.CdevPending {
		t.Errorf("without a node: %+v", c)
	}
	must(t, r.Unbind(a), r.BreakAttribute(a, "numa_node"))
	s = r.src.Look(s)
	if f := function(t, s, gpuA); f.Cdev != nil || f.Driver != "" || f.NUMA != 1 || f.Err == nil || !f.Known {
		t.Errorf("unbound: %+v", f)
	}
	// Its place on the bus cannot be read: that it has no VFIO device is known.
	must(t, r.RestoreAttribute(a, "numa_node"), r.Bind(a, "vfio-pci"))
	s = r.src.Look(s)
	must(t, r.Unbind(a))
	spoil(t, filepath.Join(r.roots.Sys, "bus/pci/devices", gpuA))
	s = r.src.Look(s)
	if f := function(t, s, gpuA); f.Cdev != nil || f.Err == nil || f.Device != 0x2330 {
		t.Errorf("not found: %+v, cdev %+v", f, f.Cdev)
	}
}

// spoil puts an empty directory in the place of a link, or a file in that of a
// directory, and returns how to undo it.
func spoil(t *testing.T, path string) (restore func()) {
	t.Helper()
	info, err := os.Lstat(path)
	must(t, err, os.Rename(path, path+".aside"))
	if info.IsDir() {
		must(t, os.WriteFile(path, nil, 0o600))
	} else {
		must(t, os.Mkdir(path, 0o700))
	}
	return func() {
		t.Helper()
		must(t, os.Remove(path), os.Rename(path+".aside", path))
	}
}

// TestUnlisted has each directory that cannot be listed.
func TestUnlisted(t *testing.T) {
	r := brokenRig(t)
	must(t, r.PlaceFile("vfio+5", ""), r.PlaceDir("vfio8"))
	_, err := r.AddMdev(uuid)
	must(t, err)
	before := r.src.Look(nil)
	if len(before.Strays) != 3 {
		t.Fatal(strays(before))
	}
	for _, tt := range []struct {
		path, unread string
		found        bool // functions that are on VFIO are read all the same
	}{
		{r.roots.VFIODevices(), "open " + r.roots.VFIODevices() + ": not a directory", true},
		{filepath.Join(r.roots.Sys, "class/vfio-dev"), "list /sys/class/vfio-dev: open class/vfio-dev: not a directory", true},
		{filepath.Join(r.roots.Sys, "bus/pci/devices"), "list /sys/bus/pci/devices: open bus/pci/devices: not a directory", false},
	} {
		t.Run(filepath.Base(tt.path), func(t *testing.T) {
			restore := spoil(t, tt.path)
			s := r.src.Look(before)
			for what, s := range map[string]*host.Snapshot{"look": s, "later": r.src.Look(s), "glance": r.src.Glance(s), "glance at once": r.src.Glance(before)} {
				if fmt.Sprint(s.Unread) != "["+tt.unread+"]" || !s.Partial() || s.Torn() {
					t.Errorf("%s: unread %v, partial %v, torn %v", what, s.Unread, s.Partial(), s.Torn())
				}
				same(t, what+": strays", s.Strays, before.Strays)
				if len(s.Functions) != len(before.Functions) {
					t.Errorf("%s: %d functions", what, len(s.Functions))
				}
				for _, old := range before.Functions {
					f := function(t, s, old.Address.String())
					if tt.found && f.Err != nil {
						t.Errorf("%s: %v", what, f.Err)
					}
					if tt.found || old.Cdev != nil && len(old.Companions()) == 0 {
						same(t, what+": facts", *f, withErr(old, f.Err))
					}
				}
			}
			if first := r.src.Look(nil); len(first.Unread) != 1 {
				t.Errorf("first look: %v", first.Unread)
			} else {
				for _, f := range first.Functions {
					if f.Cdev != nil && f.Cdev.State == host.CdevReady && tt.path == r.roots.VFIODevices() {
						t.Errorf("first look: %+v", f)
					}
				}
			}
			restore()
			same(t, "restored", r.src.Glance(s), before)
		})
	}
	t.Run("group", func(t *testing.T) {
		restore := spoil(t, filepath.Join(r.roots.Sys, "kernel/iommu_groups/7/devices"))
		s := r.src.Look(before)
		f := function(t, s, gpuA)
		same(t, "facts", *f, withErr(*function(t, before, gpuA), f.Err))
		if f.Err == nil || len(s.Unread) != 0 || !s.Partial() {
			t.Errorf("%v, %v", f.Err, s.Unread)
		}
		restore()
		same(t, "restored", r.src.Glance(s), before)
	})
	t.Run("class link", func(t *testing.T) {
		restore := spoil(t, filepath.Join(r.roots.Sys, "class/vfio-dev/vfio0"))
		s := r.src.Look(before)
		same(t, "functions", s.Functions, before.Functions)
		if len(s.Unread) != 1 || !strings.HasPrefix(s.Unread[0].Error(), "read class link of vfio0: ") {
			t.Errorf("%v", s.Unread)
		}
		first := r.src.Look(nil)
		if got := strays(first); !strings.Contains(got, "vfio0: unreadable: /sys/class/vfio-dev/vfio0: ") || strings.Contains(got, "vfio0: orphan") {
			t.Error(got)
		}
		if f := function(t, first, gpuA); f.Cdev != nil {
			t.Errorf("%+v", f.Cdev)
		}
		restore()
		same(t, "restored", r.src.Glance(s), before)
		same(t, "restored", r.src.Glance(first), before)
	})
}

// TestUnwantedBroken has a function that nobody asked for become unreadable: it does
// not come into the snapshot for that.
func TestUnwantedBroken(t *testing.T) {
	nic := gpu("0000:71:00.0", "9", "mlx5_core")
	nic.Vendor, nic.Class = 0x15b3, 0x020700
	r := newRig(t, gpu(gpuA, "7", "vfio-pci"), nic)
	before := r.src.Look(nil)
	a := addr(t, "0000:71:00.0")
	must(t, r.BreakAttribute(a, "class"))
	same(t, "look", r.src.Look(before), before)
	same(t, "later", r.src.Look(r.src.Look(before)), before)
	// Seen for the first time like this, it may be anything.
	first := r.src.Look(nil)
	if f := function(t, first, a.String()); f.Err == nil || f.Known {
		t.Errorf("%+v", f)
	}
	must(t, r.RestoreAttribute(a, "class"))
	same(t, "restored", r.src.Glance(first), before)
	restore := spoil(t, filepath.Join(r.roots.Sys, "bus/pci/devices", a.String()))
	same(t, "not found", r.src.Look(before), before)
	restore()
}

// TestUnknownGroup: a companion whose group cannot be read may be anybody's. Whatever it does,
// a glance has others' companions as they are.
func TestUnknownGroup(t *testing.T) {
	const companion = "0000:41:00.1"
	for _, tt := range []struct {
		name, driver string // of the companion at first
		change       func(*rig, pci.Address) error
	}{
		{"bound", "", func(r *rig, a pci.Address) error { return r.Bind(a, "vfio-pci") }},
		{"bound VFs' way", "", func(r *rig, a pci.Address) error { return r.BindVFIO(a, "nvidia") }},
		{"unbound", "vfio-pci", func(r *rig, a pci.Address) error { return r.Unbind(a) }},
		{"removed", "vfio-pci", func(r *rig, a pci.Address) error { return r.Remove(a) }},
		{"removed without a driver", "", func(r *rig, a pci.Address) error { return r.Remove(a) }},
		{"added", "removed", func(r *rig, a pci.Address) error {
			return errors.Join(r.Add(audio(companion, "7", "")), r.BreakAttribute(a, "iommu_group"))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, gpu(gpuA, "7", "vfio-pci"))
			a := addr(t, companion)
			if tt.driver != "removed" {
				must(t, r.Add(audio(companion, "7", "")))
				if tt.driver != "" {
					must(t, r.Bind(a, tt.driver))
				}
				must(t, r.BreakAttribute(a, "iommu_group"))
			}
			seen := r.src.Glance(r.src.Look(nil))
			must(t, tt.change(r, a))
			same(t, tt.name, function(t, r.src.Glance(seen), gpuA), function(t, r.src.Look(nil), gpuA))
		})
	}
}

// TestGarbled has attributes with a text that the kernel does not write.
func TestGarbled(t *testing.T) {
	r := newRig(t, gpu(gpuA, "7", "vfio-pci"))
	before := r.src.Look(nil)
	for name, text := range map[string]string{
		"vendor": "10de\n", "class": "0x30200\n", "revision": "", "numa_node": "none\n", "vfio-dev/vfio0/dev": "511\n",
	} {
		r := newRig(t, gpu(gpuA, "7", "vfio-pci"))
		must(t, r.SetAttribute(addr(t, gpuA), name, text))
		f := function(t, r.src.Look(before), gpuA)
		same(t, name, *f, withErr(*function(t, before, gpuA), f.Err))
		if f.Err == nil || !f.Known || !strings.Contains(f.Err.Error(), fmt.Sprintf("%q is not a", text)) {
			t.Errorf("%s: %v", name, f.Err)
		}
	}
	must(t, os.Remove(filepath.Join(r.roots.Sys, "bus/pci/devices", gpuA)), os.Symlink("../../../nowhere", filepath.Join(r.roots.Sys, "bus/pci/devices", gpuA)))
	must(t, r.Unbind(addr(t, gpuA)))
	if f := function(t, r.src.Look(nil), gpuA); f.Err == nil || f.Known || f.NUMA != host.NoNode ||
		!strings.HasPrefix(f.Err.Error(), "find "+gpuA+": ") {
		t.Errorf("%+v", f)
	}
}
