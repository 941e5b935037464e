package sim

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestVFs(t *testing.T) {
	n := newNode(t, rtxPro6000())
	pf, vf1 := addr(t, "0000:41:00.0"), addr(t, "0000:41:00.5")
	dir := "sys/bus/pci/devices/0000:41:00.0"
	must(t, n.SetVFs(pf, 5, "vfio-pci"))
	for link, want := range map[string]string{
		dir + "/virtfn0":                       "../0000:41:00.4",
		dir + "/virtfn4":                       "../0000:41:01.0",
		dir + "/virtfn4/physfn":                "../0000:41:00.0",
		dir + "/virtfn1/vfio-dev/vfio3/device": "../../../0000:41:00.5",
	} {
		if got, err := os.Readlink(filepath.Join(n.dir, link)); err != nil || got != want {
			t.Errorf("%s leads to %q, %v", link, got, err)
		}
	}
	if got := read(t, n, dir+"/sriov_numvfs"); got != "5\n" {
		t.Errorf("sriov_numvfs is %q", got)
	}
	if exists(t, n, dir+"/virtfn0/remove") || exists(t, n, dir+"/virtfn0/sriov_numvfs") {
		t.Error("a VF has files of a PF")
	}
	if a, b := read(t, n, dir+"/virtfn0/class"), read(t, n, dir+"/class"); a != b {
		t.Errorf("class of the VF is %q", a)
	}
	groups := map[string]bool{}
	for _, f := range n.Functions() {
		groups[f.Group] = true
	}
	if len(groups) != len(n.Functions()) {
		t.Error("VFs share groups")
	}
	for what, tt := range map[string]struct{ got, want error }{
		"another number":        {n.SetVFs(pf, 3, ""), unix.EBUSY},
		"too many":              {n.SetVFs(pf, 49, ""), unix.ERANGE},
		"of no PF":              {n.SetVFs(vf1, 1, ""), unix.ENOENT},
		"remove of a VF itself": {n.Remove(vf1), unix.EINVAL},
	} {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("%s: %v, want %v", what, tt.got, tt.want)
		}
	}
	must(t, n.UnbindBusy(vf1))
	if err := n.SetVFs(pf, 0, ""); !errors.Is(err, unix.EBUSY) {
		t.Errorf("none while one is in use: %v", err)
	}
	must(t, n.Release(vf1), n.SetVFs(pf, 0, ""))
	if exists(t, n, dir+"/virtfn0") || exists(t, n, "sys/bus/pci/devices/0000:41:00.4") {
		t.Error("VFs are there after sriov_numvfs 0")
	}
	must(t, n.SetVFs(pf, 48, ""))
	if got := len(names(t, n, "dev/vfio/devices")); got != 2 {
		t.Errorf("%d cdevs, want those of the two PFs", got)
	}
	must(t, n.Remove(pf))
	if exists(t, n, "sys/bus/pci/devices/0000:41:05.0") {
		t.Error("a VF is there after its PF went")
	}
}
