package declare_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sim/simtest"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func addr(t *testing.T, s string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(s)
	must(t, err)
	return a
}

// node lays out a machine and returns a source that looks at it as the agent does.
func node(t *testing.T, p sim.Platform) (*sim.Node, host.Source) {
	t.Helper()
	n, _ := simtest.Node(t, p)
	src := simtest.Source(t, n)
	src.Wanted = declare.Passthrough().Wants
	return n, src
}

// TestTable has exactly what is passed through, and what looks like it and is not.
func TestTable(t *testing.T) {
	table := declare.Passthrough()
	for _, tt := range []struct {
		vendor pci.ID
		class  pci.Class
		want   string
	}{
		{0x10de, 0x030200, "nvidia.com/gpu"}, {0x10de, 0x0302ff, "nvidia.com/gpu"}, {0x10de, 0x030000, "nvidia.com/gpu"},
		{0x10de, 0x030001, "nvidia.com/gpu"}, {0x10de, 0x068000, "nvidia.com/nvswitch"}, {0x10de, 0x068001, "nvidia.com/nvswitch"},
		{0x15b3, 0x068000, ""}, {0x15b3, 0x020700, ""}, {0x15b3, 0x030200, ""}, {0x1002, 0x030000, ""}, {0x1002, 0x038000, ""},
		{0x8086, 0x030000, ""}, {0x8086, 0x068000, ""}, {0x10de, 0x060400, ""}, {0x10de, 0x040300, ""}, {0x10de, 0x0c0330, ""},
		{0x10de, 0x0c8000, ""}, {0x10de, 0x020700, ""}, {0x0000, 0x000000, ""}, {0xde10, 0x030200, ""},
	} {
		if got := table.Resource(host.Identity{Vendor: tt.vendor, Class: tt.class}); got != tt.want {
			t.Errorf("%s, %s: %q, want %q", tt.vendor, tt.class, got, tt.want)
		}
	}
	// Of all base classes and subclasses there are, three.
	want := map[uint16]string{0x0302: "nvidia.com/gpu", 0x0300: "nvidia.com/gpu", 0x0680: "nvidia.com/nvswitch"}
	for sub := range 1 << 16 {
		id := host.Identity{Vendor: 0x10de, Device: 0x2330, Class: pci.Class(sub<<8 | 0x42)}
		if got := table.Resource(id); got != want[uint16(sub)] {
			t.Errorf("%s: %q", id.Class, got)
		}
		if table.Wants(id) != (want[uint16(sub)] != "") {
			t.Errorf("%s: wanted %v", id.Class, table.Wants(id))
		}
	}
	// A function matches one rule at most.
	for i, r := range table {
		for _, other := range table[i+1:] {
			for _, c := range r.Classes {
				if r.Vendor == other.Vendor && slices.Contains(other.Classes, c) {
					t.Errorf("class %#04x is of %s and of %s", c, r.Resource, other.Resource)
				}
			}
		}
	}
}

// TestPlatforms counts what each machine offers: all of it healthy, and nothing else.
func TestPlatforms(t *testing.T) {
	for _, p := range sim.Platforms() {
		t.Run(p.Name, func(t *testing.T) {
			_, src := node(t, p)
			d := declare.Passthrough().Declare(src.Look(nil), declare.Past{})
			got := map[string]int{}
			for _, r := range d.Resources {
				got[r.Name] = len(r.Devices)
				for i, dev := range r.Devices {
					if !dev.Healthy() || !dev.Present || dev.ID != dev.Function.Address.String() ||
						dev.String() != "/dev/vfio/devices/"+dev.Function.Cdev.Name {
						t.Errorf("%s: %+v", r.Name, dev)
					}
					if i > 0 && r.Devices[i-1].Function.Address.Compare(dev.Function.Address) >= 0 {
						t.Errorf("%s: %s is not behind %s", r.Name, dev.ID, r.Devices[i-1].ID)
					}
				}
			}
			if got["nvidia.com/gpu"] != p.GPUs || got["nvidia.com/nvswitch"] != p.NVSwitches || len(d.Findings) > 0 {
				t.Errorf("%v, findings %v", got, d.Findings)
			}
			if _, there := got["nvidia.com/nvswitch"]; there && p.NVSwitches == 0 {
				t.Error("a resource without devices")
			}
		})
	}
}

// TestDomains keeps the domain in the ID: two devices differ by nothing else.
func TestDomains(t *testing.T) {
	var functions []sim.Function
	domains := []string{"0000", "0001", "0008", "ffff", "10000"}
	for i, domain := range domains {
		f := gpu("0000:01:00.0", []string{"1", "2", "3", "4", "5"}[i])
		f.Path = strings.ReplaceAll(f.Path, "0000:", domain+":")
		functions = append(functions, f)
	}
	_, src := node(t, sim.Platform{Name: "domains", Functions: functions})
	d := declare.Passthrough().Declare(src.Look(nil), declare.Past{})
	var ids, faults []string
	for _, dev := range d.Resources[0].Devices {
		ids = append(ids, dev.ID)
		for _, f := range dev.Faults {
			faults = append(faults, f.Device+" "+f.ID)
		}
	}
	if got := strings.Join(ids, " "); got != "0000:01:00.0 0001:01:00.0 0008:01:00.0 ffff:01:00.0 10000:01:00.0" {
		t.Errorf("IDs %s", got)
	}
	if got := strings.Join(faults, ", "); got != "10000:01:00.0 HST030" {
		t.Errorf("faults: %s", got)
	}
}

// TestDrivers sees that the VFIO device decides, and never the name of the driver.
func TestDrivers(t *testing.T) {
	for _, driver := range []string{
		"vfio-pci", "nvgrace_gpu_vfio_pci", "nvgrace-gpu-vfio-pci", "mlx5_vfio_pci", "nvidia", "nvidia_vgpu_vfio", "made_up",
	} {
		f := gpu("0000:41:00.0", "1")
		f.Driver, f.VFIO = driver, true
		_, src := node(t, sim.Platform{Name: driver, Functions: []sim.Function{f}})
		d := declare.Passthrough().Declare(src.Look(nil), declare.Past{})
		if len(d.Resources) != 1 || !d.Resources[0].Devices[0].Healthy() {
			t.Errorf("with a VFIO device by %s: %+v", driver, d)
		}
	}
	for _, driver := range []string{"nvidia", "nouveau", "vfio_pci_lookalike", ""} {
		f := gpu("0000:41:00.0", "1")
		f.Driver = driver
		_, src := node(t, sim.Platform{Name: driver, Functions: []sim.Function{f}})
		d := declare.Passthrough().Declare(src.Look(nil), declare.Past{})
		if len(d.Resources) != 0 || len(d.Findings) != 1 || d.Findings[0].ID != finding.NoCdev().ID {
			t.Errorf("without a VFIO device on %q: %+v", driver, d)
		}
	}
}

// gpu is a GPU on vfio-pci below a root port.
func gpu(address, group string) sim.Function {
	return sim.Function{
		Path: "pci" + address[:7] + "/" + address[:8] + "1e.0/" + address, Vendor: 0x10de, Device: 0x2330, SubVendor: 0x10de,
		SubDevice: 0x16c1, Class: 0x030200, Revision: 0xa1, Group: group, Driver: "vfio-pci",
	}
}

// TestTwoRows has one resource in two rows of a table.
func TestTwoRows(t *testing.T) {
	table := declare.Table{
		{Name: declare.Name{Resource: "r"}, Vendor: 0x10de, Classes: []uint16{0x0302}}, {Name: declare.Name{Resource: "s"}, Vendor: 0x10de, Classes: []uint16{0x0680}},
		{Name: declare.Name{Resource: "r"}, Vendor: 0x15b3, Classes: []uint16{0x0207}}, {Name: declare.Name{Resource: "none"}, Vendor: 1, Classes: []uint16{2}},
	}
	a, b := ready(t, "0000:02:00.0"), ready(t, "0000:01:00.0")
	b.Vendor, b.Class = 0x15b3, 0x020700
	c := ready(t, "0000:03:00.0")
	c.Class = 0x068000
	d := table.Declare(&host.Snapshot{Functions: []host.Function{b, a, c}}, declare.Past{})
	if len(d.Resources) != 2 || d.Resources[0].Name != "r" || len(d.Resources[0].Devices) != 2 ||
		d.Resources[0].Devices[0].ID != "0000:01:00.0" || d.Resources[1].Name != "s" {
		t.Errorf("%+v", d.Resources)
	}
	if names := table.Names(); len(names) != 3 || names[0].Resource != "r" || names[1].Resource != "s" || names[2].Resource != "none" {
		t.Errorf("%+v", names)
	}
}

// TestSockets: no two resources of a table share their sockets.
func TestSockets(t *testing.T) {
	seen := map[string]string{}
	for _, n := range declare.Passthrough().Names() {
		if other, ok := seen[n.Socket]; ok || n.Socket == "" {
			t.Errorf("%s and %s both use %q", n.Resource, other, n.Socket)
		}
		seen[n.Socket] = n.Resource
	}
}

// ready is a function with nothing against it.
func ready(t *testing.T, address string) host.Function {
	t.Helper()
	a := addr(t, address)
	return host.Function{
		Path:     pci.Path{Root: "pci0000:00", Address: a},
		Identity: host.Identity{Vendor: 0x10de, Device: 0x2330, Class: 0x030200},
		Driver:   "vfio-pci", Known: true,
		Group: &host.IOMMUGroup{Number: "1", Members: []host.Member{{Address: a}}},
		Cdev:  &host.Cdev{Name: "vfio3", Major: 511, Minor: 3},
	}
}
