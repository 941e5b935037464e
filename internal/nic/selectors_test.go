package nic_test

import (
	"strings"
	"testing"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nic"
	"kata-device-plugin/internal/nicconfig"
)

// selectable is B with something for every selector.
func selectable() []host.Function {
	all := base()
	pkey := func(n uint16) func(*host.Function) {
		return func(f *host.Function) { f.Network.RDMA[0].PKey = &n }
	}
	vdpa := func(driver string, node *host.CharDevice) func(*host.Function) {
		return func(f *host.Function) {
			f.Network.VDPA = []host.VDPADevice{{Name: "vdpa0", Driver: driver, Node: node}}
		}
	}
	at(all, "0000:65:00.2").Network.Profile = "GTPv1"
	return append(all,
		function("0000:81:00.0", 0x15b3, 0x101b, 0x020700, "mlx5_core", infiniband("ib0.8001", "ib0"), rdma(0), pkey(0x8001)),
		function("0000:82:00.0", 0x15b3, 0x101b, 0x020000, "mlx5_core", ether("eth9"), rdma(1), pkey(0x8001)),
		function("0000:83:00.0", 0x1af4, 0x1041, 0x020000, "vp_vdpa", vdpa("vhost_vdpa", &host.CharDevice{Path: "/dev/vhost-vdpa-0"})),
		function("0000:83:00.1", 0x1af4, 0x1041, 0x020000, "vp_vdpa", vdpa("virtio_vdpa", nil)),
		function("10000:e1:00.0", 0x8086, 0x1592, 0x028000, "ice", ether("vmd0"), func(f *host.Function) { f.Network.ACPIIndex = new(uint32(7)) }),
		function("0000:90:00.0", 0x10de, 0x2330, 0x030200, "vfio-pci", vfio("9")),
	)
}

// TestSelectors: each selector of netDevice and accelerator, with the devices that it takes.
// What the old plugin does otherwise is said beside it.
func TestSelectors(t *testing.T) {
	for _, tt := range []struct{ selectors, ids string }{
		{`{"vendors":["8086"]}`, "0000:01:00.0 10000:e1:00.0"},
		{`{"vendors":["8086","1AF4"]}`, "0000:01:00.0 0000:83:00.0 0000:83:00.1 10000:e1:00.0"},                    // upper case matched nothing
		{`{"vendors":["10de"]}`, ""},                                                                               // a GPU is no network device
		{`{"devices":["101e"]}`, "0000:65:00.2 0000:65:00.3 0000:65:00.4 0000:65:00.5! 0000:65:00.6 0000:65:00.7"}, // .5 was left out
		{`{"devices":["101e"],"drivers":["mlx5_core"]}`, "0000:65:00.2 0000:65:00.7"},
		{`{"drivers":["mlx5_ib"]}`, ""},
		{`{"pciAddresses":["65:00.3","0000:65:00.2"]}`, "0000:65:00.2 0000:65:00.3"}, // a short address matched nothing
		{`{"pciAddresses":["0000:65:00.0"]}`, ""},                                    // has VFs
		{`{"pciAddresses":["10000:e1:00.0"]}`, "10000:e1:00.0"},
		{`{"acpiIndexes":["7","101"]}`, "10000:e1:00.0"},
		{`{"pfNames":["ens1f0np0#0-1"]}`, "0000:65:00.2 0000:65:00.3"},
		{`{"pfNames":["ens1f1np1"]}`, ""},                                               // no PF by its own name
		{`{"rootDevices":["65:00.1"]}`, ""},                                             // nor by its address
		{`{"pfNames":["ens1f0np0#6"]}`, ""},                                             // no such VF
		{`{"pfNames":["ens1f0v0"]}`, ""},                                                // a VF is no PF
		{`{"pfNames":["ens1f0np"]}`, ""},                                                // no part of a name
		{`{"rootDevices":["0000:65:00.0#5","65:00.0#0"]}`, "0000:65:00.2 0000:65:00.7"}, // the second entry was lost (D4)
		{`{"linkTypes":["infiniband"]}`, "0000:81:00.0"},
		{`{"linkTypes":["ether"],"devices":["101e"]}`, "0000:65:00.2 0000:65:00.3 0000:65:00.4 0000:65:00.5! 0000:65:00.6 0000:65:00.7"}, // by the PF
		{`{"linkTypes":["ether","infiniband"],"devices":["101b"]}`, "0000:81:00.0 0000:82:00.0"},
		{`{"ddpProfiles":["GTPv1"]}`, "0000:65:00.2"}, // was asked wrongly, and of ddptool
		{`{"ddpProfiles":["gtpv1"]}`, ""},
		{`{"pKeys":["0x8001"]}`, "0000:81:00.0"}, // not of RoCE
		{`{"pKeys":["0x1"]}`, ""},
		{`{"isRdma":true}`, "0000:65:00.7 0000:81:00.0 0000:82:00.0"},
		{`{"isRdma":true,"drivers":["vfio-pci"]}`, ""},
		{`{"vdpaType":"vhost"}`, "0000:83:00.0"},
		{`{"vdpaType":"virtio"}`, "0000:83:00.1"},
		{`{"vendors":["1af4"],"needVhostNet":true}`, "0000:83:00.0 0000:83:00.1"}, // filters nothing
		{`[{"pciAddresses":["65:00.4"]},{"pciAddresses":["65:00.3"]}]`, "0000:65:00.3 0000:65:00.4"},
		{`{"matchAll":true}`, "0000:01:00.0 0000:65:00.1 0000:65:00.2 0000:65:00.3 0000:65:00.4 0000:65:00.5! 0000:65:00.6 0000:65:00.7 " +
			"0000:81:00.0 0000:82:00.0 0000:83:00.0 0000:83:00.1 10000:e1:00.0"},
	} {
		check(t, "netDevice", tt.selectors, tt.ids)
	}
	for _, tt := range []struct{ selectors, ids string }{
		{`{"vendors":["8086"]}`, "0000:f7:00.0 0000:f8:00.0"},
		{`{"devices":["0d5d"]}`, "0000:f8:00.0"},
		{`{"drivers":["vfio-pci"]}`, "0000:f7:00.0 0000:f8:00.0"},
		{`{"pciAddresses":["f7:00.0"]}`, "0000:f7:00.0"},
		{`{"acpiIndexes":["7","101"]}`, "0000:f7:00.0"}, // was ignored, so that it took both (D3)
		{`{"matchAll":true}`, "0000:f7:00.0 0000:f8:00.0"},
	} {
		check(t, "accelerator", tt.selectors, tt.ids)
	}
}

// check declares a pool, and compares its devices; ! is behind one that is not healthy.
func check(t *testing.T, deviceType, selectors, ids string) {
	t.Helper()
	d := pools(t, `{"resourceName":"a","deviceType":"`+deviceType+`","selectors":`+selectors+`}`).Declare(snapshot(selectable()), declare.Past{})
	var got []string
	for _, r := range d.Resources {
		for i := range r.Devices {
			id := r.Devices[i].ID
			if !r.Devices[i].Healthy() {
				id += "!"
			}
			got = append(got, id)
		}
	}
	if text := strings.Join(got, " "); text != ids {
		t.Errorf("%s: %s, want %s\n%s", selectors, text, ids, reasons(d.Findings))
	}
	if empty := found(d, finding.NothingSelected()) != ""; empty != (ids == "") {
		t.Errorf("%s: that nothing is selected is said: %v", selectors, empty)
	}
}

// TestSharedSelectors: each selector of a shared pool.
func TestSharedSelectors(t *testing.T) {
	for _, tt := range []struct{ selectors, ids string }{
		{`{"vendors":["15b3"]}`, "0000:65:00.7 0000:81:00.0 0000:82:00.0"}, // VFs as well
		{`{"vendors":["8086"]}`, ""},
		{`{"deviceIDs":["101b"]}`, "0000:81:00.0 0000:82:00.0"},
		{`{"drivers":["mlx5_core"],"deviceIDs":["101e"]}`, "0000:65:00.7"},
		{`{"drivers":["mlx5_ib"]}`, ""},
		{`{"ifNames":["ib0"]}`, "0000:81:00.0"}, // was hidden by the child (D9)
		{`{"ifNames":["ib0.8001"]}`, "0000:81:00.0"},
		{`{"ifNames":["eth9","ens1f0v5"]}`, "0000:65:00.7 0000:82:00.0"},
		{`{"ifNames":["ETH9"]}`, ""},
		{`{"linkTypes":["infiniband"]}`, "0000:81:00.0"},
		{`{"linkTypes":["ether"]}`, "0000:65:00.7 0000:82:00.0"},
		{`{"matchAll":true}`, "0000:65:00.7 0000:81:00.0 0000:82:00.0"},
	} {
		d := shared(t, `{"resourceName":"a","sharesPerDevice":1,"selectors":`+tt.selectors+`}`).Declare(snapshot(selectable()), declare.Past{})
		var got []string
		for _, r := range d.Resources {
			for i := range r.Devices {
				got = append(got, strings.TrimSuffix(r.Devices[i].ID, "::0"))
			}
		}
		if text := strings.Join(got, " "); text != tt.ids {
			t.Errorf("%s: %s, want %s\n%s", tt.selectors, text, tt.ids, reasons(d.Findings))
		}
	}
}

// TestUplink: which interface names a PF. The old plugin takes the first in the alphabet.
func TestUplink(t *testing.T) {
	type i = host.Interface
	for _, tt := range []struct {
		what  string
		all   []i
		names string // that select its VF
	}{
		{"one", []i{{Name: "p0"}}, "p0"},
		{"none", nil, ""},
		{"switchdev, as in SDP#383", []i{{Name: "58609951635cbfa", SwitchID: "9c", PortName: "pf0vf0"}, {Name: "ens8f1", SwitchID: "9c", PortName: "p1"},
			{Name: "ens8f1_0", SwitchID: "9c", PortName: "pf0vf1"}}, "ens8f1"},
		{"switchdev without port names", []i{{Name: "a", SwitchID: "9c", PortName: "pf0vf0"}, {Name: "b", SwitchID: "9c"}}, "b"},
		{"switchdev with something else", []i{{Name: "a"}, {Name: "b", SwitchID: "9c", PortName: "p0"}}, "b"},
		{"a subfunction's", []i{{Name: "a", SwitchID: "9c", PortName: "pf0sf88"}, {Name: "b", SwitchID: "9c", PortName: "p0"}}, "b"},
		{"IPoIB child", []i{{Name: "a.8001"}, {Name: "ib1"}}, "ib1"},
		{"IPoIB child alone", []i{{Name: "ib1.8001"}}, "ib1.8001"},
		{"two ports on one function", []i{{Name: "a"}, {Name: "b"}}, "a b"}, // only a
	} {
		all := base()
		at(all, "0000:65:00.0").Network.Interfaces = tt.all
		var got []string
		for _, name := range []string{"p0", "58609951635cbfa", "ens8f1", "ens8f1_0", "a", "b", "a.8001", "ib1", "ib1.8001"} {
			d := pools(t, `{"resourceName":"a","selectors":{"pfNames":["`+strings.ToUpper(name)+`#0"]}}`).Declare(snapshot(all), declare.Past{})
			if len(d.Resources) > 0 {
				got = append(got, name)
			}
		}
		if text := strings.Join(got, " "); text != tt.names {
			t.Errorf("%s: %s", tt.what, text)
		}
	}
}

// TestSubfunctions: auxNetDevice. The parent may have VFs, and a domain of five digits, with
// which the old plugin never returns (D14).
func TestSubfunctions(t *testing.T) {
	sf := func(name string, number uint32, driver string, n int) host.Subfunction {
		f := function("0000:00:00.0", 0, 0, 0, "", ether("enp"+name[len(name)-1:]), rdma(n))
		return host.Subfunction{Name: name, Number: number, Driver: driver, Interfaces: f.Network.Interfaces, RDMA: f.Network.RDMA}
	}
	all := base()
	at(all, "0000:65:00.0").Network.Subfunctions = []host.Subfunction{
		sf("mlx5_core.sf.4", 88, "mlx5_core.sf", 4), sf("mlx5_core.sf.5", 89, "mlx5_core.sf", 5), sf("mlx5_core.sf.10", 90, "", 6)}
	all = append(all, function("10000:e1:00.0", 0x15b3, 0xa2d6, 0x020000, "mlx5_core", ether("vmd0"), func(f *host.Function) {
		f.Network.Subfunctions = []host.Subfunction{sf("mlx5_core.sf.7", 88, "mlx5_core.sf", 7)}
	}))
	for _, tt := range []struct{ selectors, ids string }{
		{``, "mlx5_core.sf.4 mlx5_core.sf.5 mlx5_core.sf.10 HST036 mlx5_core.sf.7"},
		{`,"vendors":["8086"]`, ""},
		{`,"devices":["a2d6"]`, "mlx5_core.sf.7"}, // of the parent
		{`,"drivers":["mlx5_core"]`, "mlx5_core.sf.4 mlx5_core.sf.5 mlx5_core.sf.10 HST036 mlx5_core.sf.7"},
		{`,"drivers":["mlx5_core.sf"]`, ""},
		{`,"pfNames":["ens1f0np0#88-89"]`, "mlx5_core.sf.4 mlx5_core.sf.5"},
		{`,"pfNames":["VMD0"]`, "mlx5_core.sf.7"},
		{`,"rootDevices":["65:00.0#90"]`, "mlx5_core.sf.10 HST036"},
		{`,"linkTypes":["infiniband"]`, ""},
		{`,"linkTypes":["ether"],"rootDevices":["65:00.0#88"],"isRdma":true`, "mlx5_core.sf.4"},
	} {
		d := pools(t, `{"resourceName":"a","deviceType":"auxNetDevice","selectors":{"auxTypes":["sf"]`+tt.selectors+`}}`).Declare(snapshot(all), declare.Past{})
		got := strings.ReplaceAll(strings.ReplaceAll(told(d), "intel.com/a ", ""), "\n", " ")
		if strings.TrimSpace(got) != tt.ids {
			t.Errorf("%s: %s", tt.selectors, got)
		}
	}
	r := pools(t, `{"resourceName":"a","deviceType":"auxNetDevice","selectors":{"auxTypes":["sf"],"isRdma":true,"needVhostNet":true},
		"additionalInfo":{"65:00.0":{"rail":"2"}}}`)
	d := r.Declare(snapshot(all), declare.Past{})
	dev := device(t, d, "intel.com/a", "mlx5_core.sf.4")
	if got := nodes(dev); got != "/dev/infiniband/issm4 rw\n/dev/infiniband/rdma_cm rw\n/dev/infiniband/umad4 rw\n/dev/infiniband/uverbs4 rw\n/dev/net/tun rw\n/dev/vhost-net rw\n" {
		t.Errorf("nodes:\n%s", got)
	}
	if dev.Function.NUMA != 1 || dev.About["extra"]["rail"] != "2" || dev.About["generic"]["deviceID"] != "mlx5_core.sf.4" {
		t.Errorf("node %d, %v", dev.Function.NUMA, dev.About)
	}
	if _, ok := r.DeviceInfo("intel.com/a", dev); ok {
		t.Error("a subfunction has a device-info file")
	}
}

// TestNames: sockets are told apart, and short enough for a path of kubelet's.
func TestNames(t *testing.T) {
	r := rules(t, `{"resourceList":[{"resourceName":"vfio","selectors":{"matchAll":true}}],"configList":[{"resourceName":"vfio","rdmaHcaMax":1,"selectors":{"matchAll":true}}]}`)
	if got := r.Names(); len(got) != 2 || got[0] != (declare.Name{Resource: "intel.com/vfio", Socket: "kata-nic-intel.com_vfio"}) || got[1].Socket != "kata-nic-rdma_vfio" {
		t.Errorf("%v", got)
	}
	const long = "x123456789-123456789-123456789-123456789-123456789-123456789-12"
	c := &nicconfig.Config{}
	for _, of := range []nicconfig.Resource{
		{Prefix: "a-b", Name: "c"}, {Prefix: "a", Name: "b-c"}, {Prefix: "a", Name: "b_c"}, {Prefix: "a", Name: "b.c"}, {Prefix: "a.b", Name: "c"},
		{Prefix: "a", Name: "B_c"}, {Prefix: "a", Name: "b-c-0123abcd"}, {Prefix: "example.com", Name: long}, {Prefix: "example.com", Name: long[:62] + "3"},
		{Prefix: "example.org", Name: long}, {Prefix: "example.com", Name: long[:39]}, {Prefix: "example.com", Name: long[:40]}, {Prefix: strings.Repeat("a.", 120) + "a", Name: "b"},
	} {
		c.Pools = append(c.Pools, nicconfig.Pool{Resource: of})
	}
	seen := map[string]string{}
	for _, n := range nic.New(c).Names() {
		if other, ok := seen[n.Socket]; ok || len(n.Socket) > 60 || !strings.HasPrefix(n.Socket, "kata-nic-") || strings.Contains(n.Socket, "/") {
			t.Errorf("%s has the socket %s (%d), as %s", n.Resource, n.Socket, len(n.Socket), other)
		}
		seen[n.Socket] = n.Resource
	}
}

// TestLinkLayer: an InfiniBand function without ib_ipoib has no interface that would tell its
// link. The old plugins take it for one without a link.
func TestLinkLayer(t *testing.T) {
	for layer, want := range map[string]string{"InfiniBand": "infiniband", "Ethernet": "ether", "Unknown": ""} {
		f := function("0000:17:00.0", 0x15b3, 0x101b, 0x020700, "mlx5_core", rdma(0), func(f *host.Function) { f.Network.RDMA[0].LinkLayer = layer })
		for _, link := range []string{"ether", "infiniband"} {
			d := pools(t, `{"resourceName":"a","selectors":{"linkTypes":["`+link+`"]}}`).Declare(snapshot([]host.Function{f}), declare.Past{})
			if (len(d.Resources) > 0) != (link == want) {
				t.Errorf("%s is %s: %v\n%s", layer, link, len(d.Resources) > 0, reasons(d.Findings))
			}
		}
	}
}
