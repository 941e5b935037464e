package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kata-device-plugin/test/kernel/wire"
)

// display has a GPU with an audio function in its IOMMU group.
func display(s *stage) {
	d, audio := s.role(wire.Display), s.role(wire.Audio)
	s.kubelet.forbid(audio.ID)
	s.must(s.bind(d.ID, "vfio-pci"))
	s.becomes(d, healthy) // a companion without a driver hinders nobody
	s.must(claim(d.ID))
	s.granted(d)
	s.must(s.bind(audio.ID, "vfio-pci"))
	s.must(claim(d.ID))
	s.granted(d)
	s.becomes(d, healthy)
	s.must(s.unbind(audio.ID))
}

// virtfns are the virtual functions of a PF.
func virtfns(pf string) []string {
	links, err := filepath.Glob(functions + pf + "/virtfn*")
	if err != nil {
		return nil
	}
	var all []string
	for _, l := range links {
		if target, err := os.Readlink(l); err == nil {
			all = append(all, filepath.Base(target))
		}
	}
	slices.Sort(all)
	return all
}

// allowVFs lets vfio-pci make virtual functions of the functions that it has.
func (s *stage) allowVFs() {
	s.must(put("/sys/module/vfio_pci/parameters/enable_sriov", "Y"))
}

// physicalFunction has a PF on vfio-pci whose VFs are switched on: that sends no event, so kubelet
// may hear of it late, but nobody gets it meanwhile.
func physicalFunction(s *stage) {
	pf := s.role(wire.PF)
	s.must(s.bind(pf.ID, "vfio-pci"))
	s.becomes(pf, healthy)
	s.granted(pf)
	s.allowVFs()
	from := s.plugin.mark()
	s.must(s.setVFs(pf.ID, 2, "vfio-pci"))
	vfs := virtfns(pf.ID)
	s.kubelet.forbid(vfs...)
	s.notef("VFs %v with drivers %q", vfs, drivers(vfs))
	if why := s.refused(pf); !strings.Contains(why, "HST029") {
		s.errorf("the refusal says %q", why)
	}
	s.becomes(pf, unhealthy)
	for _, vf := range vfs {
		if _, ok := s.plugin.logged(from, patience, finding("HST023", vf)); !ok {
			s.errorf("the log does not say why %s is not declared", vf)
		}
	}
	s.must(s.setVFs(pf.ID, 0, ""))
	s.granted(pf)
	s.becomes(pf, healthy)
}

func drivers(addresses []string) []string {
	all := make([]string, len(addresses))
	for i, a := range addresses {
		all[i] = driver(a)
	}
	return all
}

// pfHeld takes a PF from VFIO while a VM uses it. The kernel holds the function's lock while it waits
// for the VM, and some of the function's files in sysfs wait for that lock: who reads one of those
// hangs until the VM ends, and cannot even be killed.
func pfHeld(s *stage) {
	pf, other := s.role(wire.PF), s.plain()[0]
	s.must(s.bind(pf.ID, "vfio-pci"))
	s.becomes(pf, healthy)
	vm, err := hold(pf.ID)
	s.must(err)
	begun := time.Now()
	wait := s.while(func() error { return s.unbind(pf.ID) })
	at, ok := s.kubelet.is(pf.Resource, pf.ID, unhealthy, patience/6)
	if ok {
		s.notef("unbind while held to Unhealthy: %s", round(at.Sub(begun)))
	} else {
		s.errorf("%s is still announced as it was after %s; the plugin's threads wait in %s", pf.ID, patience/6, s.plugin.waits())
	}
	s.must(s.unbind(other.ID))
	if _, ok := s.kubelet.is(other.Resource, other.ID, unhealthy, patience/6); !ok {
		s.errorf("that %s has left is not announced either", other.ID)
	}
	s.must(vm.Close())
	wait()
	s.becomes(pf, unhealthy)
	s.must(s.bind(other.ID, "vfio-pci"))
	s.becomes(other, healthy)
}

// virtualFunctions has VFs on vfio-pci whose PF the host's driver has, and a plugin that starts when
// they are there.
func virtualFunctions(s *stage) {
	pf := s.role(wire.PF)
	s.must(s.bind(pf.ID, "igb"))
	s.must(put(functions+pf.ID+"/sriov_drivers_autoprobe", "0"), s.setVFs(pf.ID, 3, ""))
	vfs := virtfns(pf.ID)
	s.kubelet.forbid(vfs...)
	from := s.plugin.mark()
	for _, vf := range vfs {
		s.must(s.bind(vf, "vfio-pci"))
	}
	for _, vf := range vfs {
		if _, ok := s.plugin.logged(from, patience, finding("HST023", vf)); !ok {
			s.errorf("the log does not say why %s is not declared", vf)
		}
		s.must(claim(vf))
	}
	kill(s)
	for _, vf := range vfs {
		if _, ok := s.plugin.logged(0, patience, finding("HST023", vf)); !ok {
			s.errorf("after a restart the log does not say why %s is not declared", vf)
		}
	}
	s.must(s.setVFs(pf.ID, 0, ""), put(functions+pf.ID+"/sriov_drivers_autoprobe", "1"), s.unbind(pf.ID))
}

// removalWindow removes VFs that are on VFIO. For a moment the kernel shows each without its link to
// the PF, as a whole device; kubelet's stand-in notes when one is announced.
func removalWindow(s *stage) {
	pf := s.role(wire.PF)
	s.must(s.bind(pf.ID, "vfio-pci"))
	s.becomes(pf, healthy)
	s.allowVFs()
	for range 4 {
		from := s.plugin.mark()
		s.must(s.setVFs(pf.ID, 4, "vfio-pci"))
		vfs := virtfns(pf.ID)
		s.kubelet.forbid(vfs...)
		if _, ok := s.plugin.logged(from, patience, finding("HST023", vfs[len(vfs)-1])); !ok {
			s.errorf("the log does not say why %s is not declared", vfs[len(vfs)-1])
		}
		wait := s.while(func() error { return s.setVFs(pf.ID, 0, "") })
		s.busy(pf, vfs)
		wait()
	}
	s.granted(pf)
	s.becomes(pf, healthy)
}

// busy makes the plugin look at everything again and again until the functions have left: to be
// asked for a device that is not healthy is a reason.
func (s *stage) busy(pf wire.Device, leaving []string) {
	rounds := 0
	for there := true; there; rounds++ {
		_, _ = s.kubelet.allocate(pf.Resource, pf.ID) // whichever answer
		there = slices.ContainsFunc(leaving, func(a string) bool { _, err := os.Stat(functions + a); return err == nil })
	}
	s.notef("%d full looks while they left", rounds)
}
