package sim

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/pci"
)

const (
	dirA = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
	gpuA = "0000:01:00.0"
	gpuB = "0000:02:00.0"
	gpuC = "0000:03:00.0"
)

// picture says which entries of gpuA's registration as vfio0 there are: driver
// link, vfio-dev/, vfio-dev/vfio0, class link, dev file, /sys/dev/char, node, and
// the group's node.
func picture(t *testing.T, n *Node) string {
	t.Helper()
	s := ""
	for _, rel := range []string{dirA + "/driver", dirA + "/vfio-dev", dirA + "/vfio-dev/vfio0",
		"sys/class/vfio-dev/vfio0", dirA + "/vfio-dev/vfio0/dev", "sys/dev/char/511:0",
		"dev/vfio/devices/vfio0", "dev/vfio/1"} {
		s += map[bool]string{false: "0", true: "1"}[exists(t, n, rel)]
	}
	return s
}

// TestSteps follows the order of kernel.md 3.5.
func TestSteps(t *testing.T) {
	n := newNode(t, gpus(1))
	a := addr(t, gpuA)
	char := map[bool]string{false: "0", true: "1"}[n.real]
	follow := func(steps []Step, err error, want [][2]string) {
		t.Helper()
		must(t, err)
		var got [][2]string
		for _, s := range steps {
			must(t, s.Do())
			got = append(got, [2]string{s.Name, picture(t, n)})
		}
		if !slices.Equal(got, want) {
			t.Errorf("steps\n%v, want\n%v", got, want)
		}
	}
	steps, err := n.BindSteps(a, "vfio-pci")
	follow(steps, err, [][2]string{
		{StepOverride, "00000000"}, {StepDriver, "10000000"}, {StepGroup, "10000001"}, {StepVFIODir, "11000001"},
		{StepVFIO, "11100001"}, {StepClass, "11110001"}, {StepDev, "11111001"}, {StepChar, "11111" + char + "01"},
		{StepNode, "11111" + char + "11"},
	})
	if number, ok := n.Cdev(a); !ok || number != 0 {
		t.Errorf("cdev is %d, %v", number, ok)
	}
	steps, err = n.UnbindSteps(a)
	follow(steps, err, [][2]string{
		{StepDriver, "01111" + char + "11"}, {StepNode, "01111" + char + "01"}, {StepChar, "01111001"},
		{StepDev, "01110001"}, {StepClass, "01100001"}, {StepVFIO, "01000001"}, {StepVFIODir, "00000001"},
		{StepGroup, "00000000"},
	})
	if number, ok := n.Cdev(a); ok {
		t.Errorf("cdev is %d after the unbind", number)
	}
	if exists(t, n, "dev/vfio/devices") {
		t.Error("/dev/vfio/devices is there without a device")
	}
}

// TestTornOrder does the steps of a bind in the wrong order, and not all of them.
func TestTornOrder(t *testing.T) {
	n := newNode(t, gpus(1))
	steps, err := n.BindSteps(addr(t, gpuA), "vfio-pci")
	must(t, err)
	slices.Reverse(steps)
	must(t, steps[0].Do()) // the node alone
	if got := picture(t, n); got != "00000010" {
		t.Errorf("after the node: %s", got)
	}
	must(t, steps[3].Do()) // the class link, which leads nowhere
	if got := picture(t, n); got != "00010010" {
		t.Errorf("after the class link: %s", got)
	}
}

// TestStateFiles looks at what a driver does to a function's files.
func TestStateFiles(t *testing.T) {
	n := newNode(t, gpus(1))
	a := addr(t, gpuA)
	for _, tt := range []struct {
		driver, override, enable string
		vfio                     bool
	}{
		{"vfio-pci", "vfio-pci\n", "0\n", true},
		{"nvidia", "(null)\n", "1\n", false},
		{"pci-stub", "pci-stub\n", "1\n", false},
		{"nvgrace_gpu_vfio_pci", "nvgrace_gpu_vfio_pci\n", "0\n", true},
	} {
		must(t, n.Bind(a, tt.driver))
		if got := read(t, n, dirA+"/driver_override"); got != tt.override {
			t.Errorf("%s: driver_override %q", tt.driver, got)
		}
		if got := read(t, n, dirA+"/enable"); got != tt.enable {
			t.Errorf("%s: enable %q", tt.driver, got)
		}
		want := "DRIVER=" + tt.driver + "\nPCI_CLASS=30200\nPCI_ID=10DE:2330\nPCI_SUBSYS_ID=10DE:16C1\nPCI_SLOT_NAME=" +
			gpuA + "\nMODALIAS=pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00\n"
		if got := read(t, n, dirA+"/uevent"); got != want {
			t.Errorf("%s: uevent %q", tt.driver, got)
		}
		if _, ok := n.Cdev(a); ok != tt.vfio {
			t.Errorf("%s: cdev %v", tt.driver, ok)
		}
		must(t, n.Unbind(a))
		if got := read(t, n, dirA+"/driver_override"); got != tt.override {
			t.Errorf("%s: driver_override %q after the unbind", tt.driver, got)
		}
		if got := read(t, n, dirA+"/uevent"); got != want[len("DRIVER="+tt.driver+"\n"):] {
			t.Errorf("%s: uevent %q after the unbind", tt.driver, got)
		}
	}
}

// TestNumbers is the swap of kernel.md 3.1.
func TestNumbers(t *testing.T) {
	n := newNode(t, gpus(3))
	a, b, c := addr(t, gpuA), addr(t, gpuB), addr(t, gpuC)
	must(t, n.Bind(a, "vfio-pci"), n.Bind(b, "vfio-pci"), n.Bind(c, "vfio-pci"))
	check(t, n, "0 1 2")
	must(t, n.Unbind(a), n.Unbind(c), n.Bind(c, "vfio-pci"), n.Bind(a, "vfio-pci"))
	check(t, n, "2 1 0")
	if got, want := read(t, n, dirA+"/vfio-dev/vfio2/dev"), n.devText(cdevMajor, 2); got != want {
		t.Errorf("dev is %q, want %q", got, want)
	}
}

// check compares the cdev numbers of A, B and C.
func check(t *testing.T, n *Node, want string) {
	t.Helper()
	got := ""
	for _, s := range []string{gpuA, gpuB, gpuC} {
		if number, ok := n.Cdev(addr(t, s)); ok {
			got += fmt.Sprintf(" %d", number)
		} else {
			got += " -"
		}
	}
	if got[1:] != want {
		t.Errorf("numbers are%s, want %s", got, want)
	}
}

// TestBusy is kernel.md 3.3.
func TestBusy(t *testing.T) {
	n := newNode(t, gpus(3))
	a, b := addr(t, gpuA), addr(t, gpuB)
	must(t, n.Bind(a, "vfio-pci"), n.Bind(b, "vfio-pci"), n.UnbindBusy(a))
	if got := picture(t, n); got != "00000001" {
		t.Errorf("while it waits: %s", got)
	}
	check(t, n, "- 1 -")
	for name, err := range map[string]error{"bind": n.Bind(a, "vfio-pci"), "unbind": n.Unbind(a), "remove": n.Remove(a)} {
		if !errors.Is(err, unix.EBUSY) {
			t.Errorf("%s while it waits: %v", name, err)
		}
	}
	must(t, n.Bind(addr(t, gpuC), "vfio-pci"))
	check(t, n, "- 1 2") // 0 is held
	must(t, n.Release(a))
	if exists(t, n, "dev/vfio/1") {
		t.Error("the group's node is there after the release")
	}
	must(t, n.Bind(a, "vfio-pci"))
	check(t, n, "0 1 2")

	must(t, n.RemoveBusy(b))
	if !exists(t, n, "sys/bus/pci/devices/"+gpuB) {
		t.Error("a removed function in use is gone")
	}
	must(t, n.Release(b))
	if exists(t, n, "sys/bus/pci/devices/"+gpuB) || exists(t, n, "sys/kernel/iommu_groups/2") {
		t.Error("a removed function is there after the release")
	}
}

// TestRefusals are the kernel's error numbers.
func TestRefusals(t *testing.T) {
	n := newNode(t, gpus(1))
	a, none := addr(t, gpuA), pci.Address{Bus: 0x77}
	if err := n.Unbind(a); !errors.Is(err, unix.ENODEV) {
		t.Errorf("unbind when not bound: %v", err)
	}
	must(t, n.Bind(a, "vfio-pci"))
	if err := n.Bind(a, "vfio-pci"); !errors.Is(err, unix.EBUSY) {
		t.Errorf("bind when bound: %v", err)
	}
	if err := n.Bind(none, "vfio-pci"); !errors.Is(err, unix.ENODEV) {
		t.Errorf("bind of nothing: %v", err)
	}
	if err := n.Release(a); !errors.Is(err, unix.EINVAL) {
		t.Errorf("release of a function in no hurry: %v", err)
	}
	must(t, n.Unbind(a), n.Bind(a, "nvidia"))
	if err := n.UnbindBusy(a); !errors.Is(err, unix.EINVAL) {
		t.Errorf("busy unbind without cdev: %v", err)
	}
	if _, err := New(n.dir, gpus(1)); !errors.Is(err, unix.EEXIST) {
		t.Errorf("a second node in one directory: %v", err)
	}
}

// TestGroupNode has two functions in one group: the node comes with the first and
// goes with the last.
func TestGroupNode(t *testing.T) {
	n := newNode(t, workstation())
	card, audio := addr(t, "0000:01:00.0"), addr(t, "0000:01:00.1")
	must(t, n.Unbind(card))
	if !exists(t, n, "dev/vfio/2") {
		t.Error("the node went with the first of two")
	}
	must(t, n.Unbind(audio))
	if exists(t, n, "dev/vfio/2") || exists(t, n, "sys/class/vfio/2") || exists(t, n, "dev/vfio/devices") {
		t.Error("something stayed after the last")
	}
	must(t, n.BindVFIO(card, "nvidia"), n.BindWithoutCdev(audio, "vfio-pci"))
	if !exists(t, n, "sys/class/vfio-dev/vfio1") || exists(t, n, "sys/class/vfio-dev/vfio1/dev") ||
		exists(t, n, "dev/vfio/devices/vfio1") || !exists(t, n, "dev/vfio/devices/vfio0") {
		t.Error("a kernel without cdevs has only the class entry")
	}
}
