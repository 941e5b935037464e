package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
)

// manyAdapters has every kind of fact.
func manyAdapters(t *testing.T) (*rig, *faultFS) {
	t.Helper()
	p := sim.Adapters()
	for i := range p.Functions {
		if f := &p.Functions[i]; f.Address() == addr(t, nicPF) {
			f.VFs[0].NIC = &sim.NIC{
				Interfaces: []sim.Interface{{Name: "ib0", Type: 32}},
				RDMA:       []sim.RDMA{{Name: "mlx5_1", Number: 1, InfiniBand: true, CM: true}},
			}
		}
	}
	r, faults := netRig(t, p)
	must(t, r.SetSwitchdev(addr(t, nicPF), true), r.AddVDPA(addr(t, rdmaVF), "vdpa0", "vhost_vdpa"))
	_, err := r.AddSF(addr(t, nicPF), sim.SF{ID: 4, Number: 88, NIC: &sim.NIC{
		Interfaces: []sim.Interface{{Name: "sf88"}}, RDMA: []sim.RDMA{{Name: "mlx5_20", Number: 20}},
	}})
	must(t, err)
	return r, faults
}

// TestNetworkBroken makes everything that is read of a function unreadable in turn: what was
// known stays, and the others are none the wiser.
func TestNetworkBroken(t *testing.T) {
	r, faults := manyAdapters(t)
	before := r.src.Look(nil)
	if before.Torn() || before.Partial() {
		t.Fatalf("torn %v, unread %v", before.Torn(), before.Unread)
	}
	for _, tt := range []struct{ address, broken string }{
		{nicPF, ""}, {nicPF, "net"}, {nicPF, "net/ens1f0np0/ifindex"}, {nicPF, "net/ens1f0np0_3/type"},
		{nicPF, "net/ens1f0np0/phys_switch_id"}, {nicPF, "net/ens1f0np0_1/phys_port_name"}, {nicPF, "sriov_totalvfs"},
		{nicPF, "mlx5_core.sf.4"}, {nicPF, "mlx5_core.sf.4/sfnum"}, {nicPF, "mlx5_core.sf.4/driver"}, {nicPF, "mlx5_core.sf.4/net"},
		{nicPF, "mlx5_core.sf.4/net/sf88/ifindex"}, {nicPF, "mlx5_core.sf.4/infiniband"},
		{nicPF, "mlx5_core.sf.4/infiniband_verbs/uverbs20/dev"},
		{netVF, "infiniband"}, {netVF, "infiniband/mlx5_1/ports/1/link_layer"}, {netVF, "infiniband/mlx5_1/ports/1/pkeys/0"},
		{netVF, "infiniband_verbs"}, {netVF, "infiniband_verbs/uverbs1/ibdev"}, {netVF, "infiniband_verbs/uverbs1/dev"},
		{netVF, "infiniband_mad"}, {netVF, "infiniband_mad/umad1/ibdev"}, {netVF, "infiniband_mad/issm1/dev"},
		{netVF, "infiniband_cm"}, {netVF, "infiniband_cm/ucm1/ibdev"},
		{uioVF, "uio"}, {uioVF, "uio/uio7/dev"},
		{vfioVF, "iommu_group/name"}, {vfioVF, "/class/vfio/41/dev"},
		{rdmaVF, "vdpa0"}, {rdmaVF, "vdpa0/subsystem"}, {rdmaVF, "vdpa0/driver"}, {rdmaVF, "vdpa0/vhost-vdpa-0/dev"},
		{"0000:f7:00.0", "acpi_index"},
	} {
		t.Run(tt.address+" "+tt.broken, func(t *testing.T) {
			faults.end, faults.err = strings.TrimSuffix(tt.address+"/"+tt.broken, "/"), unix.EIO
			if path, ok := strings.CutPrefix(tt.broken, "/"); ok {
				faults.end = path
			}
			if tt.broken == "" { // the directory itself, but not the link to it
				faults.end = strings.TrimPrefix(function(t, before, tt.address).Root, "pci") + "/" + tt.address
				faults.end = "devices/pci0000:64/0000:64:01.0/" + tt.address
			}
			s := r.src.Look(before)
			later := r.src.Look(r.src.Look(s)) // it lasts
			for what, s := range map[string]*host.Snapshot{"look": s, "later": later} {
				if len(s.Functions) != len(before.Functions) || !s.Partial() || s.Torn() {
					t.Errorf("%s: %d functions, partial %v, torn %v", what, len(s.Functions), s.Partial(), s.Torn())
				}
				for _, old := range before.Functions {
					f := function(t, s, old.Address.String())
					same(t, what+": facts", *f, withErr(old, f.Err))
					if broken := old.Address.String() == tt.address; (f.Err != nil) != broken || broken && !errors.Is(f.Err, unix.EIO) {
						t.Errorf("%s: error of %s: %v", what, old.Address, f.Err)
					}
				}
			}
			if f, ok := r.src.Again(before, addr(t, tt.address)); !ok || f.Err == nil {
				t.Errorf("again: %v", f.Err)
			} else {
				same(t, "again", f, withErr(*function(t, before, tt.address), f.Err))
			}
			if f := function(t, r.src.Look(nil), tt.address); f.Err == nil || f.Known {
				t.Errorf("first look: %+v", f)
			}
			faults.end = ""
			same(t, "restored", r.src.Look(later), before)
		})
	}
	t.Run("vDPA bus", func(t *testing.T) {
		faults.end, faults.err = "bus/vdpa/devices", unix.EIO
		s := r.src.Look(before)
		same(t, "functions", s.Functions, before.Functions)
		if len(s.Unread) != 1 || !s.Partial() {
			t.Errorf("%v", s.Unread)
		}
		faults.end = ""
	})
}

// TestOddEntries puts what does not belong there into each directory: it costs only itself.
func TestOddEntries(t *testing.T) {
	r, _ := manyAdapters(t)
	before := r.src.Look(nil)
	for _, f := range r.Functions() {
		dir := filepath.Join(r.roots.Sys, "devices", f.Path)
		for _, name := range []string{"net", "infiniband", "infiniband_verbs", "infiniband_mad", "uio", "mlx5_core.sf.4/net", "vdpa0"} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
				continue
			}
			for _, odd := range []string{"bonding_masters", "uverbs", "umadx", "issm01", "uio", "uio07", "vhost-vdpa-", "mlx5_core.sf.x"} {
				must(t, os.WriteFile(filepath.Join(dir, name, odd), []byte("x"), 0o600))
			}
		}
		for _, odd := range []string{"virtio9", "mlx5_core.sf.9", "mlx5_core.eth.0", ".sf.1", "sf.1", "a.sf.01"} {
			must(t, os.WriteFile(filepath.Join(dir, odd), nil, 0o600))
		}
		for _, class := range []string{"net", "infiniband", "uio"} { // a file in the place of a directory
			if err := os.WriteFile(filepath.Join(dir, class), nil, 0o600); err == nil {
				t.Logf("%s has a file %s", f.Address(), class)
			}
		}
	}
	must(t, os.Symlink("../../../nowhere", filepath.Join(r.roots.Sys, "bus/vdpa/devices/driver")))
	s := r.src.Look(before)
	same(t, "facts", s.Functions, before.Functions)
	if s.Torn() || s.Partial() {
		t.Errorf("torn %v, unread %v", s.Torn(), s.Unread)
	}
}

// TestNetworkGarbled has attributes with a text that the kernel does not write.
func TestNetworkGarbled(t *testing.T) {
	for name, texts := range map[string][]string{
		"net/ens1f0v5/ifindex":                      {"", "0\n", "-3\n", "x\n", "4294967296\n", "2147483648\n", "07\n"},
		"net/ens1f0v5/type":                         {"", "-1\n", "1 \n"},
		"infiniband/mlx5_7/ports/1/link_layer":      {"", "\n", "Ether net\n"},
		"infiniband_verbs/uverbs7/dev":              {"", "231\n", "231:-1\n"},
		"infiniband_verbs/uverbs7/ibdev":            {"", "\n"},
		"mlx5_core.sf.4/sfnum":                      {"", "x\n", "4294967296\n"},
		"mlx5_core.sf.4/infiniband_mad/umad20/port": nil, // nobody reads it
	} {
		r, _ := manyAdapters(t)
		a := addr(t, rdmaVF)
		if strings.HasPrefix(name, "mlx5_core.sf") {
			a = addr(t, nicPF)
		}
		before := r.src.Look(nil)
		for _, text := range texts {
			must(t, r.SetAttribute(a, name, text))
			f := function(t, r.src.Look(before), a.String())
			same(t, name, *f, withErr(*function(t, before, a.String()), f.Err))
			if f.Err == nil || !f.Known || !strings.Contains(f.Err.Error(), "is not a") {
				t.Errorf("%s %q: %v", name, text, f.Err)
			}
		}
	}
}

// TestProfile asks PFs of Intel's for their DDP package, and nobody else.
func TestProfile(t *testing.T) {
	p, err := sim.PlatformByName("sriov-cpu")
	must(t, err)
	r, _ := netRig(t, p)
	asked := map[string]int{}
	name, broken := "gtp", error(nil)
	r.src.Profile = func(a pci.Address) (string, error) {
		asked[a.String()]++
		return name, broken
	}
	s := r.src.Look(nil)
	const pf, vf, mellanox = "0000:31:00.0", "0000:31:01.1", "0000:b1:00.0"
	if len(asked) != 2 || asked[pf] != 1 || asked["0000:31:00.1"] != 1 {
		t.Errorf("asked %v", asked)
	}
	profile := func(s *host.Snapshot, address string) string { return function(t, s, address).Network.Profile }
	if profile(s, pf) != "gtp" || profile(s, vf) != "gtp" || profile(s, mellanox) != "" || profile(s, onboardNIC) != "" {
		t.Errorf("%q %q %q", profile(s, pf), profile(s, vf), profile(s, mellanox))
	}
	name = "comms"
	clear(asked)
	if f, _ := r.src.Again(s, addr(t, pf)); f.Network.Profile != "gtp" || len(asked) > 0 {
		t.Errorf("again: %+v, asked %v", f.Network, asked)
	}
	if f, _ := r.src.Again(s, addr(t, vf)); f.Network.Profile != "gtp" || f.Network.VFIndex != 1 || len(asked) > 0 {
		t.Errorf("again: %+v, asked %v", f.Network, asked)
	}
	broken = errors.New("devlink is busy")
	later := r.src.Look(s)
	if f := function(t, later, pf); !errors.Is(f.Err, broken) || f.Network.Profile != "gtp" || !f.Known || !later.Partial() {
		t.Errorf("%v, %+v", f.Err, f.Network)
	}
	if f := function(t, later, vf); f.Err != nil || f.Network.Profile != "gtp" {
		t.Errorf("%v, %+v", f.Err, f.Network)
	}
	if f := function(t, r.src.Look(nil), pf); f.Known || f.Network.Profile != "" {
		t.Errorf("%+v", f)
	}
}
