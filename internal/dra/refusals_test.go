package dra_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// TestRefusals has what becomes of a function, and what is said of it, for everything that can
// be the matter with one.
func TestRefusals(t *testing.T) {
	pf := pci.Address{Bus: 0x40}
	state := func(s host.CdevState) func(*host.Function) {
		return func(f *host.Function) { f.Cdev.State, f.Cdev.Detail = s, "seen" }
	}
	companion := func(m host.Member) func(*host.Function) {
		return func(f *host.Function) {
			m.Address = pci.Address{Bus: 0x41, Function: 1}
			f.Group.Members = append(f.Group.Members, m)
		}
	}
	for _, tt := range []struct {
		name, kind string
		change     func(*host.Function)
		want       string // the device's name, "-" for none
		findings   string // IDs of what is said of it
		faults     string
	}{
		{"GPU", "gpu", nil, "gpu-0000-41-00-0", "", ""},
		{"GPU with display", "vga", nil, "gpu-0000-41-00-0", "", ""},
		{"NVSwitch", "nvswitch", nil, "nvswitch-0000-41-00-0", "", ""},
		{"Ethernet controller", "ethernet", nil, "nic-0000-41-00-0", "", ""},
		{"InfiniBand controller", "ib", nil, "nic-0000-41-00-0", "", ""},
		{"VF", "ethernet", func(f *host.Function) { f.PhysFn = &pf }, "vf-0000-41-00-0", "", ""},
		{"audio function", "audio", nil, "-", "", ""},
		{"other vendor's GPU", "amd", nil, "-", "", ""},
		{"bridge", "bridge", nil, "-", "", ""},

		{"VF of a GPU", "gpu", func(f *host.Function) { f.PhysFn = &pf }, "-", "HST023", ""},
		{"PF with VFs", "ethernet", func(f *host.Function) { f.VFs = make([]pci.Address, 2) }, "-", "HST029", ""},
		{"GPU with VFs", "gpu", func(f *host.Function) { f.VFs = make([]pci.Address, 2) }, "-", "HST029", ""},
		{"PF with VFs on its own driver", "ethernet", func(f *host.Function) {
			f.VFs, f.Cdev, f.Driver = make([]pci.Address, 2), nil, "ice"
		}, "-", "HST020", ""},
		{"VF on its own driver", "ethernet", func(f *host.Function) { f.PhysFn, f.Cdev, f.Driver = &pf, nil, "iavf" }, "-", "HST020", ""},
		{"unbound", "gpu", func(f *host.Function) { f.Cdev, f.Driver = nil, "" }, "-", "HST020", ""},
		{"without a group", "gpu", func(f *host.Function) { f.Group = nil }, "-", "HST001", ""},
		{"VF without a group", "ethernet", func(f *host.Function) { f.PhysFn, f.Group = &pf, nil }, "-", "HST001", ""},
		{"pending", "gpu", state(host.CdevPending), "-", "HST028 HST033", ""},
		{"without a number", "gpu", state(host.CdevNoNumber), "-", "HST021", ""},
		{"no character device", "gpu", state(host.CdevNotChar), "-", "HST026", ""},
		{"another's number", "gpu", state(host.CdevOtherNumber), "-", "HST027", ""},
		{"without an IOMMU", "gpu", state(host.CdevNoIOMMU), "-", "HST022", ""},
		{"never read", "gpu", func(f *host.Function) { f.Known, f.Err = false, errors.New("x") }, "-", "HST031", ""},
		{"never read, of no kind", "bridge", func(f *host.Function) { f.Known, f.Err = false, errors.New("x") }, "-", "HST031", ""},
		{"read before", "gpu", func(f *host.Function) { f.Err = errors.New("x") }, "gpu-0000-41-00-0", "HST031", ""},
		{"read before, of no kind", "bridge", func(f *host.Function) { f.Err = errors.New("x") }, "-", "", ""},
		{"read before, unbound", "gpu", func(f *host.Function) { f.Err, f.Cdev, f.Driver = errors.New("x"), nil, "" }, "-", "HST020 HST031", ""},

		{"wide domain", "gpu", func(f *host.Function) { f.Address.Domain = 0x10000 }, "gpu-10000-41-00-0", "", "HST030"},
		{"widest domain", "nvswitch", func(f *host.Function) {
			f.Address = pci.Address{Domain: 0xffffffff, Bus: 0xff, Device: 0x1f, Function: 7}
		}, "nvswitch-ffffffff-ff-1f-7", "", "HST030"},
		{"companion on the host", "gpu", companion(host.Member{Class: 0x040300, Driver: "snd_hda_intel"}), "gpu-0000-41-00-0", "", "HST002"},
		{"companion without a driver", "gpu", companion(host.Member{Class: 0x040300}), "gpu-0000-41-00-0", "", ""},
		{"companion on VFIO", "gpu", companion(host.Member{Class: 0x040300, Driver: "vfio-pci", VFIO: true}), "gpu-0000-41-00-0", "", ""},
		{"NIC's companion on the host", "ib", companion(host.Member{Class: 0x020700, Driver: "mlx5_core"}), "nic-0000-41-00-0", "", "HST002"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := ready(t, tt.kind, "0000:41:00.0")
			if tt.change != nil {
				tt.change(&f)
			}
			i := take(f)
			got, faults := "-", ""
			for _, d := range i.Devices {
				got = d.Name
				for _, x := range d.Faults {
					faults += x.ID
				}
				if d.Healthy() != (faults == "") || d.Function.Address != f.Address || len(d.Nodes) != 1 || d.Nodes[0] != "/dev/vfio/devices/vfio65" {
					t.Errorf("%+v", d)
				}
				if found, ok := i.Device(got); !ok || found != &i.Devices[0] {
					t.Errorf("%s is not to be found", got)
				}
				inLimits(t, dra.Pool(offers(i)))
			}
			var findings []string
			for _, x := range all(i) {
				findings = append(findings, x.ID)
				if len(x.Evidence) == 0 || x.ID != "HST033" && x.Device != f.Address.String() {
					t.Errorf("%s, evidence %v", x, x.Evidence)
				}
			}
			if got != tt.want || faults != tt.faults || strings.Join(findings, " ") != tt.findings {
				t.Errorf("%s, faults %q, findings %v", got, faults, findings)
			}
			if wanted := tt.kind != "audio" && tt.kind != "amd" && tt.kind != "bridge"; dra.Wants(f.Identity) != wanted {
				t.Errorf("wanted %v", !wanted)
			}
		})
	}
	if _, ok := take().Device("gpu-0000-41-00-0"); ok {
		t.Error("a device of an empty inventory")
	}
}

// grouped puts functions into one IOMMU group.
func grouped(functions ...host.Function) []host.Function {
	g := &host.IOMMUGroup{Number: "7"}
	for _, f := range functions {
		g.Members = append(g.Members, host.Member{Address: f.Address, Class: f.Class, Driver: f.Driver, VFIO: f.Cdev != nil})
	}
	for i := range functions {
		functions[i].Group = g
	}
	return functions
}

// TestGroups: what the IOMMU cannot tell apart is one device.
func TestGroups(t *testing.T) {
	unbound := func(f host.Function) host.Function { f.Cdev, f.Driver = nil, ""; return f }
	onHost := func(f host.Function, driver string) host.Function { f.Cdev, f.Driver = nil, driver; return f }
	a, b := ready(t, "gpu", "0000:41:00.0"), ready(t, "gpu", "0000:51:00.0")
	audio := ready(t, "audio", "0000:41:00.1")
	for _, tt := range []struct {
		name      string
		functions []host.Function
		want      string // device, its group and its faults
		findings  []string
	}{
		{"two GPUs", grouped(a, b), "gpu-0000-41-00-0 [0000:41:00.0 0000:51:00.0] []", []string{
			"0000:51:00.0 HST048 the function comes with the device that stands for its IOMMU group: " +
				"/sys/bus/pci/devices/0000:51:00.0/iommu_group = 7, with gpu-0000-41-00-0",
		}},
		{"GPU and NIC", grouped(ready(t, "ib", "0000:40:00.0"), a), "nic-0000-40-00-0 [0000:40:00.0 0000:41:00.0] []", []string{
			"0000:41:00.0 HST047 another function of the IOMMU group is the device that stands for the group: " +
				"/sys/bus/pci/devices/0000:41:00.0/iommu_group = 7, with nic-0000-40-00-0",
		}},
		{"the first is not bound", grouped(unbound(a), b), "gpu-0000-51-00-0 [0000:41:00.0 0000:51:00.0] []", []string{
			"0000:41:00.0 HST020 the function has no VFIO character device: /sys/bus/pci/devices/0000:41:00.0/driver = none",
		}},
		{"the first is the host's", grouped(onHost(a, "nvidia"), b),
			"gpu-0000-51-00-0 [0000:41:00.0 0000:51:00.0] [HST002 a companion in the IOMMU group is bound to a driver that keeps DMA ownership: " +
				"/sys/bus/pci/devices/0000:41:00.0/driver = nvidia]", []string{
				"0000:41:00.0 HST020 the function has no VFIO character device: /sys/bus/pci/devices/0000:41:00.0/driver = nvidia",
			}},
		{"audio companion", grouped(a, audio), "gpu-0000-41-00-0 [0000:41:00.0 0000:41:00.1] []", nil},
		{"audio companion of the host", grouped(a, onHost(audio, "snd_hda_intel")),
			"gpu-0000-41-00-0 [0000:41:00.0 0000:41:00.1] [HST002 a companion in the IOMMU group is bound to a driver that keeps DMA ownership: " +
				"/sys/bus/pci/devices/0000:41:00.1/driver = snd_hda_intel]", nil},
		{"ports of a switch", grouped(onHost(ready(t, "bridge", "0000:05:00.0"), "pcieport"), a),
			"gpu-0000-41-00-0 [0000:05:00.0 0000:41:00.0] []", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := take(tt.functions...)
			if len(i.Devices) != 1 {
				t.Fatalf("%d devices: %+v", len(i.Devices), i.Devices)
			}
			d := i.Devices[0]
			var group, faults []string
			for _, g := range d.Group {
				group = append(group, g.String())
			}
			for _, f := range d.Faults {
				faults = append(faults, f.String())
			}
			got := d.Name + " [" + strings.Join(group, " ") + "] [" + strings.Join(faults, " ") + "]"
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if diff := cmp.Diff(tt.findings, texts(all(i))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if own := tt.name == "two GPUs"; own != (len(d.Nodes) == 2) {
				t.Errorf("nodes %v", d.Nodes)
			}
			if n := d.Attributes()["groupSize"].IntValue; n == nil || *n != int64(len(d.Group)) {
				t.Errorf("groupSize %v", n)
			}
		})
	}
	f := ready(t, "gpu", "0000:41:00.0")
	f.Group.Members = nil // could not be listed
	if i := take(f); len(i.Devices) != 1 || len(i.Devices[0].Group) != 1 || i.Devices[0].Group[0] != f.Address {
		t.Errorf("%+v", i.Devices)
	}
}

// TestBeside: what is no function is said as well.
func TestBeside(t *testing.T) {
	i := dra.Take(&host.Snapshot{
		Strays: []host.Stray{{Name: "vfio05", Kind: host.StrayJunkName, Path: "/dev/vfio/devices/vfio05", Detail: "directory"}},
		Unread: []error{errors.New("open /dev/vfio/devices: permission denied")},
	})
	want := []string{
		" HST034 a directory of the host could not be listed: open /dev/vfio/devices: permission denied",
		"vfio05 HST025 the entry is not named as the kernel names VFIO devices: /dev/vfio/devices/vfio05 = directory",
	}
	if diff := cmp.Diff(want, texts(all(i))); diff != "" || len(i.Devices) != 0 {
		t.Errorf("%d devices, findings (-want +got):\n%s", len(i.Devices), diff)
	}
}
