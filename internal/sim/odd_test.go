package sim

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOtherBuses has VFIO devices whose parent is no PCI function. They take
// numbers of the same counter.
func TestOtherBuses(t *testing.T) {
	n := newNode(t, gpus(1))
	const uuid = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001"
	mdev, err := n.AddMdev(uuid)
	must(t, err)
	platform, err := n.AddPlatformDevice("ARMH0061:00")
	must(t, err)
	must(t, n.Bind(addr(t, gpuA), "vfio-pci"))
	check(t, n, "2 - -")
	if mdev != 0 || platform != 1 {
		t.Errorf("numbers %d and %d", mdev, platform)
	}
	dir := "sys/devices/virtual/mtty/mtty/" + uuid
	for link, want := range map[string]string{
		"sys/class/vfio-dev/vfio0":                "../../devices/virtual/mtty/mtty/" + uuid + "/vfio-dev/vfio0",
		dir + "/vfio-dev/vfio0/device":            "../../../" + uuid,
		dir + "/vfio-dev/vfio0/subsystem":         "../../../../../../../class/vfio-dev",
		dir + "/driver":                           "../../../../../bus/mdev/drivers/mtty",
		dir + "/mdev_type":                        "../mdev_supported_types/mtty-1",
		dir + "/iommu_group":                      "../../../../../kernel/iommu_groups/0",
		"sys/class/vfio-dev/vfio1/device":         "../../../ARMH0061:00",
		"sys/bus/mdev/devices/" + uuid:            "../../../devices/virtual/mtty/mtty/" + uuid,
		"sys/devices/virtual/mtty/mtty/subsystem": "../../../../class/mtty",
	} {
		if got, err := os.Readlink(filepath.Join(n.dir, link)); err != nil || got != want {
			t.Errorf("%s leads to %q, %v, want %q", link, got, err, want)
		}
	}
	if _, err := os.ReadFile(filepath.Join(n.dir, dir, "vendor")); !errors.Is(err, unix.EISDIR) {
		t.Errorf("vendor of an mdev: %v", err)
	}
	must(t, n.RemoveOther(uuid), n.RemoveOther("ARMH0061:00"))
	if got := names(t, n, "sys/class/vfio-dev"); !slices.Equal(got, []string{"vfio2"}) {
		t.Errorf("left: %q", got)
	}
}

func TestNoIOMMU(t *testing.T) {
	p := gpus(1)
	for i := range p.Functions {
		p.Functions[i].Group = ""
	}
	n := newNode(t, p)
	a := addr(t, gpuA)
	if exists(t, n, dirA+"/iommu_group") {
		t.Error("a group without IOMMU")
	}
	must(t, n.AddNoIOMMU(a))
	want := n.ueventText(cdevMajor, 0, "vfio/devices/noiommu-vfio0")
	if got := read(t, n, "sys/class/vfio-dev/noiommu-vfio0/uevent"); got != want {
		t.Errorf("uevent is %q", got)
	}
	if got := read(t, n, dirA+"/iommu_group/name"); got != "vfio-noiommu\n" {
		t.Errorf("name of the group is %q", got)
	}
	if got := names(t, n, "dev/vfio"); !slices.Equal(got, []string{"devices", "noiommu-0", "vfio"}) {
		t.Errorf("/dev/vfio has %q", got)
	}
	if got := names(t, n, "dev/vfio/devices"); !slices.Equal(got, []string{"noiommu-vfio0"}) {
		t.Errorf("/dev/vfio/devices has %q", got)
	}
	must(t, n.Unbind(a))
	if exists(t, n, dirA+"/iommu_group") || len(names(t, n, "sys/kernel/iommu_groups")) != 0 {
		t.Error("the group that VFIO invented is there after the unbind")
	}
	must(t, n.AddNoIOMMUWithoutCdev(a))
	if got := read(t, n, "sys/class/vfio-dev/vfio0/uevent"); got != "" {
		t.Errorf("before Linux 7, uevent is %q", got)
	}
	if exists(t, n, "sys/class/vfio-dev/vfio0/dev") || exists(t, n, "dev/vfio/devices") {
		t.Error("before Linux 7, there is a dev file or a node")
	}
	if got := names(t, n, "dev/vfio"); !slices.Equal(got, []string{"noiommu-0", "vfio"}) {
		t.Errorf("before Linux 7, /dev/vfio has %q", got)
	}
	must(t, n.Unbind(a))
	if exists(t, n, dirA+"/iommu_group") || len(names(t, n, "sys/class/vfio-dev")) != 0 {
		t.Error("before Linux 7, the group or the class entry is there after the unbind")
	}
}

func TestStray(t *testing.T) {
	n := newNode(t, gpus(1))
	a := addr(t, gpuA)
	must(t, n.PlaceFile("vfio7", "text"), n.PlaceDir("vfio8"), n.PlaceNode("vfio9", 0, 0), n.Bind(a, "vfio-pci"))
	if got := names(t, n, "dev/vfio/devices"); !slices.Equal(got, []string{"vfio0", "vfio7", "vfio8", "vfio9"}) {
		t.Errorf("/dev/vfio/devices has %q", got)
	}
	must(t, n.Unbind(a)) // the directory stays as long as anything is in it
	must(t, n.RemovePlaced("vfio7"), n.RemovePlaced("vfio8"), n.RemovePlaced("vfio9"))
	for _, err := range []error{n.PlaceFile("../x", ""), n.RemovePlaced("../vfio")} {
		if !errors.Is(err, unix.EINVAL) {
			t.Errorf("outside of the directory: %v", err)
		}
	}
}

func TestHide(t *testing.T) {
	n := newNode(t, gpus(2))
	a, b := addr(t, gpuA), addr(t, gpuB)
	must(t, n.Bind(a, "vfio-pci"), n.HideVFIO(), n.HideVFIO(), n.Bind(b, "vfio-pci"), n.Unbind(a))
	if got := names(t, n, "dev/vfio/devices"); got == nil || len(got) != 0 {
		t.Errorf("hidden: %q", got)
	}
	if got := names(t, n, "sys/class/vfio-dev"); !slices.Equal(got, []string{"vfio1"}) {
		t.Errorf("class: %q", got)
	}
	must(t, n.ShowVFIO())
	if got := names(t, n, "dev/vfio/devices"); !slices.Equal(got, []string{"vfio1"}) {
		t.Errorf("shown: %q", got)
	}
	must(t, n.HideVFIO(), n.Unbind(b), n.ShowVFIO())
	if exists(t, n, "dev/vfio/devices") {
		t.Error("a directory without devices after ShowVFIO")
	}
	must(t, n.HideVFIO(), n.Bind(b, "vfio-pci"), n.ShowVFIO(), n.ShowVFIO())
	if got := names(t, n, "dev/vfio/devices"); !slices.Equal(got, []string{"vfio0"}) {
		t.Errorf("shown again: %q", got)
	}
}

func TestAttributes(t *testing.T) {
	n := newNode(t, gpus(1))
	a := addr(t, gpuA)
	must(t, n.SetAttribute(a, "vendor", "0x1002\n"))
	if got := read(t, n, dirA+"/vendor"); got != "0x1002\n" {
		t.Errorf("vendor is %q", got)
	}
	must(t, n.BreakAttribute(a, "uevent"), n.BreakAttribute(a, "vendor"))
	if _, err := os.ReadFile(filepath.Join(n.dir, dirA, "vendor")); !errors.Is(err, unix.EISDIR) {
		t.Errorf("a broken attribute: %v", err)
	}
	if err := n.BreakAttribute(a, "vendor"); !errors.Is(err, unix.EEXIST) {
		t.Errorf("broken twice: %v", err)
	}
	must(t, n.Bind(a, "nvidia"), n.RestoreAttribute(a, "uevent"), n.RestoreAttribute(a, "vendor"))
	if got := read(t, n, dirA+"/uevent"); got[:14] != "DRIVER=nvidia\n" {
		t.Errorf("uevent written while broken is %q", got)
	}
	if err := n.RestoreAttribute(a, "vendor"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("restored twice: %v", err)
	}
	if err := n.SetAttribute(a, "../x", ""); !errors.Is(err, unix.EINVAL) {
		t.Errorf("outside of the directory: %v", err)
	}
	must(t, n.BreakAttribute(a, "driver"), n.BreakAttribute(a, "iommu_group"), n.Unbind(a))
	must(t, n.RemoveAttribute(a, "numa_node"))
	f := n.devices[gpuA].fn
	must(t, n.Remove(a), n.Add(f))
	if got := read(t, n, dirA+"/vendor"); got != "0x10de\n" || len(n.broken) != 0 {
		t.Errorf("vendor of a new function is %q, broken %v", got, n.broken)
	}
}
