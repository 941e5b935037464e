package host_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sim/simtest"
)

// rig is a node and a source that looks at it.
type rig struct {
	*sim.Node
	src   host.Source
	roots host.Roots
}

func newRig(t *testing.T, functions ...sim.Function) *rig {
	t.Helper()
	return platformRig(t, sim.Platform{Name: "test", Functions: functions})
}

func platformRig(t *testing.T, p sim.Platform) *rig {
	t.Helper()
	n, _ := simtest.Node(t, p)
	src := simtest.Source(t, n)
	src.Wanted = nvidia
	return &rig{Node: n, roots: n.Roots("test"), src: src}
}

// nvidia wants GPUs and NVSwitches.
func nvidia(id host.Identity) bool {
	return id.Vendor == 0x10de && (id.Class.Sub() == 0x0302 || id.Class.Sub() == 0x0300 || id.Class.Sub() == 0x0680)
}

// gpu is a GPU on its own below a root port, "0000:41:00.0" on pci0000:41's own root.
func gpu(address, group, driver string) sim.Function {
	a, _ := pci.ParseAddress(address)
	root := a
	root.Bus, root.Device, root.Function = a.Bus-1, 1, 0
	return sim.Function{
		Path:   fmt.Sprintf("pci%04x:%02x/%s/%s", root.Domain, root.Bus, root, a),
		Vendor: 0x10de, Device: 0x2330, SubVendor: 0x10de, SubDevice: 0x16c1, Class: 0x030200, Revision: 0xa1,
		NUMA: 1, Group: group, Driver: driver, LinkSpeed: "32.0 GT/s PCIe", LinkWidth: 16,
	}
}

// audio is the second function of a card.
func audio(address, group, driver string) sim.Function {
	f := gpu(strings.TrimSuffix(address, ".1")+".0", group, driver)
	f.Path = strings.TrimSuffix(f.Path, "0") + "1"
	f.Device, f.Class = 0x1aef, 0x040300
	return f
}

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

// function finds a function that has to be there.
func function(t *testing.T, s *host.Snapshot, address string) *host.Function {
	t.Helper()
	f, ok := s.Function(addr(t, address))
	if !ok {
		t.Fatalf("%s is not in the snapshot", address)
	}
	return f
}

// options make values of this package comparable; of errors the text counts.
func options() cmp.Options {
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	return cmp.Options{
		cmp.Comparer(func(a, b error) bool { return text(a) == text(b) }),
		cmpopts.IgnoreUnexported(host.Snapshot{}),
	}
}

// same compares whole snapshots, functions or strays.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, options()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// expected are the facts of the functions of a node, from what the node was told to be.
func expected(n *sim.Node) []host.Function {
	var all []host.Function
	groups := map[string]*host.IOMMUGroup{}
	physfns := map[pci.Address]pci.Address{}
	for _, f := range n.Functions() {
		for _, vf := range n.VFs(f.Address()) {
			physfns[vf] = f.Address()
		}
		member := host.Member{Address: f.Address(), Class: f.Class, Driver: f.Driver}
		_, member.VFIO = n.Cdev(f.Address())
		if f.Group == "" {
			continue
		}
		if groups[f.Group] == nil {
			groups[f.Group] = &host.IOMMUGroup{Number: f.Group}
		}
		groups[f.Group].Members = append(groups[f.Group].Members, member)
	}
	for _, g := range groups {
		if len(g.Members) == 1 { // nobody to ask about
			g.Members[0] = host.Member{Address: g.Members[0].Address}
		}
	}
	for _, f := range n.Functions() {
		h := host.Function{
			Identity: host.Identity{
				Vendor: f.Vendor, Device: f.Device, Class: f.Class, Revision: f.Revision,
				SubVendor: f.SubVendor, SubDevice: f.SubDevice,
			},
			NUMA: host.Node(f.NUMA), Driver: f.Driver, Group: groups[f.Group], Known: true,
		}
		if f.NoNUMAFile {
			h.NUMA = host.NoNode
		}
		elems := strings.Split(f.Path, "/")
		h.Root = elems[0]
		for _, e := range elems[1 : len(elems)-1] {
			if a, err := pci.ParseAddress(e); err == nil {
				h.Bridges = append(h.Bridges, a)
			}
		}
		h.Address, h.VFs = f.Address(), n.VFs(f.Address())
		if pf, ok := physfns[h.Address]; ok {
			h.PhysFn = &pf
		}
		if number, ok := n.Cdev(f.Address()); ok {
			h.Cdev = &host.Cdev{Name: fmt.Sprintf("vfio%d", number)}
			h.Cdev.Major, h.Cdev.Minor = n.DevNumber(number)
		}
		all = append(all, h)
	}
	return all
}

// TestPlatforms holds every fact of every platform against its description.
func TestPlatforms(t *testing.T) {
	for _, p := range sim.Platforms() {
		t.Run(p.Name, func(t *testing.T) {
			r := platformRig(t, p)
			src := r.src
			src.Wanted = nil
			s := src.Look(nil)
			same(t, "functions", s.Functions, expected(r.Node))
			if len(s.Strays) > 0 || len(s.Unread) > 0 || s.Torn() || s.Partial() {
				t.Errorf("strays %v, unread %v, torn %v, partial %v", s.Strays, s.Unread, s.Torn(), s.Partial())
			}
			same(t, "glance", src.Glance(s), s)
			same(t, "glance at nothing", src.Glance(nil), s)
			same(t, "second look", src.Look(s), s)

			// Only what is wanted or has a VFIO device; the rest is not less exact.
			var want []host.Function
			for _, f := range s.Functions {
				if f.Cdev != nil || nvidia(f.Identity) {
					want = append(want, f)
				}
			}
			few := r.src.Look(nil)
			if diff := cmp.Diff(want, few.Functions, options(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("wanted (-want +got):\n%s", diff)
			}
			same(t, "glance at the wanted", r.src.Glance(few), few)
			gpus, switches := 0, 0
			for _, f := range few.Functions {
				switch {
				case f.Cdev == nil || f.Vendor != 0x10de:
				case f.Class.Sub() == 0x0680:
					switches++
				case f.Class.Sub() != 0x0403:
					gpus++
				}
			}
			if gpus != p.GPUs || switches != p.NVSwitches {
				t.Errorf("%d GPUs, %d NVSwitches, want %d, %d", gpus, switches, p.GPUs, p.NVSwitches)
			}
		})
	}
}

// TestGolden has the facts of two functions of a real machine in plain sight.
func TestGolden(t *testing.T) {
	p, err := sim.PlatformByName("hgx-h200")
	must(t, err)
	s := platformRig(t, p).src.Look(nil)
	f := function(t, s, "0000:9a:00.0")
	if f.Root != "pci0000:97" || fmt.Sprint(f.Bridges) != "[0000:97:01.0 0000:98:00.0 0000:99:00.0]" || f.NUMA != 1 ||
		f.Group.Number != "107" || len(f.Companions()) != 0 || f.Driver != "vfio-pci" || f.Device != 0x2335 ||
		f.Cdev.Name != "vfio8" || f.Cdev.State != host.CdevReady {
		t.Errorf("%+v, group %+v, cdev %+v", f, f.Group, f.Cdev)
	}
	nvs := function(t, s, "0000:07:00.0")
	if nvs.Group.Number != "114" || len(nvs.Companions()) != 8 || nvs.Class != 0x068000 || nvs.NUMA != 0 {
		t.Errorf("%+v, companions %v", nvs, nvs.Companions())
	}
	for _, m := range nvs.Companions() {
		if m.Address == nvs.Address || m.VFIO != (m.Class == 0x068000) || m.Driver != map[bool]string{true: "vfio-pci", false: "pcieport"}[m.VFIO] {
			t.Errorf("companion %+v", m)
		}
	}
}

func TestRoots(t *testing.T) {
	same(t, "system", host.System("kata-device-plugin"), host.Roots{
		Sys: "/sys", Dev: "/dev", Proc: "/proc", DevicePlugins: "/var/lib/kubelet/device-plugins", PodResources: "/var/lib/kubelet/pod-resources", CDI: "/var/run/cdi",
		StaticCDI: "/etc/cdi", Run: "/run/kata-device-plugin",
	})
	r := host.Under("/tmp/x", "p")
	if r.VFIO() != "/tmp/x/dev/vfio" || r.VFIODevices() != "/tmp/x/dev/vfio/devices" || r.Run != "/tmp/x/run/p" {
		t.Errorf("%+v", r)
	}
	if host.System("p").VFIODevices() != host.DevicesDir {
		t.Errorf("%s is not %s", host.System("p").VFIODevices(), host.DevicesDir)
	}
}

func TestNil(t *testing.T) {
	var s *host.Snapshot
	if _, ok := s.Function(pci.Address{}); ok {
		t.Error("a function of no snapshot")
	}
	if (&host.Function{}).Companions() != nil {
		t.Error("companions without a group")
	}
}
