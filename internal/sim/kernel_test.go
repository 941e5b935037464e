package sim

import (
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/pci"
)

// recording is what a real kernel listed; embedded, so that the test binary runs
// from any directory.
//
//go:embed testdata/kernel-6.12.txt
var recording string

// omitted are entries of the recording that sim leaves out on purpose.
var omitted = map[string]bool{
	"aer_dev_correctable": true, "ari_enabled": true, "broken_parity_status": true,
	"consistent_dma_mask_bits": true, "d3cold_allowed": true, "dma_mask_bits": true, "link": true,
	"l0s_aspm": true, "local_cpus": true, "module": true, "msi_bus": true, "power_state": true,
	"reset_method": true, "resource0": true,
}

// anyText are files whose content is another machine's affair.
var anyText = map[string]bool{"local_cpulist": true, "resource": true, "config": true, "reserved_regions": true}

// TestKernel lays out the machine of the recording from its table of functions and
// compares every line that the kernel printed with what is there.
func TestKernel(t *testing.T) {
	n := newNode(t, Platform{Name: "recording", Functions: recordedFunctions(t)})
	recorded := map[string]bool{}
	for line := range strings.Lines(recording) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "0000:") {
			continue
		}
		if link, ok := strings.CutPrefix(line, "/sys/"); ok {
			line = "l0777 0:0 /sys/" + link
		}
		head, rest, _ := strings.Cut(line, " /")
		name, _, _ := strings.Cut(rest, " ")
		name = strings.TrimSuffix(name, "/")
		if omitted[filepath.Base(name)] {
			continue
		}
		recorded[name] = true
		if !n.real && (strings.HasPrefix(line, "c") || filepath.Base(name) == "dev" ||
			strings.Contains(name, "/vfio-dev/vfio") || strings.Contains(name, "/virtual/vfio")) {
			continue // without privilege all numbers are 0:0
		}
		compare(t, n, head, name, strings.TrimPrefix(strings.TrimPrefix(rest, name), "/"))
	}
	for _, dir := range []string{
		"sys/devices/pci0000:20/0000:20:04.0/0000:24:00.0",
		"sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/0000:82:00.0/0000:83:00.0",
		"sys/kernel/iommu_groups/14", "sys/class/vfio", "sys/class/vfio-dev", "sys/bus/pci/drivers/vfio-pci", "dev",
	} {
		noMore(t, n, dir, recorded)
	}
}

// compare checks one entry against its line: type and mode, owner, then one of
// " = text", " -> target", " dev=M,m" (which stands before the name).
func compare(t *testing.T, n *Node, head, name, value string) {
	t.Helper()
	path := filepath.Join(n.dir, name)
	info, err := os.Lstat(path)
	if err != nil {
		t.Error(err)
		return
	}
	kind := map[fs.FileMode]string{fs.ModeDir: "d", fs.ModeSymlink: "l", fs.ModeDevice | fs.ModeCharDevice: "c", 0: "-"}
	got := fmt.Sprintf("%s%04o 0:0", kind[info.Mode().Type()], info.Mode().Perm())
	if info.Mode().Type()&fs.ModeCharDevice != 0 {
		var st unix.Stat_t
		must(t, unix.Lstat(path, &st))
		got += fmt.Sprintf(" dev=%d,%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
	}
	if want := majors(head); got != want {
		t.Errorf("%s is %s, the kernel has %s", name, got, want)
	}
	if text, ok := strings.CutPrefix(value, " = "); ok && !anyText[filepath.Base(name)] {
		want, err := strconv.Unquote(text)
		must(t, err)
		if b, err := os.ReadFile(path); err != nil || string(b) != majors(want) {
			t.Errorf("%s is %q (%v), the kernel has %q", name, b, err, want)
		}
	}
	if want, ok := strings.CutPrefix(value, " -> "); ok {
		if to, err := os.Readlink(path); err != nil || to != want {
			t.Errorf("%s leads to %q (%v), the kernel has %q", name, to, err, want)
		}
	}
	if filepath.Base(name) == "config" && !strings.Contains(value, fmt.Sprintf("size %d,", info.Size())) {
		t.Errorf("%s has %d bytes, the kernel has%s", name, info.Size(), value)
	}
}

// majors puts sim's major numbers in the place of the recording's.
func majors(s string) string {
	for _, r := range [][2]string{{"dev=248,", "dev=511,"}, {"dev=249,", "dev=510,"}, {"248:", "511:"},
		{"249:", "510:"}, {"MAJOR=248", "MAJOR=511"}, {"MAJOR=249", "MAJOR=510"}} {
		s = strings.Replace(s, r[0], r[1], 1)
	}
	return s
}

// noMore checks that a directory has nothing that the kernel did not list.
func noMore(t *testing.T, n *Node, dir string, recorded map[string]bool) {
	t.Helper()
	must(t, filepath.WalkDir(filepath.Join(n.dir, dir), func(path string, _ fs.DirEntry, err error) error {
		must(t, err)
		rel, err := filepath.Rel(n.dir, path)
		must(t, err)
		if !recorded[rel] && rel != "dev" {
			t.Errorf("%s is there, the kernel has none", rel)
		}
		return nil
	}))
}

// recordedFunctions reads the table of functions. All of NVIDIA's were bound to
// vfio-pci after it was printed, in this order.
func recordedFunctions(t *testing.T) []Function {
	t.Helper()
	var list []Function
	for line := range strings.Lines(recording) {
		w := strings.Fields(line)
		if !strings.HasPrefix(line, "0000:") {
			continue
		}
		sub, subDevice, _ := strings.Cut(w[7], ":")
		rev, err := pci.ParseRevision(strings.TrimPrefix(w[8], "rev="))
		must(t, err)
		numa, err := strconv.Atoi(w[4])
		must(t, err)
		class, err := pci.ParseClass(w[3])
		must(t, err)
		f := Function{Path: strings.TrimPrefix(w[10], "../../../devices/"), Class: class, Revision: rev, NUMA: numa,
			Group: w[6], Driver: strings.TrimPrefix(w[5], "-")}
		for i, id := range []*pci.ID{&f.Vendor, &f.Device, &f.SubVendor, &f.SubDevice} {
			*id, err = pci.ParseID([]string{w[1], w[2], sub, subDevice}[i])
			must(t, err)
		}
		if f.Vendor == nvidia {
			f.Driver = "vfio-pci"
		}
		if w[0] == "0000:24:00.0" { // the only one with PCI Express and vfio-pci
			f.LinkSpeed, f.LinkWidth = "2.5 GT/s PCIe", 1
		}
		list = append(list, f)
	}
	return list
}
