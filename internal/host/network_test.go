package host_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sysfs"
)

// adapters wants network controllers and accelerators.
func adapters(id host.Identity) bool { return id.Class>>16 == 0x02 || id.Class>>16 == 0x12 }

// netRig is a rig whose source looks at adapters, on sysfs with faults.
func netRig(t *testing.T, p sim.Platform) (*rig, *faultFS) {
	t.Helper()
	r := platformRig(t, p)
	faults := &faultFS{FS: r.src.Sys.(*sysfs.FS)}
	r.src = host.Source{
		Sys: faults, Dev: devfs.Dir(r.roots.Dev), Wanted: adapters, Network: adapters, Links: r.Links,
	}
	return r, faults
}

// faultFS is sysfs with answers that no file gives: those whose path has this end.
type faultFS struct {
	*sysfs.FS
	end string
	err error
}

func (f *faultFS) fault(op, name string) error {
	if f.end != "" && strings.HasSuffix("/"+name, "/"+f.end) {
		return &fs.PathError{Op: op, Path: name, Err: f.err}
	}
	return nil
}

func (f *faultFS) ReadFile(name string) ([]byte, error) {
	if err := f.fault("read", name); err != nil {
		return nil, err
	}
	return f.FS.ReadFile(name)
}

func (f *faultFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.fault("readdir", name); err != nil {
		return nil, err
	}
	return f.FS.ReadDir(name)
}

func (f *faultFS) ReadLink(name string) (string, error) {
	if err := f.fault("readlink", name); err != nil {
		return "", err
	}
	return f.FS.ReadLink(name)
}

const (
	onboardNIC = "0000:01:00.0"
	nicPF      = "0000:65:00.0"
	idlePF     = "0000:65:00.1"
	netVF      = "0000:65:00.2"
	vfioVF     = "0000:65:00.3"
	bareVF     = "0000:65:00.5"
	uioVF      = "0000:65:00.6"
	rdmaVF     = "0000:65:00.7"
)

// sound are nodes that nothing is wrong with.
func sound(paths ...string) []host.CharDevice {
	var all []host.CharDevice
	for _, p := range paths {
		all = append(all, host.CharDevice{Path: p})
	}
	return all
}

// ether is an Ethernet interface of the node, with its index of now.
func ether(t *testing.T, r *rig, name string) host.Interface {
	t.Helper()
	links, err := r.Links()
	must(t, err)
	for _, l := range links.Links {
		if l.Name == name {
			return host.Interface{Name: name, Index: l.Index, Type: host.TypeEther}
		}
	}
	t.Fatalf("no interface %s", name)
	return host.Interface{}
}

// TestAdapters has every fact of a machine with one adapter of each kind in plain sight.
func TestAdapters(t *testing.T) {
	r, _ := netRig(t, sim.Adapters())
	s := r.src.Look(nil)
	group := func(path string) *host.CharDevice { return &host.CharDevice{Path: path} }
	interfaces := func(name string) []host.Interface { return []host.Interface{ether(t, r, name)} }
	index := uint32(101)
	want := map[string]*host.Network{
		onboardNIC:     {Interfaces: interfaces("eno1"), VFIndex: -1},
		nicPF:          {Interfaces: interfaces("ens1f0np0"), MaxVFs: 8, VFIndex: -1},
		idlePF:         {Interfaces: interfaces("ens1f1np1"), MaxVFs: 8, VFIndex: -1},
		netVF:          {Interfaces: interfaces("ens1f0v0"), VFIndex: 0},
		vfioVF:         {GroupNode: group("/dev/vfio/41"), VFIndex: 1},
		"0000:65:00.4": {GroupNode: group("/dev/vfio/42"), VFIndex: 2},
		bareVF:         {VFIndex: 3},
		uioVF:          {UIO: sound("/dev/uio7"), VFIndex: 4},
		rdmaVF: {Interfaces: interfaces("ens1f0v5"), VFIndex: 5, RDMA: []host.RDMADevice{{
			Name: "mlx5_7", LinkLayer: "Ethernet", UVerbs: sound("/dev/infiniband/uverbs7"),
			UMAD: sound("/dev/infiniband/umad7"), ISSM: sound("/dev/infiniband/issm7"),
		}}},
		"0000:f7:00.0": {ACPIIndex: &index, GroupNode: group("/dev/vfio/50"), VFIndex: -1},
		"0000:f8:00.0": {GroupNode: group("/dev/vfio/51"), VFIndex: -1},
	}
	got := map[string]*host.Network{}
	for i := range s.Functions {
		got[s.Functions[i].Address.String()] = s.Functions[i].Network
	}
	same(t, "facts", got, want)
	if s.Torn() || s.Partial() {
		t.Errorf("torn %v, unread %v", s.Torn(), s.Unread)
	}
	missing := func(path string) host.CharDevice { return host.CharDevice{Path: path, Fault: "no node " + path} }
	same(t, "shared nodes", s.Shared, map[string]host.CharDevice{
		"/dev/vfio/vfio": {Path: "/dev/vfio/vfio"}, "/dev/infiniband/rdma_cm": {Path: "/dev/infiniband/rdma_cm"},
		"/dev/vhost-net": missing("/dev/vhost-net"), "/dev/net/tun": missing("/dev/net/tun"),
	})
	same(t, "again", r.src.Look(s), s)
	same(t, "glance", r.src.Glance(s), s)
	for _, f := range s.Functions {
		again, ok := r.src.Again(s, f.Address)
		if !ok {
			t.Errorf("%s is gone", f.Address)
		}
		same(t, "again", again, f)
	}

	// Nobody asks: not a single fact.
	r.src.Network = nil
	quiet := r.src.Look(nil)
	for _, f := range quiet.Functions {
		if f.Network != nil {
			t.Errorf("%+v", f.Network)
		}
	}
	if len(quiet.Shared) > 0 {
		t.Errorf("%v", quiet.Shared)
	}
	if f, ok := r.src.Again(quiet, addr(t, netVF)); ok {
		t.Errorf("again without a character device: %+v", f)
	}
}

// infiniBand is a machine with HCAs as the RDMA shared plugin finds them: a second
// interface on one of them, and one without MAD.
func infiniBand() sim.Platform {
	hca := func(address string, nic sim.NIC) sim.Function {
		f := gpu(address, "", "mlx5_core")
		f.Vendor, f.Device, f.Class, f.NIC = 0x15b3, 0x1021, 0x020700, &nic
		return f
	}
	child := sim.Interface{Name: "a.8001", Type: 32}
	return sim.Platform{Name: "hcas", Functions: []sim.Function{
		hca("0000:17:00.0", sim.NIC{
			Interfaces: []sim.Interface{{Name: "ib0", Type: 32}},
			RDMA:       []sim.RDMA{{Name: "mlx5_0", InfiniBand: true, PKey: 0x7fff, CM: true}},
		}),
		hca("0000:65:00.0", sim.NIC{
			Interfaces: []sim.Interface{{Name: "ib1", Type: 32}, child}, RDMA: []sim.RDMA{{Name: "mlx5_1", InfiniBand: true}},
		}),
		hca("0000:66:00.0", sim.NIC{Interfaces: []sim.Interface{{Name: "eth2"}}, RDMA: []sim.RDMA{{Name: "mlx5_2", NoMAD: true}}}),
		// Two devices of one function, of which one has a number behind the other's.
		hca("0000:77:00.0", sim.NIC{RDMA: []sim.RDMA{{Name: "mlx5_4", Number: 10}, {Name: "mlx5_3", Number: 9}}}),
	}}
}

func TestRDMA(t *testing.T) {
	r, _ := netRig(t, infiniBand())
	s := r.src.Look(nil)
	key, full := uint16(0x7fff), uint16(0xffff)
	dev := func(name string) []host.CharDevice { return sound("/dev/infiniband/" + name) }
	for address, want := range map[string][]host.RDMADevice{
		"0000:17:00.0": {{
			Name: "mlx5_0", LinkLayer: host.LinkInfiniBand, PKey: &key,
			UVerbs: dev("uverbs0"), UMAD: dev("umad0"), ISSM: dev("issm0"), UCM: dev("ucm0"),
		}},
		"0000:65:00.0": {{Name: "mlx5_1", LinkLayer: host.LinkInfiniBand, PKey: &full, UVerbs: dev("uverbs1"), UMAD: dev("umad1"), ISSM: dev("issm1")}},
		"0000:66:00.0": {{Name: "mlx5_2", LinkLayer: "Ethernet", UVerbs: dev("uverbs2")}},
		"0000:77:00.0": {
			{Name: "mlx5_3", LinkLayer: "Ethernet", UVerbs: dev("uverbs9"), UMAD: dev("umad9"), ISSM: dev("issm9")},
			{Name: "mlx5_4", LinkLayer: "Ethernet", UVerbs: dev("uverbs10"), UMAD: dev("umad10"), ISSM: dev("issm10")},
		},
	} {
		same(t, address, function(t, s, address).Network.RDMA, want)
	}
	var names []string
	for _, i := range function(t, s, "0000:65:00.0").Network.Interfaces {
		names = append(names, i.Name)
		if i.Type != host.TypeInfiniBand || i.Index == 0 {
			t.Errorf("%+v", i)
		}
	}
	if strings.Join(names, " ") != "a.8001 ib1" {
		t.Errorf("interfaces %v", names)
	}
}

// TestChildren has devices that hang below a function: subfunctions and vDPA devices.
func TestChildren(t *testing.T) {
	r, _ := netRig(t, sim.Adapters())
	pf, vf := addr(t, nicPF), addr(t, netVF)
	for _, sf := range []sim.SF{
		{ID: 4, Number: 88, NIC: &sim.NIC{Interfaces: []sim.Interface{{Name: "enp101s0f0s88"}}, RDMA: []sim.RDMA{{Name: "mlx5_20", Number: 20}}}},
		{ID: 11, Number: 9, NIC: &sim.NIC{}},
	} {
		_, err := r.AddSF(pf, sf)
		must(t, err)
	}
	must(t, r.AddVDPA(vf, "vdpa0", "vhost_vdpa"), r.AddVDPA(vf, "odd.name", "virtio_vdpa"), r.AddVDPA(vf, "idle", ""))
	s := r.src.Look(nil)
	same(t, "subfunctions", function(t, s, nicPF).Network.Subfunctions, []host.Subfunction{
		{Name: "mlx5_core.sf.11", Number: 9, Driver: "mlx5_core.sf"},
		{
			Name: "mlx5_core.sf.4", Number: 88, Driver: "mlx5_core.sf", Interfaces: []host.Interface{ether(t, r, "enp101s0f0s88")},
			RDMA: []host.RDMADevice{{
				Name: "mlx5_20", LinkLayer: "Ethernet", UVerbs: sound("/dev/infiniband/uverbs20"),
				UMAD: sound("/dev/infiniband/umad20"), ISSM: sound("/dev/infiniband/issm20"),
			}},
		},
	})
	node := host.CharDevice{Path: "/dev/vhost-vdpa-0"}
	same(t, "vDPA devices", function(t, s, netVF).Network.VDPA, []host.VDPADevice{
		{Name: "idle"}, {Name: "odd.name", Driver: "virtio_vdpa"}, {Name: "vdpa0", Driver: "vhost_vdpa", Node: &node},
	})
	if s.Torn() || s.Partial() || len(function(t, s, rdmaVF).Network.VDPA) > 0 {
		t.Errorf("torn %v, %+v", s.Torn(), function(t, s, rdmaVF).Network)
	}
	for _, name := range []string{"vdpa0", "odd.name", "idle", "mlx5_core.sf.4", "mlx5_core.sf.11"} {
		must(t, r.RemoveChild(name))
	}
	same(t, "removed", r.src.Look(s).Functions, r.src.Look(nil).Functions)
	if n := function(t, r.src.Look(s), nicPF).Network; len(n.Subfunctions) > 0 {
		t.Errorf("%+v", n)
	}
}

// TestSwitchdev has the ports of a switch named, and an interface of its own not.
func TestSwitchdev(t *testing.T) {
	r, faults := netRig(t, sim.Adapters())
	must(t, r.SetSwitchdev(addr(t, nicPF), true))
	s := r.src.Look(nil)
	all := function(t, s, nicPF).Network.Interfaces
	if len(all) != 7 || all[0].Name != "ens1f0np0" || all[0].PortName != "p0" || all[0].SwitchID != "65000ee0f5fe0000" ||
		all[6].Name != "ens1f0np0_5" || all[6].PortName != "pf0vf5" || all[6].SwitchID != all[0].SwitchID {
		t.Errorf("%+v", all)
	}
	if i := function(t, s, idlePF).Network.Interfaces[0]; i.PortName != "" || i.SwitchID != "" {
		t.Errorf("of a single interface: %+v", i)
	}
	// Of one interface the driver knows no port, and what it answers then is no error.
	for _, err := range []error{unix.EOPNOTSUPP, unix.ENODEV, unix.EINVAL} {
		faults.end, faults.err = "ens1f0np0_5/phys_port_name", err
		f := function(t, r.src.Look(s), nicPF)
		if i := f.Network.Interfaces[6]; f.Err != nil || i.PortName != "" || i.SwitchID == "" {
			t.Errorf("%v: %+v, %v", err, i, f.Err)
		}
	}
	faults.err = unix.EIO
	same(t, "unreadable", function(t, r.src.Look(s), nicPF).Network, function(t, s, nicPF).Network)
}

// TestVirtio has an interface below a virtio device.
func TestVirtio(t *testing.T) {
	f := gpu("0000:41:00.0", "", "virtio-pci")
	f.Vendor, f.Device, f.Class = 0x1af4, 0x1041, 0x020000
	f.NIC = &sim.NIC{Interfaces: []sim.Interface{{Name: "enp65s0"}}}
	r, _ := netRig(t, sim.Platform{Name: "guest", Functions: []sim.Function{f}})
	s := r.src.Look(nil)
	same(t, "facts", function(t, s, f.Address().String()).Network, &host.Network{VFIndex: -1, Interfaces: []host.Interface{ether(t, r, "enp65s0")}})
	must(t, r.Unbind(f.Address()))
	if n := function(t, r.src.Look(s), f.Address().String()).Network; len(n.Interfaces) > 0 {
		t.Errorf("%+v", n)
	}
}

// TestNoIOMMUGroup has the node of a group that VFIO invented.
func TestNoIOMMUGroup(t *testing.T) {
	f := gpu("0000:41:00.0", "", "")
	f.Class = 0x020000
	r, _ := netRig(t, sim.Platform{Name: "no IOMMU", Functions: []sim.Function{f}})
	for _, bind := range []func() error{
		func() error { return r.AddNoIOMMU(f.Address()) },
		func() error { return r.AddNoIOMMUWithoutCdev(f.Address()) },
	} {
		must(t, bind())
		n := function(t, r.src.Look(nil), f.Address().String()).Network
		if !n.NoIOMMU || n.GroupNode == nil || *n.GroupNode != (host.CharDevice{Path: "/dev/vfio/noiommu-0"}) {
			t.Errorf("%+v, %+v", n, n.GroupNode)
		}
		must(t, r.Unbind(f.Address()))
		if n := function(t, r.src.Look(nil), f.Address().String()).Network; n.NoIOMMU || n.GroupNode != nil {
			t.Errorf("%+v", n)
		}
	}
}

// TestNodes has what may be wrong with a node.
func TestNodes(t *testing.T) {
	r, _ := netRig(t, sim.Adapters())
	dev := func(path string) string { return filepath.Join(r.roots.Dev, strings.TrimPrefix(path, "/dev")) }
	uverbs := func() host.CharDevice { return function(t, r.src.Look(nil), rdmaVF).Network.RDMA[0].UVerbs[0] }
	const path = "/dev/infiniband/uverbs7"
	if !r.src.HasNode(path) || !r.src.HasNode("/dev/vfio/devices/vfio0") || !r.src.HasNode("/dev/vfio/vfio") {
		t.Error("a node is not seen")
	}
	must(t, r.SetAttribute(addr(t, rdmaVF), "infiniband_verbs/uverbs7/dev", "231:1\n"))
	if c := uverbs(); !strings.HasPrefix(c.Fault, path+" is ") || !strings.HasSuffix(c.Fault, "/infiniband_verbs/uverbs7/dev says 231:1") {
		t.Errorf("another number: %+v", c)
	}
	must(t, os.Remove(dev(path)))
	if c := uverbs(); c.Fault != "no node "+path || !r.src.Look(nil).Torn() || r.src.HasNode(path) {
		t.Errorf("absent: %+v", c)
	}
	must(t, os.WriteFile(dev(path), nil, 0o600))
	if c := uverbs(); c.Fault != path+" is a regular file" || r.src.HasNode(path) {
		t.Errorf("a file: %+v", c)
	}
	must(t, r.RemoveAttribute(addr(t, rdmaVF), "infiniband_verbs/uverbs7/dev"))
	if c := uverbs(); !strings.HasPrefix(c.Fault, "no /sys/devices/") {
		t.Errorf("no number: %+v", c)
	}
	for _, name := range []string{"", "/", "/dev", "/dev/", "dev/vfio/vfio", "/dev/../dev/vfio/vfio", "/sys/class", "/dev/vfio", "/dev/vfio/vfio/"} {
		if r.src.HasNode(name) {
			t.Errorf("%q is a node", name)
		}
	}

	// Shared nodes: of one whose module is loaded the number is known.
	must(t, r.AddShared("/dev/vhost-net"), os.WriteFile(filepath.Join(r.roots.Sys, "class/misc/vhost-net/dev"), []byte("10:9\n"), 0o600))
	s := r.src.Look(nil)
	if c := s.Shared["/dev/vhost-net"]; !strings.HasSuffix(c.Fault, "/sys/class/misc/vhost-net/dev says 10:9") {
		t.Errorf("%+v", c)
	}
	must(t, os.WriteFile(filepath.Join(r.roots.Sys, "class/misc/vhost-net/dev"), []byte("x"), 0o600))
	if later := r.src.Look(s); later.Shared["/dev/vhost-net"] != s.Shared["/dev/vhost-net"] || len(later.Unread) != 1 {
		t.Errorf("%+v, %v", later.Shared, later.Unread)
	}
	must(t, r.RemoveShared("/dev/vhost-net"))
	if c := r.src.Look(s).Shared["/dev/vhost-net"]; c.Fault != "no node /dev/vhost-net" {
		t.Errorf("%+v", c)
	}
}

// TestPlatformNetworks looks at the adapters of every platform.
func TestPlatformNetworks(t *testing.T) {
	for _, p := range sim.Platforms() {
		t.Run(p.Name, func(t *testing.T) {
			r, _ := netRig(t, p)
			s := r.src.Look(nil)
			for _, f := range s.Functions {
				n := f.Network
				if !adapters(f.Identity) {
					if n != nil {
						t.Errorf("%s: %+v", f.Address, n)
					}
					continue
				}
				kernel := f.Driver != "" && f.Driver != "vfio-pci"
				if (len(n.Interfaces) == 1) != kernel || (n.GroupNode != nil) != (f.Driver == "vfio-pci") ||
					(n.VFIndex >= 0) != (f.PhysFn != nil) || (len(n.RDMA) == 1) != strings.HasPrefix(f.Driver, "mlx5") && f.Driver != "ice" {
					t.Errorf("%s on %q: %+v", f.Address, f.Driver, n)
				}
			}
			if s.Torn() || s.Partial() {
				t.Errorf("torn %v, unread %v", s.Torn(), s.Unread)
			}
			same(t, "second look", r.src.Look(s), s)
		})
	}
}
