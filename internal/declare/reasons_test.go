package declare_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// cases are everything that can be the matter with a GPU at 0000:41:00.0, each made from
// one that nothing is the matter with.
func cases() []struct {
	name   string
	change func(t *testing.T, f *host.Function)
} {
	cdev := func(state host.CdevState, detail string) func(*testing.T, *host.Function) {
		return func(_ *testing.T, f *host.Function) { f.Cdev.State, f.Cdev.Detail = state, detail }
	}
	companion := func(m host.Member) func(*testing.T, *host.Function) {
		return func(t *testing.T, f *host.Function) {
			m.Address = addr(t, "0000:41:00.1")
			f.Group.Members = append(f.Group.Members, m)
		}
	}
	return []struct {
		name   string
		change func(t *testing.T, f *host.Function)
	}{
		{"nothing", func(*testing.T, *host.Function) {}},
		{"never read", func(_ *testing.T, f *host.Function) {
			f.Known, f.Err = false, errors.New("read /sys/x/class: input/output error")
		}},
		{"two errors", func(_ *testing.T, f *host.Function) {
			f.Known, f.Err = false, errors.Join(errors.New("read /sys/x/class: input/output error"), errors.New("read /sys/x/vendor: input/output error"))
		}},
		{"read before", func(_ *testing.T, f *host.Function) { f.Err = errors.New("read /sys/x/numa_node: input/output error") }},
		{"read before, unbound", func(_ *testing.T, f *host.Function) {
			f.Err, f.Cdev, f.Driver = errors.New("read /sys/x/numa_node: input/output error"), nil, ""
		}},
		{"VF", func(t *testing.T, f *host.Function) { a := addr(t, "0000:40:00.0"); f.PhysFn = &a }},
		{"VF without VFIO device", func(t *testing.T, f *host.Function) { a := addr(t, "0000:40:00.0"); f.PhysFn, f.Cdev = &a, nil }},
		{"no group", func(_ *testing.T, f *host.Function) { f.Group = nil }},
		{"no group, unbound", func(_ *testing.T, f *host.Function) { f.Group, f.Cdev, f.Driver = nil, nil, "" }},
		{"no group, on nvidia", func(_ *testing.T, f *host.Function) { f.Group, f.Cdev, f.Driver = nil, nil, "nvidia" }},
		{"on nvidia", func(_ *testing.T, f *host.Function) { f.Cdev, f.Driver = nil, "nvidia" }},
		{"unbound", func(_ *testing.T, f *host.Function) { f.Cdev, f.Driver = nil, "" }},
		{"no number", cdev(host.CdevNoNumber, "no /sys/class/vfio-dev/vfio3/dev")},
		{"no character device", cdev(host.CdevNotChar, "/dev/vfio/devices/vfio3 is a regular file")},
		{"other number", cdev(host.CdevOtherNumber, "/dev/vfio/devices/vfio3 is 1:3, /sys/class/vfio-dev/vfio3/dev says 511:3")},
		{"no IOMMU", cdev(host.CdevNoIOMMU, "/sys/class/vfio-dev/noiommu-vfio3")},
		{"pending", cdev(host.CdevPending, "no node /dev/vfio/devices/vfio3, but driver vfio-pci")},
		{"VFs enabled", func(_ *testing.T, f *host.Function) { f.VFs = make([]pci.Address, 4) }},
		{"wide domain", func(_ *testing.T, f *host.Function) {
			f.Address.Domain = 0x10000
			f.Group.Members[0].Address = f.Address
		}},
		{"companion on snd_hda_intel", companion(host.Member{Class: 0x040300, Driver: "snd_hda_intel"})},
		{"companion on xhci_hcd and VFs", func(t *testing.T, f *host.Function) {
			f.VFs = make([]pci.Address, 1)
			companion(host.Member{Class: 0x0c0330, Driver: "xhci_hcd"})(t, f)
		}},
	}
}

// TestReasons has the finding and its evidence for everything that can be the matter.
func TestReasons(t *testing.T) {
	var b strings.Builder
	table := declare.Passthrough()
	seen := map[string]bool{}
	for _, c := range cases() {
		f := ready(t, "0000:41:00.0")
		c.change(t, &f)
		d := table.Declare(&host.Snapshot{Functions: []host.Function{f}}, declare.Past{})
		what := "not declared"
		var all []finding.Finding
		for _, r := range d.Resources {
			what = "declared, healthy"
			if !r.Devices[0].Healthy() {
				what = "declared, unhealthy"
			}
			all = append(all, r.Devices[0].Faults...)
		}
		fmt.Fprintf(&b, "%s: %s\n", c.name, what)
		for _, x := range append(all, d.Findings...) {
			seen[x.ID] = true
			fmt.Fprintf(&b, "  %s %s %s\n", x.Resource, x.Device, x)
			if strings.Contains(x.Reason(), "\n") {
				t.Errorf("%s: a reason of more than one line: %q", c.name, x.Reason())
			}
		}
		// An answer to Allocate rests on the same reasons.
		judged := judge(table, &f, "nvidia.com/gpu")
		if (len(judged) == 0) != (what == "declared, healthy") {
			t.Errorf("%s: %s, but judged %v", c.name, what, judged)
		}
		for i, j := range judged {
			if want := append(all, d.Findings...)[i]; j.Key() != want.Key() {
				t.Errorf("%s: judged %v, declared %v", c.name, j, want)
			}
		}
	}
	s := &host.Snapshot{
		Strays: []host.Stray{
			{Name: "vfio05", Kind: host.StrayJunkName, Path: "/dev/vfio/devices/vfio05", Detail: "character device 511:5"},
			{Name: "vfio8", Kind: host.StrayNotChar, Path: "/dev/vfio/devices/vfio8", Detail: "regular file"},
			{Name: "vfio9", Kind: host.StrayOrphan, Path: "/dev/vfio/devices/vfio9", Detail: "character device 511:9"},
			{Name: "vfio1", Kind: host.StrayNotPCI, Path: "/sys/devices/virtual/mtty/mtty/u/vfio-dev/vfio1", Detail: "the parent is no PCI function"},
			{Name: "noiommu-vfio2", Kind: host.StrayNoIOMMU, Path: "/dev/vfio/devices/noiommu-vfio2", Detail: "character device 511:2"},
			{Name: "vfio7", Kind: host.StrayUnreadable, Path: "/sys/class/vfio-dev/vfio7", Detail: "invalid argument"},
		},
		Unread: []error{errors.New("open /dev/vfio/devices: permission denied")},
	}
	fmt.Fprintf(&b, "entries and directories:\n")
	for _, x := range table.Declare(s, declare.Past{}).Findings {
		seen[x.ID] = true
		fmt.Fprintf(&b, "  %s %s\n", x.Device, x)
	}
	golden.Assert(t, b.String(), "reasons.golden")
	nics := []finding.Kind{ // those of packages nic and dra
		finding.SharesGroup(), finding.ComesWith(),
		finding.HostInUse(), finding.RDMAIncomplete(), finding.NoDriver(), finding.NodeMissing(), finding.Unseen(), finding.ReplacedByVFs(),
		finding.LinksUnknown(), finding.Deselected(), finding.HeldAs(), finding.NotSelected(), finding.NoRDMA(), finding.NotDealt(),
	}
	for _, k := range finding.Catalogue() {
		elsewhere := k == finding.Gone() || k == finding.ChangedClass() || k == finding.Claimed() || slices.Contains(nics, k)
		if strings.HasPrefix(k.ID, "HST") && !seen[k.ID] && !elsewhere {
			t.Errorf("no case has %s, %s", k.ID, k.Title)
		}
	}
}

// TestUnknownFunction says of a function of an unknown kind that it could not be read,
// and nothing of one that is known to be no candidate.
func TestUnknownFunction(t *testing.T) {
	f := host.Function{Err: errors.New("find 0000:41:00.0: input/output error")}
	f.Address = addr(t, "0000:41:00.0")
	d := declare.Passthrough().Declare(&host.Snapshot{Functions: []host.Function{f}}, declare.Past{})
	if len(d.Resources) != 0 || len(d.Findings) != 1 ||
		d.Findings[0].String() != "HST031 the function could not be read: find 0000:41:00.0: input/output error" {
		t.Errorf("%+v", d)
	}
	f = ready(t, "0000:41:00.0")
	f.Class, f.Err = 0x040300, errors.New("x")
	if d := declare.Passthrough().Declare(&host.Snapshot{Functions: []host.Function{f}}, declare.Past{}); len(d.Resources)+len(d.Findings) != 0 {
		t.Errorf("%+v", d)
	}
}

// judge says what speaks against a device when its function is read anew.
func judge(t declare.Table, f *host.Function, resource string) []finding.Finding {
	d := t.Again(f, &declare.Device{ID: f.Address.String()}, resource)
	return d.Faults
}

// TestAgainClass has another device in the slot.
func TestAgainClass(t *testing.T) {
	f := ready(t, "0000:41:00.0")
	for _, resource := range []string{"nvidia.com/nvswitch", ""} {
		if resource == "" {
			f.Class, resource = 0x020000, "nvidia.com/gpu"
		}
		got := judge(declare.Passthrough(), &f, resource)
		if len(got) != 1 || got[0].Resource != resource ||
			got[0].String() != "HST035 the function in this slot is no longer of this resource: /sys/bus/pci/devices/0000:41:00.0/class = "+f.Class.String() {
			t.Errorf("%v", got)
		}
	}
}

// TestCompanions has the drivers that leave DMA ownership to VFIO, and some that do not.
func TestCompanions(t *testing.T) {
	for _, tt := range []struct {
		m    host.Member
		want bool
	}{
		{host.Member{}, true}, {host.Member{Driver: "pcieport", Class: 0x060400}, true}, {host.Member{Driver: "pci-stub"}, true},
		{host.Member{Driver: "vfio-pci", VFIO: true}, true}, {host.Member{Driver: "nvgrace_gpu_vfio_pci", VFIO: true}, true},
		{host.Member{Driver: "mlx5_core"}, false}, {host.Member{Driver: "mlx5_core", VFIO: true}, true},
		{host.Member{Driver: "vfio-pci"}, false}, // in the middle of a bind: an event follows
		{host.Member{Driver: "snd_hda_intel", Class: 0x040300}, false}, {host.Member{Driver: "nvidia"}, false},
		{host.Member{Driver: "xhci_hcd"}, false}, {host.Member{Driver: "i2c_nvidia_gpu"}, false},
		{host.Member{Driver: "shpchp", Class: 0x060400}, false}, {host.Member{Driver: "pcieport2"}, false}, {host.Member{Driver: "pci_stub"}, false},
	} {
		f := ready(t, "0000:41:00.0")
		tt.m.Address = addr(t, "0000:41:00.1")
		f.Group.Members = append(f.Group.Members, tt.m)
		got := judge(declare.Passthrough(), &f, "nvidia.com/gpu")
		if (len(got) == 0) != tt.want || !tt.want && (got[0].ID != "HST002" ||
			got[0].Evidence[0] != finding.Evidence{Path: "/sys/bus/pci/devices/0000:41:00.1/driver", Value: tt.m.Driver}) {
			t.Errorf("%+v: %v", tt.m, got)
		}
	}
	// Each companion that hinders is named; the function's own driver never does.
	f := ready(t, "0000:41:00.0")
	f.Group.Members[0].Driver = "anything"
	for _, a := range []string{"0000:41:00.1", "0000:41:00.2", "0000:41:00.3"} {
		f.Group.Members = append(f.Group.Members, host.Member{Address: addr(t, a), Driver: map[bool]string{true: "", false: "x"}[a == "0000:41:00.2"]})
	}
	if got := judge(declare.Passthrough(), &f, "nvidia.com/gpu"); len(got) != 2 {
		t.Errorf("%v", got)
	}
}
