package nicconfig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/nicconfig"
	"kata-device-plugin/internal/pci"
)

func parse(t *testing.T, config string, o nicconfig.Options) *nicconfig.Config {
	t.Helper()
	c, err := nicconfig.Parse("config.json", []byte(config), o)
	if err != nil {
		t.Fatalf("%s\n%v", config, err)
	}
	return c
}

// pool parses an entry of resourceList.
func pool(t *testing.T, entry string) nicconfig.Pool {
	t.Helper()
	c := parse(t, `{"resourceList": [`+entry+`]}`, nicconfig.Options{})
	return c.Pools[0]
}

func sriov(name string) nicconfig.Resource {
	return nicconfig.Resource{Prefix: "intel.com", Name: name, Origin: nicconfig.Historical}
}

func rdma(name string) nicconfig.Resource {
	return nicconfig.Resource{Prefix: "rdma", Name: name, Origin: nicconfig.Historical}
}

func rdmaDefaults() nicconfig.RDMANodes {
	return nicconfig.RDMANodes{UMAD: nicconfig.Required, RDMACM: nicconfig.Required}
}

// TestPublic: configurations of the two plugins' public documentation, unchanged in
// content. Of the SR-IOV plugin: deployments/configMap.yaml, docs/config-file,
// docs/subfunctions, docs/ddp/x700. Of the RDMA plugin: deployment/k8s/base, and the
// getting started guide of the NVIDIA Network Operator.
func TestPublic(t *testing.T) {
	intel, mellanox := []pci.ID{0x8086}, []pci.ID{0x15b3}
	nic := []pci.ID{0x154c, 0x10ed}
	want := map[string]nicconfig.Config{
		"sriov-configmap.json": {Pools: []nicconfig.Pool{
			{Resource: sriov("intel_sriov_netdevice"), Selectors: []nicconfig.Selector{{Vendors: intel, Devices: nic, Drivers: []string{"i40evf", "ixgbevf"}}}},
			{Resource: sriov("intel_sriov_dpdk"), Selectors: []nicconfig.Selector{{Vendors: intel, Devices: nic, Drivers: []string{"vfio-pci"},
				PFNames: []nicconfig.PFName{{Name: "enp0s0f0"}, {Name: "enp2s2f1"}}}}},
			{Resource: sriov("mlnx_sriov_rdma"), Selectors: []nicconfig.Selector{{Vendors: mellanox, Devices: []pci.ID{0x1018}, Drivers: []string{"mlx5_ib"}, IsRDMA: true}}},
		}},
		"sriov-operator-node.json": {Pools: []nicconfig.Pool{
			{Resource: sriov("sriovnics"), Selectors: []nicconfig.Selector{{PFNames: []nicconfig.PFName{
				{Name: "ens785f0", Indexes: nicconfig.Indexes{{First: 0, Last: 4}}}, {Name: "ens785f1", Indexes: nicconfig.Indexes{{First: 0, Last: 9}}}}}}},
		}},
		"sriov-subfunctions.json": {Pools: []nicconfig.Pool{
			{Resource: nicconfig.Resource{Prefix: "nvidia.com", Name: "bf2_sf"}, DeviceType: nicconfig.AuxNetDevice, Selectors: []nicconfig.Selector{{
				Vendors: mellanox, Devices: []pci.ID{0xa2d6}, AuxTypes: []string{"sf"},
				PFNames: []nicconfig.PFName{{Name: "p0", Indexes: nicconfig.Indexes{{First: 1, Last: 5}}}}}}},
		}},
		"sriov-ddp.json": {Pools: []nicconfig.Pool{
			{Resource: nicconfig.Resource{Prefix: "intel.com", Name: "x700_gtp"}, Selectors: []nicconfig.Selector{{
				Vendors: intel, Devices: nic[:1], DDPProfiles: []string{"GTPv1-C/U IPv4/IPv6 payload"}}}},
			{Resource: nicconfig.Resource{Prefix: "intel.com", Name: "x700_pppoe"}, Selectors: []nicconfig.Selector{{
				Vendors: intel, Devices: nic[:1], DDPProfiles: []string{"E710 PPPoE and PPPoL2TPv2"}}}},
		}},
		"rdma-configmap.json": {
			Shared: []nicconfig.SharedPool{
				{Resource: rdma("hca_shared_devices_a"), RDMAHCAMax: new(1000), Nodes: rdmaDefaults(), AllowHostInUse: true, Selector: nicconfig.SharedSelector{IfNames: []string{"ib0", "ib1"}}},
				{Resource: rdma("hca_shared_devices_b"), RDMAHCAMax: new(500), Nodes: rdmaDefaults(), AllowHostInUse: true, Selector: nicconfig.SharedSelector{
					Vendors: mellanox, DeviceIDs: []pci.ID{0x1017}, IfNames: []string{"ib3", "ib4"}}},
			},
			Ignored: []nicconfig.Ignored{
				{Path: "kubeletRootDir", Why: "kubelet's directory is where the pod mounts it"},
				{Path: "periodicUpdateInterval", Why: "changes of the hardware are noticed when they happen"},
			},
		},
		"rdma-network-operator.json": {Shared: []nicconfig.SharedPool{
			{Resource: rdma("rdma_shared_device_a"), RDMAHCAMax: new(63), Nodes: rdmaDefaults(), AllowHostInUse: true, Selector: nicconfig.SharedSelector{IfNames: []string{"ens1f0"}}},
		}},
	}
	files, err := filepath.Glob(filepath.Join("testdata", "public", "*"))
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d files, %d are described: %v", len(files), len(want), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[filepath.Base(file)], *parse(t, string(data), nicconfig.Options{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// TestNothing: an empty configuration is one without pools.
func TestNothing(t *testing.T) {
	for _, config := range []string{
		"", "\n\n", " \t\n", "{}", "{ }\n", "\ufeff{}", "---\n", "null\n", "# nothing yet\n", "...\n", `{"resourceList": []}`, `{"configList": []}`,
		`{"resourceList": null, "configList": null}`, `{"resourceList": [], "configList": [], "periodicUpdateInterval": null}`,
		"resourceList: []\n", "resourceList:\nconfigList: ~\n",
	} {
		if diff := cmp.Diff(&nicconfig.Config{}, parse(t, config, nicconfig.Options{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", config, diff)
		}
	}
}

// TestPrefix: the pool's, else the command line's, else the historical one.
func TestPrefix(t *testing.T) {
	const config = `{
	  "resourceList": [{"resourceName": "a", "resourcePrefix": "nvidia.com", "selectors": {"vendors": ["15b3"]}},
	                   {"resourceName": "b", "resourcePrefix": "", "selectors": {"vendors": ["15b3"]}}],
	  "configList":   [{"resourceName": "c", "rdmaHcaMax": 1, "resourcePrefix": "nvidia.com", "devices": ["ib0"]},
	                   {"resourceName": "d", "rdmaHcaMax": 1, "resourcePrefix": null, "devices": ["ib0"]}]}`
	for _, tt := range []struct{ flag, names, defaulted string }{
		{"", "nvidia.com/a intel.com/b nvidia.com/c rdma/d", "intel.com/b rdma/d"},
		{"openshift.io", "nvidia.com/a openshift.io/b nvidia.com/c openshift.io/d", ""},
		{"intel.com", "nvidia.com/a intel.com/b nvidia.com/c intel.com/d", ""},
	} {
		c := parse(t, config, nicconfig.Options{Prefix: tt.flag})
		var names, defaulted []string
		for _, p := range c.Pools {
			names = append(names, p.Resource.String())
		}
		for _, p := range c.Shared {
			names = append(names, p.Resource.String())
		}
		for _, r := range c.Defaulted() {
			defaulted = append(defaulted, r.String())
		}
		if got := strings.Join(names, " "); got != tt.names {
			t.Errorf("--resource-prefix=%s: %s", tt.flag, got)
		}
		if got := strings.Join(defaulted, " "); got != tt.defaulted {
			t.Errorf("--resource-prefix=%s: defaults %s", tt.flag, got)
		}
	}
}

// TestNames has the names that kubelet was seen to accept, and variables.
func TestNames(t *testing.T) {
	for _, tt := range []struct{ prefix, name, variable string }{
		{"foo.com", "bar", "PCIDEVICE_FOO_COM_BAR"},
		{"foo", "bar", "PCIDEVICE_FOO_BAR"},
		{"foo.com", "Bar_X.y-z", "PCIDEVICE_FOO_COM_BAR_X_Y-Z"},
		{"intel.com", "MY-RES", "PCIDEVICE_INTEL_COM_MY-RES"},
		{"limits.foo.com", "x", "PCIDEVICE_LIMITS_FOO_COM_X"},
		{"example.com", "10G", "PCIDEVICE_EXAMPLE_COM_10G"},
		{"kubernetes.io.foo.com", "x", "PCIDEVICE_KUBERNETES_IO_FOO_COM_X"},
		{strings.Repeat("a.", 98) + "bc", "x", "PCIDEVICE_" + strings.Repeat("A_", 98) + "BC_X"}, // 200 characters
		{"a", strings.Repeat("x", 63), "PCIDEVICE_A_" + strings.Repeat("X", 63)},
	} {
		p := pool(t, fmt.Sprintf(`{"resourcePrefix": %q, "resourceName": %q, "selectors": {"vendors": ["15b3"]}}`, tt.prefix, tt.name))
		if p.Resource.Variable() != tt.variable || p.Resource.InfoVariable() != tt.variable+"_INFO" || p.Resource.String() != tt.prefix+"/"+tt.name {
			t.Errorf("%s/%s: %s", tt.prefix, tt.name, p.Resource.Variable())
		}
	}
	if _, err := nicconfig.Parse("c", nil, nicconfig.Options{Prefix: strings.Repeat("a.", 122) + "b"}); err == nil {
		t.Error("a prefix of 245 characters is accepted")
	}
	// Names of files on the node are made of them.
	for config, want := range map[string]string{
		`{"resourcePrefix": "` + strings.Repeat("a.", 99) + `b", "resourceName": "x", "selectors": {"vendors": ["15b3"]}}`:                                                       "has 201 characters",
		`{"resourcePrefix": "a", "resourceName": "b-c", "selectors": {"vendors": ["15b3"]}}, {"resourcePrefix": "a-b", "resourceName": "c", "selectors": {"vendors": ["15b3"]}}`: "a-b/c, whose files on the node have the names of those of a/b-c in line 1",
	} {
		if _, err := nicconfig.Parse("c", []byte(`{"resourceList": [`+config+`]}`), nicconfig.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
	// One name below two prefixes is two resources, whatever the RDMA plugin said.
	parse(t, `{"configList": [{"resourceName": "a", "rdmaHcaMax": 1, "devices": ["ib0"]},
		{"resourceName": "a", "resourcePrefix": "x", "rdmaHcaMax": 1, "devices": ["ib0"]}]}`, nicconfig.Options{})
}

// TestPool has an entry with every key, in the cases of letters that people use.
func TestPool(t *testing.T) {
	got := pool(t, `{"ResourceName": "a", "RESOURCEPREFIX": "x.com", "deviceType": "netDevice", "ExcludeTopology": true, "allowHostInUse": true,
		"sriovMode": true, "SelectorObj": {"any": 1}, "SelectorObjs": null,
		"selectors": [
		  {"Vendors": ["15b3", "8086", "15B3"], "devices": ["101E"], "drivers": ["mlx5_core"], "PciAddresses": ["65:00.2", "0000:AF:00.1", "10000:e1:00.0", "0000:65:00.2"],
		   "acpiIndexes": ["101", "0"], "linkTypes": ["ether", "infiniband"], "ddpProfiles": ["GTP"], "pkeys": ["0x1", "0xABCD", "0x8001"], "IsRdma": true, "NeedVhostNet": true},
		  {"rootdevices": ["02:00.0#3,1-2", "0000:AF:00.0"], "vdpaType": "virtio", "isRdma": false},
		  {"matchAll": true, "needVhostNet": true, "vendors": []}],
		"additionalInfo": {"*": {"token": "a", "k": "g"}, "65:00.7": {"token": "b"}, "0000:AF:00.1": null}}`)
	address := func(s string) pci.Address {
		a, err := pci.ParseAddress(s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	want := nicconfig.Pool{
		Resource: nicconfig.Resource{Prefix: "x.com", Name: "a"}, ExcludeTopology: true, AllowHostInUse: true,
		Selectors: []nicconfig.Selector{
			{Vendors: []pci.ID{0x15b3, 0x8086}, Devices: []pci.ID{0x101e}, Drivers: []string{"mlx5_core"},
				PCIAddresses: []pci.Address{address("0000:65:00.2"), address("0000:af:00.1"), address("10000:e1:00.0")},
				ACPIIndexes:  []uint32{101, 0}, LinkTypes: []nicconfig.LinkType{nicconfig.Ether, nicconfig.InfiniBand}, DDPProfiles: []string{"GTP"},
				PKeys: []uint16{1, 0xabcd, 0x8001}, IsRDMA: true, NeedVhostNet: true},
			{RootDevices: []nicconfig.RootDevice{{Address: address("0000:02:00.0"), Indexes: nicconfig.Indexes{{First: 1, Last: 3}}}, {Address: address("0000:af:00.0")}},
				VDPAType: nicconfig.VirtioVDPA},
			{MatchAll: true, NeedVhostNet: true},
		},
		AdditionalInfo: &nicconfig.AdditionalInfo{All: map[string]string{"token": "a", "k": "g"},
			ByAddress: map[pci.Address]map[string]string{address("0000:65:00.7"): {"token": "b"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for a, want := range map[string]map[string]string{"0000:65:00.7": {"token": "b", "k": "g"}, "0000:65:00.2": {"token": "a", "k": "g"}} {
		if diff := cmp.Diff(want, got.AdditionalInfo.For(address(a))); diff != "" {
			t.Errorf("information of %s (-want +got):\n%s", a, diff)
		}
	}
	if p := pool(t, `{"resourceName": "a", "selectors": {"vendors": ["15b3"]}, "additionalInfo": {}}`); p.AdditionalInfo == nil {
		t.Error("additional information that is empty is none")
	}
	if p := pool(t, `{"resourceName": "a", "selectors": {"vendors": ["15b3"]}}`); p.AdditionalInfo != nil || len(p.AdditionalInfo.For(pci.Address{})) != 0 {
		t.Error("no additional information is some")
	}
	if p := pool(t, `{"resourceName": "a", "deviceType": "accelerator", "selectors": {"acpiIndexes": ["101"]}}`); p.DeviceType != nicconfig.Accelerator ||
		!slices.Equal(p.Selectors[0].ACPIIndexes, []uint32{101}) {
		t.Errorf("D3: the ACPI index of an accelerator: %+v", p)
	}
	for text, want := range map[string]nicconfig.VFIONodes{
		"": nicconfig.GroupNode, `, "vfioNodes": ""`: nicconfig.GroupNode, `, "vfioNodes": "group"`: nicconfig.GroupNode,
		`, "vfioNodes": "cdev"`: nicconfig.CdevNode, `, "VFIONodes": "both"`: nicconfig.BothNodes,
	} {
		if p := pool(t, `{"resourceName": "a", "selectors": {"vendors": ["15b3"]}`+text+`}`); p.VFIO != want {
			t.Errorf("%s: %v", text, p.VFIO)
		}
	}
	c := parse(t, `{"resourceList": [{"resourceName": "a", "sriovMode": true, "SelectorObj": {}, "selectors": {"vendors": ["15b3"]}}]}`, nicconfig.Options{})
	if len(c.Ignored) != 2 || c.Ignored[0].Path != "resourceList[0].sriovMode" || c.Ignored[1].Path != "resourceList[0].SelectorObj" {
		t.Errorf("ignored: %v", c.Ignored)
	}
}
