package sim

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/pci"
)

func TestRemoveAndAdd(t *testing.T) {
	n := newNode(t, gpus(2))
	a, port := addr(t, gpuA), addr(t, "0000:00:01.0")
	must(t, n.Bind(a, "vfio-pci"))
	before := n.Functions()
	must(t, n.Remove(port)) // and what is below it
	for _, rel := range []string{dirA, "sys/bus/pci/devices/" + gpuA, "sys/bus/pci/devices/0000:00:01.0",
		"sys/bus/pci/drivers/vfio-pci/" + gpuA, "sys/kernel/iommu_groups/1", "sys/class/vfio-dev/vfio0", "dev/vfio/1"} {
		if exists(t, n, rel) {
			t.Errorf("%s is there after the removal", rel)
		}
	}
	f := before[slices.IndexFunc(before, func(f Function) bool { return f.Address() == a })]
	must(t, n.Add(f)) // with a root port that the path implies
	if got := read(t, n, dirA+"/driver_override"); got != "(null)\n" || exists(t, n, dirA+"/driver") {
		t.Errorf("a new function has the override %q", got)
	}
	if got := n.Functions(); len(got) != 4 || got[0].Address() != port || got[0].Driver != "pcieport" {
		t.Errorf("functions are %v", got)
	}
	if err := n.Add(f); !errors.Is(err, unix.EEXIST) {
		t.Errorf("added twice: %v", err)
	}
	if err := n.Add(Function{Path: "pci0000:00/nonsense"}); err == nil {
		t.Error("a path without address is added")
	}
	must(t, n.Bind(a, "vfio-pci"))
	check(t, n, "0 - -")
}

// TestVMD has a second host bridge, with a domain of its own, below an endpoint.
func TestVMD(t *testing.T) {
	vmd := Function{Path: "pci0000:00/0000:00:0e.0", Vendor: intel, Device: 0x28c0, Class: 0x010400, Group: "4"}
	disk := nvme().at(vmd.Path+"/pci10000:e0/10000:e0:06.0", "10000:e1:00.0", 0).in("4")
	n := newNode(t, Platform{Functions: []Function{disk, vmd}})
	want := "../../../devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0/10000:e1:00.0"
	got, err := os.Readlink(filepath.Join(n.dir, "sys/bus/pci/devices/10000:e1:00.0"))
	if err != nil || got != want {
		t.Errorf("the disk is at %q, %v", got, err)
	}
	must(t, n.Remove(vmd.Address()))
	if got := n.Functions(); len(got) != 0 {
		t.Errorf("below the endpoint that went: %v", got)
	}
	if _, err := New(filepath.Join(n.dir, "x"), Platform{Functions: []Function{vmd, vmd}}); !errors.Is(err, unix.EEXIST) {
		t.Errorf("a function listed twice: %v", err)
	}
}

// TestWhole reads functions while they come and go: a directory is complete or gone.
func TestWhole(t *testing.T) {
	n := newNode(t, gpus(2))
	var f Function
	for _, g := range n.Functions() {
		if g.Address() == addr(t, gpuA) {
			f = g
		}
	}
	done := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				readAll(t, filepath.Join(n.dir, "sys/bus/pci/devices"))
			}
		}
	})
	for range 200 {
		must(t, n.Remove(f.Address()), n.Add(f), n.Bind(f.Address(), "vfio-pci"))
	}
	close(done)
	reader.Wait()
}

// readAll reads in each function's directory what must be there. A file may be
// missing only if the directory went, or another came, meanwhile.
func readAll(t *testing.T, devices string) {
	list, err := os.ReadDir(devices)
	if err != nil {
		t.Error(err)
		return
	}
	for _, e := range list {
		dir := filepath.Join(devices, e.Name())
		before, there := identity(dir)
		for _, name := range []string{"vendor", "class", "numa_node", "uevent", "subsystem/drivers", "iommu_group/type"} {
			_, err := os.Stat(filepath.Join(dir, name))
			if after, still := identity(dir); err != nil && there && still && before == after {
				t.Errorf("%s: %v", dir, err)
			}
		}
	}
}

// identity tells a directory from those that had its name before.
func identity(dir string) (id [2]int64, ok bool) {
	var st unix.Stat_t
	err := unix.Stat(dir, &st)
	return [2]int64{int64(st.Ino), st.Ctim.Nano()}, err == nil
}

func TestPresets(t *testing.T) {
	for _, p := range append(Platforms(), Many(20)) {
		t.Run(p.Name, func(t *testing.T) {
			n := newNode(t, p)
			functions := n.Functions()
			want := len(p.Functions)
			for _, f := range p.Functions {
				want += len(f.VFs)
			}
			if len(functions) != want {
				t.Errorf("%d functions, %d in the list", len(functions), want)
			}
			var gpus, switches, cdevs int
			for _, f := range functions {
				number, ok := n.Cdev(f.Address())
				if !ok {
					continue
				}
				if cdevs++; f.Vendor == nvidia && (f.Class == class3D || f.Class == classVGA) {
					gpus++
				} else if f.Vendor == nvidia && f.Class == classOtherPort {
					switches++
				}
				var st unix.Stat_t
				must(t, unix.Lstat(filepath.Join(n.Roots("x").VFIODevices(), "vfio"+strconv.Itoa(number)), &st))
				major, minor := n.DevNumber(number)
				if unix.Major(st.Rdev) != major || unix.Minor(st.Rdev) != minor || st.Mode != unix.S_IFCHR|0o600 {
					t.Errorf("node of %s: %o %d", f.Address(), st.Mode, st.Rdev)
				}
			}
			if gpus != p.GPUs || switches != p.NVSwitches || len(names(t, n, "dev/vfio/devices")) != cdevs {
				t.Errorf("%d GPUs and %d NVSwitches, want %d and %d", gpus, switches, p.GPUs, p.NVSwitches)
			}
			if _, err := pci.ParsePath("devices/" + functions[0].Path); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := PlatformByName("hgx-h200"); err != nil {
		t.Error(err)
	}
	if _, err := PlatformByName("x"); err == nil || !strings.Contains(err.Error(), "hgx-h100, hgx-h200, ") {
		t.Errorf("error for an unknown platform: %v", err)
	}
}
