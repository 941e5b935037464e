package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/sim"
)

const (
	gpuA = "0000:41:00.0"
	gpuB = "0000:51:00.0"
	uuid = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001"
)

// strays are a snapshot's stray entries, one line each.
func strays(s *host.Snapshot) string {
	kinds := map[host.StrayKind]string{
		host.StrayJunkName: "junk", host.StrayNotChar: "not char", host.StrayOrphan: "orphan", host.StrayNotPCI: "not PCI",
		host.StrayNoIOMMU: "no IOMMU", host.StrayUnreadable: "unreadable",
	}
	var lines []string
	for _, e := range s.Strays {
		lines = append(lines, e.Name+": "+kinds[e.Kind]+": "+e.Path+": "+e.Detail)
	}
	return strings.Join(lines, "\n")
}

// TestStrays has everything in the directories that is no PCI function's device.
func TestStrays(t *testing.T) {
	r := newRig(t, gpu(gpuA, "1", "vfio-pci"))
	major, minor := r.DevNumber(0)
	for _, name := range []string{"vfio05", "vfio+5", "vfiox", "vfio", "vfio-1", "vfio 1", "VFIO1", "vfio1.tmp", "vfio99999999999"} {
		must(t, r.PlaceNode(name, major, minor))
	}
	must(t, r.PlaceNode("vfio77", major, minor), r.PlaceNode("noiommu-vfio3", major, minor), r.PlaceNode("noiommu-vfio03", major, minor))
	must(t, r.PlaceFile("vfio8", "x"), r.PlaceDir("vfio9"), r.PlaceFile("readme", "x"),
		os.Symlink("vfio0", filepath.Join(r.roots.VFIODevices(), "vfio10")),
		os.WriteFile(filepath.Join(r.roots.VFIO(), "outside"), nil, 0o600))
	_, err := r.AddMdev(uuid)
	must(t, err)
	_, err = r.AddPlatformDevice("fff51000.dma")
	must(t, err)
	must(t, os.Symlink("../../devices/"+gpu(gpuA, "", "").Path+"/vfio-dev/junk", filepath.Join(r.roots.Sys, "class/vfio-dev/junk")))

	char := "character device " + map[bool]string{true: "511:0", false: "0:0"}[major == 511]
	want := strings.ReplaceAll(strings.TrimSpace(`
VFIO1: junk: /dev/vfio/devices/VFIO1: CHAR
junk: junk: /sys/class/vfio-dev/junk: class entry of an unknown form
noiommu-vfio03: junk: /dev/vfio/devices/noiommu-vfio03: CHAR
noiommu-vfio3: no IOMMU: /dev/vfio/devices/noiommu-vfio3: CHAR
readme: junk: /dev/vfio/devices/readme: regular file
vfio: junk: /dev/vfio/devices/vfio: CHAR
vfio 1: junk: /dev/vfio/devices/vfio 1: CHAR
vfio+5: junk: /dev/vfio/devices/vfio+5: CHAR
vfio-1: junk: /dev/vfio/devices/vfio-1: CHAR
vfio05: junk: /dev/vfio/devices/vfio05: CHAR
vfio1: not PCI: /sys/devices/virtual/mtty/mtty/`+uuid+`/vfio-dev/vfio1: the parent is no PCI function
vfio1.tmp: junk: /dev/vfio/devices/vfio1.tmp: CHAR
vfio10: not char: /dev/vfio/devices/vfio10: symbolic link
vfio2: not PCI: /sys/devices/platform/fff51000.dma/vfio-dev/vfio2: the parent is no PCI function
vfio77: orphan: /dev/vfio/devices/vfio77: CHAR
vfio8: not char: /dev/vfio/devices/vfio8: regular file
vfio9: not char: /dev/vfio/devices/vfio9: directory
vfio99999999999: junk: /dev/vfio/devices/vfio99999999999: CHAR
vfiox: junk: /dev/vfio/devices/vfiox: CHAR`), "CHAR", char)
	s := r.src.Look(nil)
	if got := strays(s); got != want {
		t.Errorf("strays\n%s\nwant\n%s", got, want)
	}
	same(t, "functions", s.Functions, expected(r.Node)[1:])
	if !s.Torn() {
		t.Error("an orphan may be a device that is on its way")
	}
	same(t, "glance", r.src.Glance(s), s)
	must(t, r.RemovePlaced("vfio77"))
	if r.src.Glance(s).Torn() {
		t.Error("torn without the orphan")
	}
}

// TestOddNodes puts something else in place of a node.
func TestOddNodes(t *testing.T) {
	r := newRig(t, gpu(gpuA, "1", "vfio-pci"))
	before := r.src.Look(nil)
	for _, tt := range []struct {
		what   string
		place  func(path string) error
		state  host.CdevState
		detail string
	}{
		{"file", func(path string) error { return os.WriteFile(path, nil, 0o600) }, host.CdevNotChar, "/dev/vfio/devices/vfio0 is a regular file"},
		{"directory", func(path string) error { return os.Mkdir(path, 0o700) }, host.CdevNotChar, "/dev/vfio/devices/vfio0 is a directory"},
		{"link", func(path string) error { return os.Symlink("vfio1", path) }, host.CdevNotChar, "/dev/vfio/devices/vfio0 is a symbolic link"},
		{"link to a node", func(path string) error { return os.Symlink("../vfio", path) }, host.CdevNotChar, "/dev/vfio/devices/vfio0 is a symbolic link"},
		{"pipe", func(path string) error { return unix.Mkfifo(path, 0o600) }, host.CdevNotChar, "/dev/vfio/devices/vfio0 is a named pipe"},
		{"nothing", func(string) error { return nil }, host.CdevPending, "no node /dev/vfio/devices/vfio0, but driver vfio-pci"},
	} {
		must(t, r.RemovePlaced("vfio0"), tt.place(filepath.Join(r.roots.VFIODevices(), "vfio0")))
		for what, s := range map[string]*host.Snapshot{"look": r.src.Look(nil), "glance": r.src.Glance(before)} {
			c := function(t, s, gpuA).Cdev
			if c.State != tt.state || strings.Replace(c.Detail, "010000", "0o10000", 1) != tt.detail || len(s.Strays) > 0 {
				t.Errorf("%s, %s: %+v, strays %v", tt.what, what, c, s.Strays)
			}
			if s.Torn() != (tt.state == host.CdevPending) {
				t.Errorf("%s, %s: torn %v", tt.what, what, s.Torn())
			}
		}
	}
}

// TestOtherNumber has sysfs and devfs disagree.
func TestOtherNumber(t *testing.T) {
	r := newRig(t, gpu(gpuA, "1", "vfio-pci"))
	must(t, r.SetAttribute(addr(t, gpuA), "vfio-dev/vfio0/dev", "300:1\n"))
	c := function(t, r.src.Look(nil), gpuA).Cdev
	major, minor := r.DevNumber(0)
	node := map[bool]string{true: "511:0", false: "0:0"}[major == 511]
	if c.State != host.CdevOtherNumber || c.Major != 300 || c.Minor != 1 ||
		c.Detail != "/dev/vfio/devices/vfio0 is "+node+", /sys/class/vfio-dev/vfio0/dev says 300:1" {
		t.Errorf("%+v", c)
	}
	for _, wrong := range []string{fmt.Sprintf("%d:%d\n", major, minor+1), fmt.Sprintf("%d:%d\n", major+1, minor)} {
		must(t, r.SetAttribute(addr(t, gpuA), "vfio-dev/vfio0/dev", wrong))
		if c := function(t, r.src.Look(nil), gpuA).Cdev; c.State != host.CdevOtherNumber {
			t.Errorf("%q: %+v", wrong, c)
		}
	}
}

// TestNoIOMMU has a function without an IOMMU, in the ways of both kernels.
func TestNoIOMMU(t *testing.T) {
	r := newRig(t, gpu(gpuA, "", ""), gpu(gpuB, "1", ""))
	f := function(t, r.src.Look(nil), gpuA)
	if f.Group != nil || f.Cdev != nil {
		t.Errorf("unbound: %+v", f)
	}
	must(t, r.AddNoIOMMU(addr(t, gpuA)), r.BindWithoutCdev(addr(t, gpuB), "vfio-pci"))
	s := r.src.Look(nil)
	f = function(t, s, gpuA)
	if f.Cdev == nil || f.Cdev.Name != "noiommu-vfio0" || f.Cdev.State != host.CdevNoIOMMU || len(s.Strays) > 0 ||
		f.Cdev.Detail != "/sys/class/vfio-dev/noiommu-vfio0" {
		t.Errorf("Linux 7: %+v, strays %v", f.Cdev, s.Strays)
	}
	f = function(t, s, gpuB)
	if f.Cdev == nil || f.Cdev.Name != "vfio1" || f.Cdev.State != host.CdevNoNumber || f.Cdev.Detail != "no /sys/class/vfio-dev/vfio1/dev" {
		t.Errorf("no cdevs: %+v", f.Cdev)
	}
	same(t, "glance", r.src.Glance(s), s)
}

// TestNUMA has the ways not to know a node. None of them is node 0.
func TestNUMA(t *testing.T) {
	none := gpu(gpuA, "1", "vfio-pci")
	none.NoNUMAFile = true
	unknown := gpu(gpuB, "2", "vfio-pci")
	unknown.NUMA = -1
	r := newRig(t, none, unknown)
	s := r.src.Look(nil)
	for _, a := range []string{gpuA, gpuB} {
		if f := function(t, s, a); f.NUMA != host.NoNode || f.Err != nil {
			t.Errorf("%s: node %d, %v", a, f.NUMA, f.Err)
		}
	}
	for text, want := range map[string]host.Node{"0\n": 0, "5\n": 5, "-1\n": -1, "-7\n": -1, "33": 33} {
		must(t, r.SetAttribute(addr(t, gpuB), "numa_node", text))
		if f := function(t, r.src.Look(nil), gpuB); f.NUMA != want || f.Err != nil {
			t.Errorf("%q: node %d, %v", text, f.NUMA, f.Err)
		}
	}
	for _, text := range []string{"", "x\n", "+1\n", "01\n", "-0\n", "1 \n", "99999999999\n"} {
		must(t, r.SetAttribute(addr(t, gpuB), "numa_node", text))
		if f := function(t, r.src.Look(nil), gpuB); f.NUMA != host.NoNode || f.Err == nil || f.Known {
			t.Errorf("%q: node %d, %v", text, f.NUMA, f.Err)
		}
	}
}

// sriov is a card that can have virtual functions.
func sriov() sim.Function {
	f := gpu(gpuA, "1", "vfio-pci")
	f.TotalVFs, f.VFOffset = 8, 4
	return f
}

func TestVFs(t *testing.T) {
	r := newRig(t, sriov())
	s := r.src.Look(nil)
	if f := function(t, s, gpuA); len(f.VFs) != 0 || f.PhysFn != nil {
		t.Errorf("%+v", f)
	}
	// The vendor's VFIO framework: cdevs of VFs that are bound to nvidia.
	must(t, r.SetVFs(addr(t, gpuA), 5, ""), r.BindVFIO(addr(t, "0000:41:00.5"), "nvidia"), r.Bind(addr(t, "0000:41:01.0"), "vfio-pci"))
	same(t, "glance", events(r.src.Glance(s)), events(r.src.Look(nil)))
	s = r.src.Look(s)
	if f := function(t, s, gpuA); len(f.VFs) != 5 || f.PhysFn != nil {
		t.Errorf("%+v", f)
	}
	for address, driver := range map[string]string{"0000:41:00.4": "", "0000:41:00.5": "nvidia", "0000:41:00.6": "", "0000:41:01.0": "vfio-pci"} {
		f := function(t, s, address)
		if f.PhysFn == nil || *f.PhysFn != addr(t, gpuA) || len(f.VFs) != 0 || f.Driver != driver || (f.Cdev != nil) != (driver != "") {
			t.Errorf("%s: %+v", address, f)
		}
	}
	// On its way out a VF loses physfn before its VFIO device.
	vf := addr(t, "0000:41:00.5")
	must(t, r.RemoveAttribute(vf, "physfn"))
	for what, later := range map[string]*host.Snapshot{"look": r.src.Look(s), "glance": r.src.Glance(s)} {
		if f := function(t, later, vf.String()); f.PhysFn == nil || f.Cdev == nil {
			t.Errorf("%s: a VF on its way out is taken for a whole device: %+v", what, f)
		}
	}
	if f, ok := r.src.Again(s, vf); !ok || f.PhysFn == nil {
		t.Errorf("again: %v, %v", f.PhysFn, ok)
	}
	must(t, r.Unbind(vf))
	if f := function(t, r.src.Look(s), vf.String()); f.PhysFn != nil || f.Cdev != nil {
		t.Errorf("without VFIO device: %+v", f)
	}
	must(t, r.SetVFs(addr(t, gpuA), 0, ""))
	if s = r.src.Look(s); len(s.Functions) != 1 || len(s.Functions[0].VFs) != 0 {
		t.Errorf("%+v", s.Functions)
	}
}

// TestCompanions has a group whose other function is in the kernel's hands.
func TestCompanions(t *testing.T) {
	r := newRig(t, gpu(gpuA, "7", "vfio-pci"), audio("0000:41:00.1", "7", "snd_hda_intel"), gpu(gpuB, "8", "vfio-pci"))
	s := r.src.Look(nil)
	if len(s.Functions) != 2 { // the audio function has no VFIO device and is not wanted
		t.Errorf("%d functions", len(s.Functions))
	}
	a := addr(t, "0000:41:00.1")
	check := func(s *host.Snapshot, want ...host.Member) {
		t.Helper()
		same(t, "companions", function(t, s, gpuA).Companions(), want)
	}
	check(s, host.Member{Address: a, Class: 0x040300, Driver: "snd_hda_intel"})
	must(t, r.Unbind(a)) // no event tells
	check(r.src.Look(s), host.Member{Address: a, Class: 0x040300})
	check(r.src.Glance(s), host.Member{Address: a, Class: 0x040300, Driver: "snd_hda_intel"})
	must(t, r.Bind(a, "vfio-pci"))
	s = r.src.Glance(s)
	check(s, host.Member{Address: a, Class: 0x040300, Driver: "vfio-pci", VFIO: true})
	function(t, s, a.String()) // it has a VFIO device now
	must(t, r.Unbind(a), r.Bind(a, "snd_hda_intel"))
	s = r.src.Glance(s)
	check(s, host.Member{Address: a, Class: 0x040300, Driver: "snd_hda_intel"})
	must(t, r.Remove(a))
	s = r.src.Glance(s)
	check(s, []host.Member{}...)
	must(t, r.Add(audio("0000:41:00.1", "7", "")))
	s = r.src.Glance(s)
	check(s, host.Member{Address: a, Class: 0x040300})
	if got := function(t, s, gpuA).Group.Members; len(got) != 2 || got[0].Address != addr(t, gpuA) || !got[0].VFIO {
		t.Errorf("members %+v", got)
	}
}

// TestOtherGroup has a function come back in another group before anybody looks.
func TestOtherGroup(t *testing.T) {
	r := newRig(t, gpu(gpuA, "7", "vfio-pci"), gpu(gpuB, "7", "vfio-pci"), gpu("0000:61:00.0", "8", "vfio-pci"))
	s := r.src.Look(nil)
	a := addr(t, gpuA)
	must(t, r.Remove(a), r.Add(gpu(gpuA, "8", "")), r.Bind(a, "vfio-pci"))
	s = r.src.Glance(s)
	same(t, "glance", s, r.src.Look(nil))
	if n := len(function(t, s, gpuB).Companions()); n != 0 {
		t.Errorf("%d companions in the group it left", n)
	}
	if n := len(function(t, s, "0000:61:00.0").Companions()); n != 1 {
		t.Errorf("%d companions in the group it joined", n)
	}
}

// TestPlatformMember has a group with something in it that is no PCI function.
func TestPlatformMember(t *testing.T) {
	r := newRig(t, gpu(gpuA, "7", "vfio-pci"))
	must(t, os.Symlink("../../../../devices/platform/x", filepath.Join(r.roots.Sys, "kernel/iommu_groups/7/devices/x")))
	f := function(t, r.src.Look(nil), gpuA)
	if f.Err != nil || len(f.Group.Members) != 1 || f.Group.Members[0] != (host.Member{Address: f.Address}) || len(f.Companions()) != 0 {
		t.Errorf("%+v, group %+v", f, f.Group)
	}
}

// TestEmpty has machines without the directories.
func TestEmpty(t *testing.T) {
	r := newRig(t)
	for _, dir := range []string{r.roots.VFIODevices(), filepath.Join(r.roots.Sys, "class/vfio-dev"), filepath.Join(r.roots.Sys, "bus/pci/devices")} {
		must(t, os.RemoveAll(dir))
		s := r.src.Look(nil)
		if len(s.Functions) > 0 || len(s.Strays) > 0 || s.Torn() || s.Partial() {
			t.Errorf("without %s: %+v", dir, s)
		}
	}
	must(t, os.RemoveAll(r.roots.VFIO()))
	if s := r.src.Look(nil); s.Partial() {
		t.Errorf("without /dev/vfio: %v", s.Unread)
	}
}
