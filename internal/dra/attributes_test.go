package dra_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/dynamic-resource-allocation/deviceattribute"

	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// shown are attributes and capacities as text.
func shown(d *dra.Device) map[string]string {
	all := map[string]string{}
	for name, a := range d.Attributes() {
		switch {
		case a.StringValue != nil:
			all[string(name)] = *a.StringValue
		case a.IntValue != nil:
			all[string(name)] = fmt.Sprint(*a.IntValue)
		case a.BoolValue != nil:
			all[string(name)] = fmt.Sprint(*a.BoolValue)
		}
	}
	for name, c := range d.Capacity() {
		all[string(name)] = c.Value.String()
	}
	return all
}

// TestAttributes changes one fact after the other of a device of which everything is known.
func TestAttributes(t *testing.T) {
	whole := func(f *host.Function) {
		f.PCIeLink = host.PCIeLink{MTs: 32000, Lanes: 16}
		f.Bridges = append(f.Bridges, pci.Address{Bus: 0x41}, pci.Address{Bus: 0x42})
	}
	base := map[string]string{
		"resource.kubernetes.io/pciBusID": "0000:41:00.0", "resource.kubernetes.io/pcieRoot": "pci0000:40", "resource.kubernetes.io/numaNode": "1",
		"type": "gpu", "vendorID": "10de", "deviceID": "2330", "subsystemVendorID": "10de", "subsystemID": "16c1", "classCode": "030200",
		"productName": "H100 SXM5 80GB", "driver": "vfio-pci", "iommuGroup": "65", "groupSize": "1", "functions": "1", "iommufd": "true",
		"pcieSwitch": "0000:41:00.0", "pcieLinkMTs": "32000", "pcieLinkWidth": "16", "memory": "80Gi",
	}
	const gone = "gone"
	for _, tt := range []struct {
		name   string
		change func(*host.Function)
		want   map[string]string // what is different
	}{
		{"nothing", func(*host.Function) {}, nil},
		{"no NUMA node", func(f *host.Function) { f.NUMA = host.NoNode }, map[string]string{"resource.kubernetes.io/numaNode": gone}},
		{"NUMA node 0", func(f *host.Function) { f.NUMA = 0 }, map[string]string{"resource.kubernetes.io/numaNode": "0"}},
		{"no root", func(f *host.Function) { f.Root = "" }, map[string]string{"resource.kubernetes.io/pcieRoot": gone}},
		{"no link", func(f *host.Function) { f.PCIeLink = host.PCIeLink{} }, map[string]string{"pcieLinkMTs": gone, "pcieLinkWidth": gone}},
		{"a slow link", func(f *host.Function) { f.PCIeLink = host.PCIeLink{MTs: 2500, Lanes: 1} }, map[string]string{"pcieLinkMTs": "2500", "pcieLinkWidth": "1"}},
		{"unknown model", func(f *host.Function) { f.Device = 0xffff }, map[string]string{"deviceID": "ffff", "productName": gone, "memory": gone}},
		{"model without a size", func(f *host.Function) { f.Device = 0x3182 }, map[string]string{"deviceID": "3182", "productName": "B300 SXM6 AC", "memory": gone}},
		{"one of two models", func(f *host.Function) { f.Device, f.SubDevice = 0x25b6, 0x157e }, map[string]string{
			"deviceID": "25b6", "subsystemID": "157e", "productName": "A2", "memory": "16Gi",
		}},
		{"neither model", func(f *host.Function) { f.Device = 0x25b6 }, map[string]string{"deviceID": "25b6", "productName": gone, "memory": gone}},
		{"other driver", func(f *host.Function) { f.Driver = "nvgrace_gpu_vfio_pci" }, map[string]string{"driver": "nvgrace_gpu_vfio_pci"}},
		{"too long a driver", func(f *host.Function) { f.Driver = strings.Repeat("x", 65) }, map[string]string{"driver": gone}},
		{"group without a number", func(f *host.Function) { f.Group.Number = "x" }, map[string]string{"iommuGroup": gone}},
		{"group 0", func(f *host.Function) { f.Group.Number = "0" }, map[string]string{"iommuGroup": "0"}},
		{"no switch", func(f *host.Function) { f.Bridges = f.Bridges[:1] }, map[string]string{"pcieSwitch": gone}},
		{"wide domain", func(f *host.Function) { f.Address.Domain = 0x10000 }, map[string]string{
			"resource.kubernetes.io/pciBusID": gone, "resource.kubernetes.io/pcieRoot": gone, "resource.kubernetes.io/numaNode": gone,
			"pcieSwitch": gone, "groupSize": "2", "functions": "1",
		}},
		{"InfiniBand", func(f *host.Function) { f.Identity = identity("ib") }, map[string]string{
			"type": "nic", "vendorID": "15b3", "deviceID": "1021", "subsystemVendorID": "15b3", "subsystemID": "0041", "classCode": "020700",
			"productName": "ConnectX-7", "memory": gone, "k8s.cni.cncf.io/deviceID": "0000:41:00.0",
		}},
		{"NIC in a wide domain", func(f *host.Function) { f.Identity, f.Address.Domain = identity("ib"), 0x10000 }, map[string]string{
			"type": "nic", "vendorID": "15b3", "deviceID": "1021", "subsystemVendorID": "15b3", "subsystemID": "0041", "classCode": "020700",
			"productName": "ConnectX-7", "memory": gone, "pcieSwitch": gone, "groupSize": "2", "functions": "1",
			"resource.kubernetes.io/pciBusID": gone, "resource.kubernetes.io/pcieRoot": gone, "resource.kubernetes.io/numaNode": gone,
		}},
		{"VF of an unknown PF", func(f *host.Function) {
			f.Identity, f.PhysFn = identity("ethernet"), &pci.Address{Bus: 0x40}
		}, map[string]string{
			"type": "vf", "vendorID": "8086", "deviceID": "1592", "subsystemVendorID": "8086", "subsystemID": "0002", "classCode": "020000",
			"productName": "Ethernet Controller E810-C for QSFP", "memory": gone, "k8s.cni.cncf.io/deviceID": "0000:41:00.0",
			"parentAddress": "0000:40:00.0",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := ready(t, "gpu", "0000:41:00.0")
			whole(&f)
			tt.change(&f)
			want := maps.Clone(base)
			for name, value := range tt.want {
				want[name] = value
				if value == gone {
					delete(want, name)
				}
			}
			i := take(f)
			if len(i.Devices) != 1 {
				t.Fatalf("%v", texts(all(i)))
			}
			if diff := cmp.Diff(want, shown(&i.Devices[0])); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			inLimits(t, dra.Pool(offers(i)))
		})
	}
}

// TestVFIndex: a VF's number is its place among the links of its PF.
func TestVFIndex(t *testing.T) {
	n, src := node(t, preset(t, "sriov-cpu"))
	s := src.Look(nil)
	count := 0
	for _, d := range dra.Take(s).Devices {
		if d.Type != dra.VF {
			continue
		}
		count++
		pf := *d.Function.PhysFn
		want := slices.Index(n.VFs(pf), d.Function.Address)
		got := shown(&d)
		if want < 0 || got["vfIndex"] != fmt.Sprint(want) || got["parentAddress"] != pf.String() {
			t.Errorf("%s: %v, want %d of %s", d.Name, got, want, pf)
		}
	}
	if count != 5 {
		t.Errorf("%d VFs", count)
	}
}

// TestPCIeSwitch explains pcieSwitch: which of the bridges above a function it is.
func TestPCIeSwitch(t *testing.T) {
	for _, tt := range []struct{ what, dir, want string }{
		{"on the root bus", "pci0000:00/0000:00:02.0", ""},
		{"below a root port", "pci0000:40/0000:40:01.0/0000:43:00.0", ""},
		{"behind a switch", "pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:00.0/0000:43:00.0", "0000:41:00.0"},
		{"behind two", "pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:00.0/0000:43:00.0/0000:44:03.0/0000:45:00.0", "0000:43:00.0"},
		{"behind a bridge to PCI, or inside a switch", "pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:00.0", ""},
		{"behind a bridge to PCI behind a switch", "pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:00.0/0000:43:00.0/0000:44:00.0", "0000:41:00.0"},
		{"VMD", "pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0/10000:01:00.0", ""},
		{"VMD's root bus", "pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0", ""},
		{"VMD and a switch", "pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0/10000:01:00.0/10000:02:04.0/10000:03:00.0", "10000:01:00.0"},
	} {
		f := ready(t, "gpu", "0000:43:00.0")
		var err error
		f.Path, err = pci.ParsePath("devices/" + tt.dir)
		must(t, err)
		if got := shown(&take(f).Devices[0])["pcieSwitch"]; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
}

// TestStandard: what is published is what the upstream helpers say of the machine itself.
func TestStandard(t *testing.T) {
	count := 0
	for name, src := range machines(t) {
		for _, d := range dra.Take(src.Look(nil)).Devices {
			count++
			want := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}
			add := func(a deviceattribute.DeviceAttribute, err error) {
				if err == nil {
					want[a.Name] = a.Value
				}
			}
			address, fs := d.Function.Address.String(), deviceattribute.WithFS(src.Sys)
			add(deviceattribute.GetPCIBusIDAttribute(address))
			add(deviceattribute.GetPCIeRootAttributeByPCIBusID(address, fs))
			add(deviceattribute.GetNUMANodeAttributeByPCIBusID(address, deviceattribute.ScalarAttribute, fs))
			got := d.Attributes()
			maps.DeleteFunc(got, func(name resourceapi.QualifiedName, _ resourceapi.DeviceAttribute) bool {
				return !strings.HasPrefix(string(name), deviceattribute.StandardDeviceAttributePrefix)
			})
			if !apiequality.Semantic.DeepEqual(got, want) || len(want) < 2 {
				t.Errorf("%s, %s: %v, want %v", name, d.Name, got, want)
			}
		}
	}
	if count < 40 {
		t.Errorf("only %d devices", count)
	}
}
