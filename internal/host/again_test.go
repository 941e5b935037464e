package host_test

import (
	"testing"

	"kata-device-plugin/internal/host"
)

func TestAgain(t *testing.T) {
	pf := sriov()
	pf.Group = "7"
	r := newRig(t, pf, audio("0000:41:00.1", "7", "vfio-pci"), gpu(gpuB, "8", "vfio-pci"), gpu("0000:61:00.0", "9", ""))
	a, b, companion := addr(t, gpuA), addr(t, gpuB), addr(t, "0000:41:00.1")
	s := r.src.Look(nil)
	again := func(want bool) host.Function {
		t.Helper()
		f, ok := r.src.Again(s, a)
		if ok != want {
			t.Fatalf("%v, %+v", ok, f)
		}
		return f
	}
	same(t, "unchanged", again(true), *function(t, s, gpuA))
	for _, address := range []string{"0000:61:00.0", "0000:99:00.0"} { // without a device; unknown
		if f, ok := r.src.Again(s, addr(t, address)); ok {
			t.Errorf("%s: %+v", address, f)
		}
	}

	// What sends no event is fresh.
	must(t, r.SetVFs(a, 2, ""), r.Unbind(companion), r.Bind(companion, "snd_hda_intel"))
	f := again(true)
	if len(f.VFs) != 2 || len(f.Companions()) != 1 || f.Companions()[0].Driver != "snd_hda_intel" || f.Companions()[0].VFIO {
		t.Errorf("%+v, group %+v", f, f.Group)
	}
	if f := function(t, s, gpuA); len(f.VFs) != 0 || f.Companions()[0].Driver != "vfio-pci" {
		t.Errorf("the snapshot has changed: %+v", f)
	}
	s = r.src.Look(nil)

	// A read error is said, and what was known is kept.
	must(t, r.BreakAttribute(a, "virtfn0"))
	if f := again(true); f.Err == nil || !f.Known || len(f.VFs) != 2 {
		t.Errorf("%+v", f)
	}
	must(t, r.RestoreAttribute(a, "virtfn0"), r.SetVFs(a, 0, ""))
	s = r.src.Look(nil)

	// Another file in place of the node, and none.
	must(t, r.RemovePlaced("vfio0"))
	again(false)
	must(t, r.PlaceFile("vfio0", ""))
	if f := again(true); f.Cdev.State != host.CdevNotChar {
		t.Errorf("%+v", f.Cdev)
	}

	// Half unbound.
	must(t, r.Unbind(a), r.Bind(a, "vfio-pci"))
	s = r.src.Look(nil)
	steps, err := r.UnbindSteps(a)
	must(t, err, steps[0].Do())
	if f := again(true); f.Cdev.State != host.CdevPending {
		t.Errorf("%+v", f.Cdev)
	}
	for _, step := range steps[1:] {
		must(t, step.Do())
		again(false)
	}

	// Numbers change hands: A had 0, B has 2 and takes 0.
	must(t, r.Bind(a, "vfio-pci"))
	s = r.src.Look(nil)
	was, before := function(t, s, gpuA).Cdev.Name, function(t, s, gpuB).Cdev.Name
	must(t, r.Unbind(a), r.Unbind(b), r.Bind(b, "vfio-pci"), r.Bind(a, "vfio-pci"))
	now := r.src.Look(nil)
	if function(t, now, gpuB).Cdev.Name != was || function(t, now, gpuA).Cdev.Name == was {
		t.Fatalf("%s and %s were not swapped", was, before)
	}
	again(false)
	if f, ok := r.src.Again(s, b); ok {
		t.Errorf("%+v", f)
	}
	s = r.src.Glance(s)
	same(t, "after a glance", again(true), *function(t, now, gpuA))

	// Gone.
	must(t, r.Remove(a))
	again(false)
}
