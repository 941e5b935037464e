package picture_test

import (
	"errors"
	"testing"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/nic"
	"kata-device-plugin/internal/nicconfig"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sim/simtest"
)

// node lays out a machine and returns a source that looks at all that any program may want.
func node(t testing.TB, p sim.Platform) (*sim.Node, host.Source) {
	t.Helper()
	n, _ := simtest.Node(t, p)
	table, src := declare.Passthrough(), simtest.Source(t, n)
	src.Network, src.Links = nic.Wants, n.Links
	src.Wanted = func(id host.Identity) bool { return table.Wants(id) || nic.Wants(id) }
	return n, src
}

func addr(t testing.TB, s string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(s)
	must(t, err)
	return a
}

func platform(t testing.TB, name string) sim.Platform {
	t.Helper()
	p, err := sim.PlatformByName(name)
	must(t, err)
	return p
}

// take is the inventory of a node with a configuration that has something to say on most.
func take(t testing.TB, src host.Source) *inventory.Inventory {
	t.Helper()
	c, err := nicconfig.Parse("config.json", []byte(`{
	  "resourceList": [
	    {"resourceName": "dpdk", "selectors": {"drivers": ["vfio-pci"]}},
	    {"resourceName": "iavf", "selectors": {"drivers": ["iavf"]}}
	  ],
	  "configList": [{"resourceName": "hca", "rdmaHcaMax": 64, "rdmaNodes": {"rdmaCM": "optional"}, "selectors": {"vendors": ["15b3"]}}]
	}`), nicconfig.Options{})
	must(t, err)
	return inventory.New(src.Look(nil), inventory.Input{Node: "worker-1", NICs: nic.New(c), Name: names})
}

func names(vendor, device pci.ID) string {
	return map[[2]pci.ID]string{
		{0x10de, 0x2330}: "GH100 [H100 SXM5 80GB]", {0x10de, 0x22a3}: "GH100 [H100 NVSwitch]",
		{0x10de, 0x2204}: "GA102 [GeForce RTX 3090]", {0x10de, 0x2941}: "GB200 [HGX GB200]",
		{0x15b3, 0x1021}: "MT2910 Family [ConnectX-7]", {0x15b3, 0x101d}: "MT2892 Family [ConnectX-6 Dx]",
		{0x15b3, 0x101e}: "ConnectX Family mlx5Gen Virtual Function", {0x8086, 0x1592}: "Ethernet Controller E810-C for QSFP",
		{0x8086, 0x1889}: "Ethernet Adaptive Virtual Function", {0x8086, 0x1521}: "I350 Gigabit Network Connection",
	}[[2]pci.ID{vendor, device}]
}

// troubled is a machine with a function in each state.
func troubled(t testing.TB) *inventory.Inventory {
	t.Helper()
	n, src := node(t, platform(t, "hgx-h100"))
	lost, taken, disk := addr(t, "0000:64:00.0"), addr(t, "0000:97:00.0"), addr(t, "0000:01:00.0")
	must(t, n.Unbind(lost), n.Unbind(taken), n.Bind(taken, "nvidia"), n.Unbind(disk), n.Bind(disk, "vfio-pci"), n.PlaceFile("notes.txt", ""),
		besideGPU(t, n))
	i := take(t, src)
	for _, s := range inventory.States() {
		if i.Counts.Count(s) == 0 {
			t.Fatalf("no function is %s", s)
		}
	}
	return i
}

// besideGPU puts a function of the host into the group of a GPU, which cannot be handed out then.
func besideGPU(t testing.TB, n *sim.Node) error {
	t.Helper()
	f := sim.Function{
		Path:   "pci0000:50/0000:50:01.0/0000:51:00.0/0000:52:00.0/0000:53:00.1",
		Vendor: 0x10de, Device: 0x1aef, Class: 0x040300, Group: "16",
	}
	return errors.Join(n.Add(f), n.Bind(addr(t, "0000:53:00.1"), "snd_hda_intel"))
}

// held is a machine whose devices pods have: one that cannot be handed out, one without a CDI name, and
// some that are in order.
func held(t testing.TB) *inventory.Inventory {
	t.Helper()
	n, src := node(t, platform(t, "hgx-h100"))
	must(t, besideGPU(t, n))
	in := inventory.Input{Node: "worker-1", Name: names, Holders: map[string][]inventory.Holder{}, CDI: map[string]inventory.CDI{
		"0000:75:00.0": {Name: "nvidia.com/gpu=0000:75:00.0", State: inventory.CDIMissing},
	}}
	for id, pod := range map[string]string{
		"0000:53:00.0": "train-0", "0000:64:00.0": "train-1", "0000:75:00.0": "train-2", "0000:05:00.0": "train-0",
		"0000:86:00.0": "a-name-that-is-longer-than-the-card-is-wide",
	} {
		in.Holders[id] = []inventory.Holder{{Namespace: "team", Pod: pod, Container: "c"}}
	}
	return inventory.New(src.Look(nil), in)
}

// vfs is a machine with 128 VFs of one PF and a few of another.
func vfs(t testing.TB) *inventory.Inventory {
	t.Helper()
	p := platform(t, "sriov-cpu")
	for k := range p.Functions {
		if f := &p.Functions[k]; f.Vendor == 0x8086 && f.TotalVFs > 0 {
			f.VFs, f.VFOffset = nil, 8
			if f.Address().Function > 0 {
				f.TotalVFs = 0
				continue
			}
			for v := range 128 {
				f.VFs = append(f.VFs, sim.VF{Driver: []string{"vfio-pci", "iavf"}[v%2]})
			}
		}
	}
	n, src := node(t, p)
	must(t, n.Unbind(addr(t, "0000:31:01.3")))
	return take(t, src)
}
