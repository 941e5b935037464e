package host_test

import (
	"errors"
	"testing"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
)

// state is what a look sees of one function's VFIO device.
func state(s *host.Snapshot, f *host.Function) string {
	text := "none"
	if f.Cdev != nil {
		text = map[host.CdevState]string{
			host.CdevReady: "ready", host.CdevPending: "pending", host.CdevNoNumber: "no number", host.CdevNotChar: "not char",
			host.CdevOtherNumber: "other number", host.CdevNoIOMMU: "no IOMMU",
		}[f.Cdev.State]
	}
	if s.Torn() {
		text += ", torn"
	}
	return text
}

// TestSteps looks after every single step of a bind and an unbind. Before the class
// link is there, nothing shows that a bind is under way; the node, which comes last,
// sends an event. An unbind sends its event with the node, which is the second to go,
// so whatever a look meets from then on has to be known as torn. A glance does not see
// the first step of an unbind, which is no event.
func TestSteps(t *testing.T) {
	r := newRig(t, gpu(gpuA, "7", ""), audio("0000:41:00.1", "7", "vfio-pci"), gpu(gpuB, "8", "vfio-pci"))
	a := addr(t, gpuA)
	follow := func(steps []sim.Step, err error, want [][2]string, glances map[string]string) {
		t.Helper()
		must(t, err)
		if len(steps) != len(want) {
			t.Fatalf("%d steps, want %d", len(steps), len(want))
		}
		glanced := r.src.Look(nil)
		before := glanced
		for i, step := range steps {
			must(t, step.Do())
			glanced = r.src.Glance(glanced)
			expect := want[i][1]
			for what, s := range map[string]*host.Snapshot{"look": r.src.Look(nil), "second look": r.src.Look(before), "glance": glanced} {
				f := function(t, s, gpuA)
				expect := expect
				if g, ok := glances[step.Name]; ok && what == "glance" {
					expect = g
				}
				if got := state(s, f); step.Name != want[i][0] || got != expect {
					t.Errorf("%s after step %s: %s, want %v", what, step.Name, got, want[i])
				}
				if s.Partial() || len(s.Strays) > 0 {
					t.Errorf("%s after step %s: unread %v, error %v, strays %v", what, step.Name, s.Unread, f.Err, s.Strays)
				}
				if other := function(t, s, gpuB); other.Cdev.State != host.CdevReady {
					t.Errorf("%s after step %s: the other function is %s", what, step.Name, state(s, other))
				}
			}
		}
		same(t, "functions at the end", r.src.Look(nil).Functions, withoutPorts(expected(r.Node)))
		same(t, "functions at the end, glanced at", events(glanced), events(r.src.Look(nil)))
		if n := function(t, glanced, gpuB).Cdev; n == nil || n.State != host.CdevReady {
			t.Errorf("the other function's device: %+v", n)
		}
	}
	steps, err := r.BindSteps(a, "vfio-pci")
	follow(steps, err, [][2]string{
		{sim.StepOverride, "none"}, {sim.StepDriver, "none"}, {sim.StepGroup, "none"}, {sim.StepVFIODir, "none"},
		{sim.StepVFIO, "none"}, {sim.StepClass, "no number, torn"}, {sim.StepDev, "pending, torn"},
		{sim.StepChar, "pending, torn"}, {sim.StepNode, "ready"},
	}, nil)
	steps, err = r.UnbindSteps(a)
	follow(steps, err, [][2]string{
		{sim.StepDriver, "pending, torn"}, {sim.StepNode, "pending, torn"}, {sim.StepChar, "pending, torn"},
		{sim.StepDev, "no number, torn"}, {sim.StepClass, "none"}, {sim.StepVFIO, "none"}, {sim.StepVFIODir, "none"},
		{sim.StepGroup, "none"},
	}, map[string]string{sim.StepDriver: "ready"})
}

// withoutPorts leaves out what the rigs' sources do not want.
func withoutPorts(all []host.Function) []host.Function {
	var kept []host.Function
	for _, f := range all {
		if f.Cdev != nil || nvidia(f.Identity) {
			kept = append(kept, f)
		}
	}
	return kept
}

// TestTornDetails has the evidence, and tells a stale mount from an unbind.
func TestTornDetails(t *testing.T) {
	r := newRig(t, gpu(gpuA, "7", "vfio-pci"))
	a := addr(t, gpuA)
	must(t, r.HideVFIO())
	f := function(t, r.src.Look(nil), gpuA)
	if f.Cdev.Detail != "no node /dev/vfio/devices/vfio0, but driver vfio-pci" || f.Driver != "vfio-pci" {
		t.Errorf("stale mount: %+v", f.Cdev)
	}
	must(t, r.ShowVFIO())
	steps, err := r.UnbindSteps(a)
	must(t, err, steps[0].Do())
	f = function(t, r.src.Look(nil), gpuA)
	if f.Cdev.Detail != "node /dev/vfio/devices/vfio0, but no driver any more" || f.Driver != "" {
		t.Errorf("unbind: %+v", f.Cdev)
	}
	must(t, steps[1].Do())
	f = function(t, r.src.Look(nil), gpuA)
	if f.Cdev.Detail != "no node /dev/vfio/devices/vfio0, and no driver any more" {
		t.Errorf("unbind: %+v", f.Cdev)
	}
}

// TestTornCompanion has a companion in the middle of an unbind: without a driver it
// hinders nobody, whatever is left of its VFIO device.
func TestTornCompanion(t *testing.T) {
	r := newRig(t, gpu(gpuA, "7", "vfio-pci"), audio("0000:41:00.1", "7", "vfio-pci"))
	a := addr(t, "0000:41:00.1")
	before := r.src.Look(nil)
	steps, err := r.UnbindSteps(a)
	must(t, err)
	for _, step := range steps {
		must(t, step.Do())
		s := r.src.Look(before)
		want := []host.Member{{Address: a, Class: 0x040300}}
		same(t, step.Name, function(t, s, gpuA).Companions(), want)
		if f := function(t, s, gpuA); f.Cdev.State != host.CdevReady || f.Err != nil {
			t.Errorf("%s: %+v, %v", step.Name, f.Cdev, f.Err)
		}
	}
}

// TestBusy follows a function that is unbound or removed while somebody uses it.
func TestBusy(t *testing.T) {
	r := newRig(t, gpu(gpuA, "7", "vfio-pci"), gpu(gpuB, "8", "vfio-pci"))
	a, b := addr(t, gpuA), addr(t, gpuB)
	s := r.src.Look(nil)
	must(t, r.UnbindBusy(a))
	s = r.src.Glance(s)
	if f := function(t, s, gpuA); f.Cdev != nil || f.Driver != "" || s.Torn() || f.Group == nil {
		t.Errorf("waiting: %+v", f)
	}
	must(t, r.Release(a))
	same(t, "released", r.src.Look(s), s)
	must(t, r.RemoveBusy(b))
	s = r.src.Glance(s)
	if f := function(t, s, gpuB); f.Cdev != nil || f.Driver != "" {
		t.Errorf("leaving: %+v", f)
	}
	must(t, r.Release(b))
	s = r.src.Glance(s)
	if _, ok := s.Function(b); ok || s.Torn() {
		t.Error("it is there after it left")
	}
}

// TestHalfGone has a function whose directory goes while it is read.
func TestHalfGone(t *testing.T) {
	r := newRig(t, gpu(gpuA, "7", "vfio-pci"), gpu(gpuB, "8", ""))
	before := r.src.Look(nil)
	must(t, r.RemoveAttribute(addr(t, gpuA), "subsystem_device"), r.RemoveAttribute(addr(t, gpuB), "vendor"))
	s := r.src.Look(before)
	if len(s.Functions) != 0 || !s.Torn() || s.Partial() {
		t.Errorf("%+v, torn %v", s.Functions, s.Torn())
	}
}

// TestWhileChanging looks while numbers change hands all the time. Whatever state it
// meets, no function is lost or mistaken for another, and nothing counts as an error.
func TestWhileChanging(t *testing.T) {
	functions := []sim.Function{gpu(gpuA, "7", "vfio-pci"), audio("0000:41:00.1", "7", "vfio-pci"), gpu(gpuB, "8", "vfio-pci")}
	for i := range functions {
		functions[i].SubDevice += pci.ID(i)
	}
	r := newRig(t, functions...)
	a, b, c := addr(t, gpuA), addr(t, gpuB), addr(t, "0000:41:00.1")
	done := make(chan error)
	go func() {
		var err error
		for range 60 {
			err = errors.Join(err, r.Unbind(a), r.Unbind(b), r.Bind(b, "vfio-pci"), r.Unbind(c), r.Bind(a, "vfio-pci"),
				r.Bind(c, "snd_hda_intel"), r.Unbind(c), r.Bind(c, "vfio-pci"))
		}
		done <- err
	}()
	glanced := r.src.Look(nil)
	for running := true; running; {
		select {
		case err := <-done:
			must(t, err)
			running = false
		default:
		}
		looked := r.src.Look(glanced)
		glanced = r.src.Glance(glanced)
		for what, s := range map[string]*host.Snapshot{"look": looked, "glance": glanced} {
			if s.Partial() {
				t.Errorf("%s: unread %v", what, s.Unread)
			}
			for i, address := range []string{gpuA, "0000:41:00.1", gpuB} {
				f, ok := s.Function(addr(t, address))
				if !ok && i == 1 {
					continue // without a VFIO device it is not wanted
				}
				if !ok || f.Err != nil || f.SubDevice != functions[i].SubDevice || f.NUMA != 1 || f.Group == nil || f.Group.Number != functions[i].Group {
					t.Errorf("%s: %s: %v, %+v", what, address, ok, f)
				}
			}
		}
		if t.Failed() {
			if running {
				must(t, <-done)
			}
			return
		}
	}
	same(t, "glance at the end", events(r.src.Glance(glanced)), events(r.src.Look(nil)))
	same(t, "look at the end", r.src.Look(glanced).Functions, withoutPorts(expected(r.Node)))
}
