package nic_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nic"
	"kata-device-plugin/internal/nicconfig"
	"kata-device-plugin/internal/pci"
)

// rules compiles a configuration.
func rules(t testing.TB, config string) *nic.Rules {
	t.Helper()
	c, err := nicconfig.Parse("config.json", []byte(config), nicconfig.Options{})
	if err != nil {
		t.Fatalf("%s\n%v", config, err)
	}
	return nic.New(c)
}

// pools and shared are configurations of one of the two lists.
func pools(t testing.TB, entries string) *nic.Rules {
	t.Helper()
	return rules(t, `{"resourceList": [`+entries+`]}`)
}

func shared(t testing.TB, entries string) *nic.Rules {
	t.Helper()
	return rules(t, `{"configList": [`+entries+`]}`)
}

func addr(s string) pci.Address {
	a, err := pci.ParseAddress(s)
	if err != nil {
		panic(err)
	}
	return a
}

// function is a healthy one.
func function(address string, vendor, device pci.ID, class pci.Class, driver string, changes ...func(*host.Function)) host.Function {
	f := host.Function{
		Path: pci.Path{Root: "pci0000:00", Address: addr(address)}, NUMA: 1, Driver: driver, Known: true,
		Identity: host.Identity{Vendor: vendor, Device: device, Class: class}, Network: &host.Network{VFIndex: -1},
	}
	for _, change := range changes {
		change(&f)
	}
	return f
}

func numa(n host.Node) func(*host.Function) { return func(f *host.Function) { f.NUMA = n } }

// ether has interfaces, each with the number of its place.
func ether(names ...string) func(*host.Function) {
	return func(f *host.Function) {
		for i, name := range names {
			f.Network.Interfaces = append(f.Network.Interfaces, host.Interface{Name: name, Index: 10 + i, Type: host.TypeEther})
		}
	}
}

func infiniband(names ...string) func(*host.Function) {
	return func(f *host.Function) {
		ether(names...)(f)
		for i := range f.Network.Interfaces {
			f.Network.Interfaces[i].Type = host.TypeInfiniBand
		}
	}
}

// vf makes a VF of a PF.
func vf(pf string, index int) func(*host.Function) {
	return func(f *host.Function) {
		a := addr(pf)
		f.PhysFn, f.Network.VFIndex = &a, index
	}
}

// pf has VFs of its own.
func pf(vfs ...string) func(*host.Function) {
	return func(f *host.Function) {
		for _, v := range vfs {
			f.VFs = append(f.VFs, addr(v))
		}
		f.Network.MaxVFs = 8
	}
}

// vfio is a group of one, with its node.
func vfio(group string) func(*host.Function) {
	return func(f *host.Function) {
		f.Group = &host.IOMMUGroup{Number: group, Members: []host.Member{{Address: f.Address}}}
		f.Network.GroupNode = &host.CharDevice{Path: "/dev/vfio/" + group}
	}
}

// cdev is a VFIO character device that is ready.
func cdev(name string) func(*host.Function) {
	return func(f *host.Function) { f.Cdev = &host.Cdev{Name: name, Major: 511} }
}

func char(paths ...string) []host.CharDevice {
	var all []host.CharDevice
	for _, p := range paths {
		all = append(all, host.CharDevice{Path: p})
	}
	return all
}

// rdma is an RDMA device mlx5_N with umadN, issmN and uverbsN.
func rdma(n int) func(*host.Function) {
	return func(f *host.Function) {
		at := func(kind string) []host.CharDevice { return char(fmt.Sprintf("/dev/infiniband/%s%d", kind, n)) }
		f.Network.RDMA = append(f.Network.RDMA, host.RDMADevice{
			Name: fmt.Sprintf("mlx5_%d", n), UVerbs: at("uverbs"), UMAD: at("umad"), ISSM: at("issm"),
		})
	}
}

// shares is an RDMA device of a shared pool: without issm, as the kernel has it for Ethernet.
func shares(n int, kinds ...string) func(*host.Function) {
	return func(f *host.Function) {
		rdma(n)(f)
		d := &f.Network.RDMA[len(f.Network.RDMA)-1]
		d.ISSM = nil
		if !slices.Contains(kinds, "umad") {
			d.UMAD = nil
		}
	}
}

// snapshot has the functions in order, and the shared nodes but for some.
func snapshot(functions []host.Function, without ...string) *host.Snapshot {
	s := &host.Snapshot{Functions: slices.Clone(functions), Shared: map[string]host.CharDevice{}}
	slices.SortFunc(s.Functions, func(a, b host.Function) int { return a.Address.Compare(b.Address) })
	for _, path := range host.SharedNodes() {
		n := host.CharDevice{Path: path}
		if slices.Contains(without, path) {
			n.Fault = "no node " + path
		}
		s.Shared[path] = n
	}
	return s
}

// base is the tree B.
func base() []host.Function {
	const nic, acc = pci.Class(0x020000), pci.Class(0x120000)
	return []host.Function{
		function("0000:01:00.0", 0x8086, 0x1521, nic, "igb", numa(0), ether("eno1")),
		function("0000:65:00.0", 0x15b3, 0x101d, nic, "mlx5_core", ether("ens1f0np0"),
			pf("0000:65:00.2", "0000:65:00.3", "0000:65:00.4", "0000:65:00.5", "0000:65:00.6", "0000:65:00.7")),
		function("0000:65:00.1", 0x15b3, 0x101d, nic, "mlx5_core", numa(host.NoNode), ether("ens1f1np1"), pf()),
		function("0000:65:00.2", 0x15b3, 0x101e, nic, "mlx5_core", vf("0000:65:00.0", 0), ether("ens1f0v0")),
		function("0000:65:00.3", 0x15b3, 0x101e, nic, "vfio-pci", vf("0000:65:00.0", 1), vfio("41")),
		function("0000:65:00.4", 0x15b3, 0x101e, nic, "vfio-pci", vf("0000:65:00.0", 2), vfio("42")),
		function("0000:65:00.5", 0x15b3, 0x101e, nic, "", vf("0000:65:00.0", 3)),
		function("0000:65:00.6", 0x15b3, 0x101e, nic, "igb_uio", vf("0000:65:00.0", 4),
			func(f *host.Function) { f.Network.UIO = char("/dev/uio7") }),
		function("0000:65:00.7", 0x15b3, 0x101e, nic, "mlx5_core", vf("0000:65:00.0", 5), ether("ens1f0v5"), rdma(7)),
		function("0000:f7:00.0", 0x8086, 0x0d5c, acc, "vfio-pci", numa(0), vfio("50"), func(f *host.Function) { f.Network.ACPIIndex = new(uint32(101)) }),
		function("0000:f8:00.0", 0x8086, 0x0d5d, acc, "vfio-pci", numa(0), vfio("51")),
	}
}

// treeB is what the specification calls B: without vhost-net and tun.
func treeB() *host.Snapshot { return snapshot(base(), "/dev/vhost-net", "/dev/net/tun") }

// at finds a function of a list, to change it.
func at(all []host.Function, address string) *host.Function {
	i := slices.IndexFunc(all, func(f host.Function) bool { return f.Address == addr(address) })
	return &all[i]
}

// told is a declaration in a line for each device: resource, ID, the kinds of its faults.
func told(d declare.Declaration) string {
	var b strings.Builder
	for _, r := range d.Resources {
		for i := range r.Devices {
			fmt.Fprintf(&b, "%s %s%s\n", r.Name, r.Devices[i].ID, kinds(r.Devices[i].Faults))
		}
	}
	return b.String()
}

func kinds(all []finding.Finding) string {
	s := ""
	for _, f := range all {
		s += " " + f.ID
	}
	return s
}

// lines makes a text of lines comparable: as told has them.
func lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// expect compares a declaration with lines.
func expect(t *testing.T, d declare.Declaration, want string) {
	t.Helper()
	if got := told(d); got != lines(want) {
		t.Errorf("declared is\n%swant\n%s%s", got, lines(want), reasons(d.Findings))
	}
}

func reasons(all []finding.Finding) string {
	s := ""
	for _, f := range all {
		s += fmt.Sprintf("%s %s: %s\n", f.Resource, f.Device, f)
	}
	return s
}

// found lists the findings of some kinds: "CFG005 intel.com/b 0000:65:00.2".
func found(d declare.Declaration, of ...finding.Kind) string {
	var b strings.Builder
	for _, f := range d.Findings {
		if slices.ContainsFunc(of, func(k finding.Kind) bool { return k.ID == f.ID }) {
			b.WriteString(strings.Join(strings.Fields(f.ID+" "+f.Resource+" "+f.Device), " ") + "\n")
		}
	}
	return b.String()
}

// device finds a declared device.
func device(t *testing.T, d declare.Declaration, resource, id string) *declare.Device {
	t.Helper()
	for _, r := range d.Resources {
		for i := range r.Devices {
			if r.Name == resource && r.Devices[i].ID == id {
				return &r.Devices[i]
			}
		}
	}
	t.Fatalf("there is no %s of %s, but\n%s%s", id, resource, told(d), reasons(d.Findings))
	return nil
}

// nodes are those of devices with their permissions, each once, as a container gets them.
func nodes(devices ...*declare.Device) string {
	var all []string
	add := func(list []declare.Node) {
		for _, n := range list {
			text := n.Path + " " + n.Permissions
			if n.Host != "" {
				text = n.Host + " -> " + text
			}
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	for _, d := range devices {
		add(d.With)
		add(d.Nodes)
	}
	slices.Sort(all)
	return strings.Join(all, "\n") + "\n"
}

// about is what a container is told, as JSON.
func about(t *testing.T, d *declare.Device) string {
	t.Helper()
	text, err := json.Marshal(d.About)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
