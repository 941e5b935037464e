package nic_test

import (
	"strings"
	"testing"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// one declares a single VF, with its PF, by a selector that takes it whatever it is.
func one(t *testing.T, extra, beside string, without []string, driver string, changes ...func(*host.Function)) *declare.Device {
	t.Helper()
	all := []host.Function{
		function("0000:65:00.0", 0x15b3, 0x101d, 0x020000, "mlx5_core", ether("p0"), pf("0000:65:00.2")),
		function("0000:65:00.2", 0x15b3, 0x101e, 0x020000, driver, append(changes, vf("0000:65:00.0", 0))...),
	}
	d := pools(t, `{"resourceName":"a","selectors":{"pciAddresses":["65:00.2"]`+extra+`}`+beside+`}`).Declare(snapshot(all, without...), declare.Past{})
	return device(t, d, "intel.com/a", "0000:65:00.2")
}

// TestNodes: what a container is given, by how the device is bound and what the pool asks for.
func TestNodes(t *testing.T) {
	const generic = `"generic":{"deviceID":"0000:65:00.2"}`
	faulty := func(f *host.Function) { f.Network.GroupNode.Fault = "no node" }
	state := func(s host.CdevState) func(*host.Function) {
		return func(f *host.Function) { f.Cdev.State, f.Cdev.Detail = s, "no node /dev/vfio/devices/vfio3" }
	}
	noIOMMU := func(f *host.Function) { f.Network.NoIOMMU, f.Network.GroupNode.Path = true, "/dev/vfio/noiommu-4" }
	const group, devices = "/dev/vfio/41 rw\n/dev/vfio/vfio rw\n", "/dev/vfio/devices/vfio3 rw\n"
	for _, tt := range []struct {
		what, extra, beside string
		without             []string
		driver              string
		changes             []func(*host.Function)
		nodes, about, fault string
	}{
		{"kernel driver", "", "", nil, "mlx5_core", []func(*host.Function){ether("v0")}, "\n", generic, ""},
		{"kernel driver without an interface", "", "", nil, "mlx5_core", nil, "\n", generic, ""},
		{"VFIO by the group", "", "", nil, "vfio-pci", []func(*host.Function){vfio("41"), cdev("vfio3")},
			group, generic + `,"vfio":{"dev-mount":"/dev/vfio/41","mount":"/dev/vfio/vfio"}`, ""},
		{"variant driver, which got nothing (D11)", "", "", nil, "mlx5_vfio_pci", []func(*host.Function){vfio("41")},
			group, generic + `,"vfio":{"dev-mount":"/dev/vfio/41","mount":"/dev/vfio/vfio"}`, ""},
		{"kernel without group nodes", "", "", nil, "vfio-pci", []func(*host.Function){vfio("41"), faulty, cdev("vfio3")},
			devices, generic + `,"vfio":{"cdev-mount":"/dev/vfio/devices/vfio3"}`, ""},
		{"neither", "", "", nil, "vfio-pci", []func(*host.Function){vfio("41"), faulty, cdev("vfio3"), state(host.CdevPending)},
			"/dev/vfio/vfio rw\n", generic + `,"vfio":{"dev-mount":"/dev/vfio/41","mount":"/dev/vfio/vfio"}`, "HST037"},
		{"without a group, which was healthy (D7)", "", "", nil, "vfio-pci", nil,
			"\n", generic + `,"vfio":{"mount":"/dev/vfio/vfio"}`, "HST001"},
		{"without /dev/vfio/vfio", "", "", []string{"/dev/vfio/vfio"}, "vfio-pci", []func(*host.Function){vfio("41")},
			group, generic + `,"vfio":{"dev-mount":"/dev/vfio/41","mount":"/dev/vfio/vfio"}`, "HST037"},
		{"no-IOMMU", "", "", nil, "vfio-pci", []func(*host.Function){vfio("4"), noIOMMU},
			"/dev/vfio/noiommu-4 -> /dev/vfio/4 rw\n/dev/vfio/vfio rw\n", generic + `,"vfio":{"dev-mount":"/dev/vfio/4","mount":"/dev/vfio/vfio"}`, ""},
		{"asked for the cdev", "", `,"vfioNodes":"cdev"`, []string{"/dev/vfio/vfio"}, "vfio-pci", []func(*host.Function){vfio("41"), cdev("vfio3")},
			devices, generic + `,"vfio":{"cdev-mount":"/dev/vfio/devices/vfio3"}`, ""},
		{"asked for a cdev that is not there", "", `,"vfioNodes":"cdev"`, nil, "vfio-pci", []func(*host.Function){vfio("41")},
			"\n", generic + `,"vfio":{}`, "HST037"},
		{"asked for both", "", `,"vfioNodes":"both"`, nil, "vfio-pci", []func(*host.Function){vfio("41"), cdev("vfio3")},
			"/dev/vfio/41 rw\n" + devices + "/dev/vfio/vfio rw\n", generic + `,"vfio":{"cdev-mount":"/dev/vfio/devices/vfio3","dev-mount":"/dev/vfio/41","mount":"/dev/vfio/vfio"}`, ""},
		{"asked for both, has one", "", `,"vfioNodes":"both"`, nil, "vfio-pci", []func(*host.Function){vfio("41"), faulty, cdev("vfio3")},
			devices + "/dev/vfio/vfio rw\n", generic + `,"vfio":{"cdev-mount":"/dev/vfio/devices/vfio3","dev-mount":"/dev/vfio/41","mount":"/dev/vfio/vfio"}`, "HST037"},
		{"uio", "", "", nil, "igb_uio", []func(*host.Function){func(f *host.Function) { f.Network.UIO = char("/dev/uio7") }},
			"/dev/uio7 rw\n", generic + `,"uio":{"mount":"/dev/uio7"}`, ""},
		{"uio_pci_generic, which got nothing (D11)", "", "", nil, "uio_pci_generic", []func(*host.Function){func(f *host.Function) { f.Network.UIO = char("/dev/uio0") }},
			"/dev/uio0 rw\n", generic + `,"uio":{"mount":"/dev/uio0"}`, ""},
		{"uio without its node", "", "", nil, "igb_uio", nil, "\n", generic + `,"uio":{}`, "HST037"},
		{"RDMA", `,"isRdma":true`, "", nil, "mlx5_core", []func(*host.Function){rdma(7)},
			"/dev/infiniband/issm7 rw\n/dev/infiniband/rdma_cm rw\n/dev/infiniband/umad7 rw\n/dev/infiniband/uverbs7 rw\n",
			generic + `,"rdma":{"issm":"/dev/infiniband/issm7","rdma_cm":"/dev/infiniband/rdma_cm","rdma_dev":"mlx5_7","umad":"/dev/infiniband/umad7","uverbs":"/dev/infiniband/uverbs7"}`, ""},
		{"RDMA without rdma_cm and umad, which Ethernet may lack", `,"isRdma":true`, "", []string{"/dev/infiniband/rdma_cm"}, "irdma", []func(*host.Function){shares(7)},
			"/dev/infiniband/uverbs7 rw\n", generic + `,"rdma":{"rdma_dev":"mlx5_7","uverbs":"/dev/infiniband/uverbs7"}`, ""},
		{"RDMA without uverbs", `,"isRdma":true`, "", nil, "mlx5_core", []func(*host.Function){rdma(7), func(f *host.Function) { f.Network.RDMA[0].UVerbs = nil }},
			"/dev/infiniband/issm7 rw\n/dev/infiniband/rdma_cm rw\n/dev/infiniband/umad7 rw\n",
			generic + `,"rdma":{"issm":"/dev/infiniband/issm7","rdma_cm":"/dev/infiniband/rdma_cm","rdma_dev":"mlx5_7","umad":"/dev/infiniband/umad7"}`, "HST008"},
		{"RDMA of two ports: the last is told, all are given", `,"isRdma":true`, "", nil, "mlx5_core", []func(*host.Function){shares(1), shares(2)},
			"/dev/infiniband/rdma_cm rw\n/dev/infiniband/uverbs1 rw\n/dev/infiniband/uverbs2 rw\n",
			generic + `,"rdma":{"rdma_cm":"/dev/infiniband/rdma_cm","rdma_dev":"mlx5_1","uverbs":"/dev/infiniband/uverbs2"}`, ""},
		{"vhost-net", `,"needVhostNet":true`, "", nil, "vfio-pci", []func(*host.Function){vfio("41")},
			"/dev/net/tun rw\n/dev/vfio/41 rw\n/dev/vfio/vfio rw\n/dev/vhost-net rw\n",
			generic + `,"vfio":{"dev-mount":"/dev/vfio/41","mount":"/dev/vfio/vfio"},"vhost":{"net-mount":"/dev/vhost-net","tun-mount":"/dev/net/tun"}`, ""},
		{"vhost-net without tun, of which neither was given", `,"needVhostNet":true`, "", []string{"/dev/net/tun"}, "mlx5_core", nil,
			"/dev/net/tun rw\n/dev/vhost-net rw\n", generic + `,"vhost":{"net-mount":"/dev/vhost-net","tun-mount":"/dev/net/tun"}`, "HST037"},
		{"vDPA vhost", `,"vdpaType":"vhost"`, "", nil, "vp_vdpa", []func(*host.Function){func(f *host.Function) {
			f.Network.VDPA = []host.VDPADevice{{Name: "vdpa3", Driver: "vhost_vdpa", Node: &host.CharDevice{Path: "/dev/vhost-vdpa-0"}}}
		}}, "/dev/vhost-vdpa-0 rw\n", generic + `,"vdpa":{"mount":"/dev/vhost-vdpa-0"}`, ""},
		{"vDPA vhost without its node", `,"vdpaType":"vhost"`, "", nil, "vp_vdpa", []func(*host.Function){func(f *host.Function) {
			f.Network.VDPA = []host.VDPADevice{{Name: "vdpa3", Driver: "vhost_vdpa"}}
		}}, "\n", generic + `,"vdpa":{}`, "HST037"},
		{"vDPA virtio", `,"vdpaType":"virtio"`, "", nil, "vp_vdpa", []func(*host.Function){func(f *host.Function) {
			f.Network.VDPA = []host.VDPADevice{{Name: "vdpa3", Driver: "virtio_vdpa"}}
		}}, "\n", generic + `,"vdpa":{}`, ""},
		{"additional information that is empty", "", `,"additionalInfo":{}`, nil, "mlx5_core", nil, "\n", `"extra":{},` + generic, ""},
		{"no driver", `,"needVhostNet":true`, "", nil, "", nil, "\n",
			generic + `,"vhost":{"net-mount":"/dev/vhost-net","tun-mount":"/dev/net/tun"}`, "HST036"},
		{"companion on a host driver", "", "", nil, "vfio-pci", []func(*host.Function){vfio("41"), func(f *host.Function) {
			f.Group.Members = append(f.Group.Members, host.Member{Address: pci.Address{Bus: 0x66}, Driver: "igb"}, host.Member{Address: pci.Address{Bus: 0x67}, Driver: "pcieport"})
		}}, group, generic + `,"vfio":{"dev-mount":"/dev/vfio/41","mount":"/dev/vfio/vfio"}`, "HST002"},
	} {
		d := one(t, tt.extra, tt.beside, tt.without, tt.driver, tt.changes...)
		if got := nodes(d); got != tt.nodes {
			t.Errorf("%s: nodes\n%s", tt.what, got)
		}
		if got := about(t, d); got != "{"+tt.about+"}" {
			t.Errorf("%s: %s", tt.what, got)
		}
		if got := kinds(d.Faults); got != "" && got != " "+tt.fault || got == "" && tt.fault != "" {
			t.Errorf("%s: faults%s, want %s", tt.what, got, tt.fault)
		}
		for _, f := range d.Faults {
			if f.Device != d.ID || f.Resource != "intel.com/a" {
				t.Errorf("%s: a fault of %s %s", tt.what, f.Resource, f.Device)
			}
		}
	}
}

// TestOrderOfNodes: as the old plugin gives them.
func TestOrderOfNodes(t *testing.T) {
	d := one(t, `,"isRdma":true`, "", nil, "mlx5_core", rdma(7), func(f *host.Function) { f.Network.RDMA[0].UCM = char("/dev/infiniband/ucm7") })
	var got []string
	for _, n := range d.Nodes {
		got = append(got, n.Path[len("/dev/infiniband/"):])
	}
	if len(got) != 4 || got[0] != "ucm7" || got[1] != "issm7" || got[2] != "umad7" || got[3] != "uverbs7" || len(d.With) != 1 {
		t.Errorf("%v, then %v", got, d.With)
	}
}

// TestPolicies: which nodes a shared pool gives and insists on. Older releases of the RDMA
// plugin insist on issm, later ones on rdma_cm, umad and uverbs.
func TestPolicies(t *testing.T) {
	const all = "/dev/infiniband/issm0 rwm\n/dev/infiniband/rdma_cm rwm\n/dev/infiniband/umad0 rwm\n/dev/infiniband/uverbs0 rwm\n"
	for _, tt := range []struct {
		policy  string
		without []string
		device  func(*host.Function)
		nodes   string
		healthy bool
	}{
		{`{}`, nil, rdma(0), all, true},
		{`{}`, nil, shares(0, "umad"), "/dev/infiniband/rdma_cm rwm\n/dev/infiniband/umad0 rwm\n/dev/infiniband/uverbs0 rwm\n", true},
		{`{}`, nil, shares(0), "/dev/infiniband/rdma_cm rwm\n/dev/infiniband/uverbs0 rwm\n", false},
		{`{"umad":"optional"}`, nil, shares(0), "/dev/infiniband/rdma_cm rwm\n/dev/infiniband/uverbs0 rwm\n", true},
		{`{"umad":"never","issm":"never"}`, nil, rdma(0), "/dev/infiniband/rdma_cm rwm\n/dev/infiniband/uverbs0 rwm\n", true},
		{`{"issm":"required"}`, nil, shares(0, "umad"), "/dev/infiniband/rdma_cm rwm\n/dev/infiniband/umad0 rwm\n/dev/infiniband/uverbs0 rwm\n", false},
		{`{}`, []string{"/dev/infiniband/rdma_cm"}, shares(0, "umad"), "/dev/infiniband/umad0 rwm\n/dev/infiniband/uverbs0 rwm\n", false},
		{`{"rdmaCM":"optional"}`, []string{"/dev/infiniband/rdma_cm"}, shares(0, "umad"), "/dev/infiniband/umad0 rwm\n/dev/infiniband/uverbs0 rwm\n", true},
		{`{"rdmaCM":"never"}`, nil, shares(0, "umad"), "/dev/infiniband/umad0 rwm\n/dev/infiniband/uverbs0 rwm\n", true},
		{`{"ucm":"required"}`, nil, rdma(0), all, false},
	} {
		s := snapshot([]host.Function{function("0000:17:00.0", 0x15b3, 0x101b, 0x020000, "mlx5_core", ether("a"), tt.device)}, tt.without...)
		d := shared(t, `{"resourceName":"a","rdmaHcaMax":1,"selectors":{"matchAll":true},"rdmaNodes":`+tt.policy+`}`).Declare(s, declare.Past{})
		dev := device(t, d, "rdma/a", "0000:17:00.0::0")
		if got := nodes(dev); got != tt.nodes || dev.Healthy() != tt.healthy {
			t.Errorf("%s: healthy %v%s, nodes\n%s", tt.policy, dev.Healthy(), kinds(dev.Faults), got)
		}
	}
}

// TestDeviceInfo: the file of a device, with all that the specification has for its type.
// The old plugin never fills in the PF, the representor and vhost-net.
func TestDeviceInfo(t *testing.T) {
	all := base()
	at(all, "0000:65:00.0").Network.Interfaces = []host.Interface{
		{Name: "ens1f0np0", SwitchID: "9c", PortName: "p0"}, {Name: "rep0", SwitchID: "9c", PortName: "pf0vf0"}, {Name: "rep5", SwitchID: "9c", PortName: "c0pf0vf5"},
		{Name: "host5", SwitchID: "9c", PortName: "c1pf0vf5"}, {Name: "other0", SwitchID: "9c", PortName: "pf1vf0"},
	}
	at(all, "0000:65:00.4").Network.VDPA = []host.VDPADevice{{Name: "vdpa3", Driver: "vhost_vdpa", Node: &host.CharDevice{Path: "/dev/vhost-vdpa-0"}}}
	at(all, "0000:65:00.6").Network.VDPA = []host.VDPADevice{{Name: "vdpa4", Driver: "virtio_vdpa"}}
	two := at(all, "0000:65:00.7")
	rdma(8)(two)
	s := snapshot(all)
	r := pools(t, `{"resourceName":"a","selectors":[{"pciAddresses":["65:00.7"],"isRdma":true,"needVhostNet":true},{"vdpaType":"vhost"},{"vdpaType":"virtio"},{"matchAll":true}]}`)
	d := r.Declare(s, declare.Past{})
	for id, want := range map[string]string{
		"0000:65:00.7": `{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:65:00.7","vhost-net":"/dev/vhost-net","rdma-device":"mlx5_7,mlx5_8","pf-pci-address":"0000:65:00.0","representor-device":"rep5"}}`,
		"0000:65:00.2": `{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:65:00.2","pf-pci-address":"0000:65:00.0","representor-device":"rep0"}}`,
		"0000:65:00.3": `{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:65:00.3","pf-pci-address":"0000:65:00.0"}}`,
		"0000:65:00.4": `{"type":"vdpa","version":"1.1.0","vdpa":{"parent-device":"vdpa3","driver":"vhost","path":"/dev/vhost-vdpa-0","pci-address":"0000:65:00.4","pf-pci-address":"0000:65:00.0"}}`,
		"0000:65:00.6": `{"type":"vdpa","version":"1.1.0","vdpa":{"parent-device":"vdpa4","driver":"virtio","pci-address":"0000:65:00.6","pf-pci-address":"0000:65:00.0"}}`,
		"0000:65:00.1": `{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:65:00.1"}}`,
	} {
		dev := device(t, d, "intel.com/a", id)
		devinfo(t, r, "intel.com/a", dev, want)
		if again := r.Again(at(all, id), dev, "intel.com/a"); !again.Healthy() {
			t.Errorf("%s again: %s", id, kinds(again.Faults))
		} else {
			devinfo(t, r, "intel.com/a", &again, want)
		}
		if env := r.Environment("intel.com/a", []*declare.Device{dev}); strings.Contains(env["PCIDEVICE_INTEL_COM_A_INFO"], "rep") {
			t.Errorf("a container is told of the representor: %v", env)
		}
	}
	if _, ok := r.DeviceInfo("intel.com/other", device(t, d, "intel.com/a", "0000:65:00.1")); ok {
		t.Error("a resource of nobody has a device-info file")
	}
	if r.Environment("intel.com/other", []*declare.Device{device(t, d, "intel.com/a", "0000:65:00.1")}) != nil || r.Environment("intel.com/a", nil) != nil {
		t.Error("an environment of nobody")
	}
}
