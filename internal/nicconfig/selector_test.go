package nicconfig_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/nicconfig"
	"kata-device-plugin/internal/pci"
)

// TestIndexes: lists and ranges, and the union of several entries for one PF. The SR-IOV
// plugin took the first entry only (D4).
func TestIndexes(t *testing.T) {
	for _, tt := range []struct {
		entries string
		want    []nicconfig.PFName
	}{
		{`"pf0"`, []nicconfig.PFName{{Name: "pf0"}}},
		{`"pf0#0"`, []nicconfig.PFName{{Name: "pf0", Indexes: nicconfig.Indexes{{First: 0, Last: 0}}}}},
		{`"netpf0#0,2-7,9"`, []nicconfig.PFName{{Name: "netpf0", Indexes: nicconfig.Indexes{{First: 0, Last: 0}, {First: 2, Last: 7}, {First: 9, Last: 9}}}}},
		{`"ENS1F0NP0#0-1,3","ens1f0np0#5"`, []nicconfig.PFName{{Name: "ENS1F0NP0", Indexes: nicconfig.Indexes{{First: 0, Last: 1}, {First: 3, Last: 3}, {First: 5, Last: 5}}}}}, // T2
		{`"pf0#5-9","pf1#1","pf0#0-4,7"`, []nicconfig.PFName{{Name: "pf0", Indexes: nicconfig.Indexes{{First: 0, Last: 9}}}, {Name: "pf1", Indexes: nicconfig.Indexes{{First: 1, Last: 1}}}}},
		{`"pf0#1","pf0"`, []nicconfig.PFName{{Name: "pf0"}}},
		{`"pf0","pf0#1"`, []nicconfig.PFName{{Name: "pf0"}}},
		{`"pf0#00,01"`, []nicconfig.PFName{{Name: "pf0", Indexes: nicconfig.Indexes{{First: 0, Last: 1}}}}},
		{`"pf0#0-4294967295,5"`, []nicconfig.PFName{{Name: "pf0", Indexes: nicconfig.Indexes{{First: 0, Last: 1<<32 - 1}}}}},
	} {
		p := pool(t, `{"resourceName": "a", "selectors": {"pfNames": [`+tt.entries+`]}}`)
		if diff := cmp.Diff(tt.want, p.Selectors[0].PFNames); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.entries, diff)
		}
	}
	p := pool(t, `{"resourceName": "a", "selectors": {"rootDevices": ["65:00.0#5", "0000:65:00.0#0-1", "0000:65:00.1"]}}`)
	devices := p.Selectors[0].RootDevices
	if len(devices) != 2 || devices[0].Address != (pci.Address{Bus: 0x65}) {
		t.Fatalf("%+v", devices)
	}
	for i, want := range []bool{true, true, false, false, false, true, false} {
		if devices[0].Indexes.Has(uint32(i)) != want || !devices[1].Indexes.Has(uint32(i)) {
			t.Errorf("VF %d: %+v", i, devices)
		}
	}
}

// TestShared has an entry of configList with every key.
func TestShared(t *testing.T) {
	c := parse(t, `{"periodicUpdateInterval": 0, "ConfigList": [
		{"resourceName": "a-b", "RdmaHcaMax": 0, "sharesPerDevice": 63, "excludeTopology": true, "allowHostInUse": false, "devices": [],
		 "rdmaNodes": {"umad": "optional", "issm": "required", "UCM": "never", "rdmaCM": "never"},
		 "selectors": {"Vendors": ["15B3"], "deviceIds": ["1017"], "drivers": ["mlx5_core"], "ifnames": ["ib0", "a.8001"], "linkTypes": ["infiniband"]}},
		{"resourceName": "b", "sharesPerDevice": 1, "selectors": {"matchAll": true}},
		{"resourceName": "c", "rdmaHcaMax": 32768, "selectors": {}, "devices": ["ib0", "ib0"]}]}`, nicconfig.Options{})
	want := []nicconfig.SharedPool{
		{Resource: rdma("a-b"), RDMAHCAMax: new(0), SharesPerDevice: new(63), ExcludeTopology: true,
			Nodes: nicconfig.RDMANodes{UMAD: nicconfig.Optional, ISSM: nicconfig.Required, UCM: nicconfig.Never, RDMACM: nicconfig.Never},
			Selector: nicconfig.SharedSelector{Vendors: []pci.ID{0x15b3}, DeviceIDs: []pci.ID{0x1017}, Drivers: []string{"mlx5_core"},
				IfNames: []string{"ib0", "a.8001"}, LinkTypes: []nicconfig.LinkType{nicconfig.InfiniBand}}},
		{Resource: rdma("b"), SharesPerDevice: new(1), Nodes: rdmaDefaults(), AllowHostInUse: true, Selector: nicconfig.SharedSelector{MatchAll: true}},
		{Resource: rdma("c"), RDMAHCAMax: new(32768), Nodes: rdmaDefaults(), AllowHostInUse: true, Selector: nicconfig.SharedSelector{IfNames: []string{"ib0"}}},
	}
	if diff := cmp.Diff(want, c.Shared); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFacts has the configurations of the test cases T1 to T6 of the functional
// specification that was drawn from both plugins.
func TestFacts(t *testing.T) {
	for name, config := range map[string]string{
		"T1": `{"resourceList":[{"resourceName":"vfio","selectors":{"drivers":["vfio-pci"]}}]}`,
		"T2": `{"resourceList":[{"resourceName":"pf","selectors":{"pfNames":["ENS1F0NP0#0-1,3","ens1f0np0#5"]}}]}`,
		"T3": `{"resourceList":[{"resourceName":"a","selectors":[{"vendors":["15b3"],"devices":["101e"],"needVhostNet":true},{"vendors":["15b3"]}]},
			{"resourceName":"b","selectors":{"drivers":["vfio-pci"]}}]}`,
		"T4": `{"resourceList":[{"resourceName":"rdma","resourcePrefix":"nvidia.com","selectors":{"vendors":["15b3"],"isRdma":true},
			"additionalInfo":{"*":{"token":"a","k":"g"},"0000:65:00.7":{"token":"b"}}}]}`,
		"T5": `{"resourceList":[{"resourceName":"uio","selectors":{"drivers":["igb_uio"]},"excludeTopology":true},
			{"resourceName":"pf","selectors":{"pciAddresses":["0000:65:00.1"]}},
			{"resourceName":"acc","deviceType":"accelerator","selectors":{"acpiIndexes":["101"]}}]}`,
		"T6": `{"configList":[{"resourceName":"ib","rdmaHcaMax":3,"selectors":{"ifNames":["ib0","ib1"]}},
			{"resourceName":"roce","rdmaHcaMax":2,"selectors":{"linkTypes":["ether"]},"rdmaNodes":{"umad":"optional"}}]}`,
		"both lists": `{"resourceList":[{"resourcePrefix":"nvidia.com","resourceName":"hostdev","selectors":{"vendors":["15b3"],"isRdma":true}}],
			"configList":[{"resourceName":"rdma_shared_device_a","rdmaHcaMax":63,"selectors":{"vendors":["15b3"],"deviceIDs":["101b"]}}]}`,
	} {
		c := parse(t, config, nicconfig.Options{})
		pools := map[string][2]int{"T1": {1, 0}, "T2": {1, 0}, "T3": {2, 0}, "T4": {1, 0}, "T5": {3, 0}, "T6": {0, 2}, "both lists": {1, 1}}[name]
		if len(c.Pools) != pools[0] || len(c.Shared) != pools[1] {
			t.Errorf("%s: %d and %d pools", name, len(c.Pools), len(c.Shared))
		}
		if name == "T3" && (len(c.Pools[0].Selectors) != 2 || !c.Pools[0].Selectors[0].NeedVhostNet || c.Pools[0].Selectors[1].NeedVhostNet || c.Pools[1].Resource.Name != "b") {
			t.Errorf("%s: order is lost: %+v", name, c.Pools)
		}
	}
}

func TestDeviceType(t *testing.T) {
	for text, want := range map[string]nicconfig.DeviceType{"netDevice": nicconfig.NetDevice, "accelerator": nicconfig.Accelerator, "auxNetDevice": nicconfig.AuxNetDevice} {
		p := pool(t, `{"resourceName": "a", "deviceType": "`+text+`", "selectors": {"vendors": ["15b3"]`+map[bool]string{true: `, "auxTypes": ["sf"]`}[text == "auxNetDevice"]+`}}`)
		if p.DeviceType != want || p.DeviceType.String() != text {
			t.Errorf("%s: %v", text, p.DeviceType)
		}
	}
	if got := nicconfig.DeviceType(99).String(); got != "unknown" {
		t.Error(got)
	}
}
