package main

import (
	"os"
	"strings"
	"time"

	"kata-device-plugin/test/kernel/wire"
)

// while runs something that blocks until another thing is done.
func (s *stage) while(blocked func() error) (wait func()) {
	done := make(chan error, 1)
	go func() { done <- blocked() }()
	return func() {
		select {
		case err := <-done:
			s.must(err)
		case <-time.After(patience):
			s.fatalf("it still waits")
		}
	}
}

// unbindHeld takes a function from VFIO while a VM uses it: the node goes at once, the kernel waits.
func unbindHeld(s *stage) {
	d, other := s.plain()[0], s.plain()[1]
	name := cdev(d.ID)
	vm, err := hold(d.ID)
	s.must(err)
	begun := time.Now()
	wait := s.while(func() error { return s.unbind(d.ID) })
	at := s.becomes(d, unhealthy)
	s.notef("unbind while held to Unhealthy: %s", round(at.Sub(begun)))
	s.refused(d)
	if _, err := os.Lstat("/dev/vfio/devices/" + name); !os.IsNotExist(err) {
		s.errorf("%s is there while the unbind waits: %v", name, err)
	}
	// Its number is not free yet, whatever comes meanwhile.
	s.must(s.unbind(other.ID), s.bind(other.ID, "vfio-pci"))
	if cdev(other.ID) == name {
		s.errorf("%s has the number of %s, which is still held", other.ID, d.ID)
	}
	s.becomes(other, healthy)
	s.granted(other)
	s.must(vm.Close())
	wait()
	s.must(s.bind(d.ID, "vfio-pci"))
	s.becomes(d, healthy)
	s.granted(d)
}

// rebindHeld has the driver come back while the kernel still waits to take it away: both writes hang,
// and when the VM ends the function leaves and returns at once.
func rebindHeld(s *stage) {
	d := s.plain()[0]
	name := cdev(d.ID)
	vm, err := hold(d.ID)
	s.must(err)
	unbound := s.while(func() error { return s.unbind(d.ID) })
	s.becomes(d, unhealthy)
	bound := s.while(func() error { return put("/sys/bus/pci/drivers/vfio-pci/bind", d.ID) })
	// The number is free only when the VM has let go of it.
	other := s.plain()[1]
	s.must(s.unbind(other.ID), s.bind(other.ID, "vfio-pci"))
	if cdev(other.ID) == name {
		s.errorf("%s has the number of %s, which is still held", other.ID, d.ID)
	}
	s.becomes(other, healthy)
	s.refused(d)
	s.must(vm.Close())
	unbound()
	bound()
	s.becomes(d, healthy)
	s.granted(d)
	s.granted(other)
}

// plugOut and plugIn have QEMU take the hot-pluggable function away and put it back.
func (s *stage) plugOut() error { return s.port.qmp("device_del", map[string]any{"id": "hot0"}) }

func (s *stage) plugIn(d wire.Device) {
	// QEMU keeps the name of the one that left until the kernel has let go of its slot.
	s.eventually("QEMU plugs it in", func() bool {
		return s.port.qmp("device_add", map[string]any{"driver": "edu", "id": "hot0", "bus": "hot"}) == nil
	})
	s.eventually("the function is there", func() bool { _, err := os.Stat(functions + d.ID); return err == nil })
}

// eventually waits for what the kernel tells nobody about.
func (s *stage) eventually(what string, condition func() bool) {
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(5 * time.Millisecond) {
		if condition() {
			return
		}
	}
	s.fatalf("waited in vain: %s", what)
}

// unplug has a function leave the bus and come back.
func unplug(s *stage) {
	d := s.role(wire.Hot)
	s.must(s.bind(d.ID, "vfio-pci"))
	s.becomes(d, healthy)
	begun := time.Now()
	s.must(s.plugOut())
	at := s.becomes(d, unhealthy)
	s.notef("QEMU's device_del to Unhealthy: %s", round(at.Sub(begun)))
	s.refused(d)
	s.eventually("the function has left", func() bool { _, err := os.Stat(functions + d.ID); return os.IsNotExist(err) })
	s.plugIn(d)
	if got := driver(d.ID); got != "" {
		s.errorf("it came back with driver %s", got)
	}
	s.must(s.bind(d.ID, "vfio-pci"))
	s.becomes(d, healthy)
	s.granted(d)
}

// unplugHeld does the same while a VM uses the function: its directory stays, without a driver.
func unplugHeld(s *stage) {
	d := s.role(wire.Hot)
	s.must(s.bind(d.ID, "vfio-pci"))
	s.becomes(d, healthy)
	vm, err := hold(d.ID)
	s.must(err)
	s.must(s.plugOut())
	s.becomes(d, unhealthy)
	if _, err := os.Stat(functions + d.ID); err != nil {
		s.errorf("the function left while it was held: %v", err)
	}
	s.refused(d)
	s.must(vm.Close())
	s.eventually("the function has left", func() bool { _, err := os.Stat(functions + d.ID); return os.IsNotExist(err) })
	s.plugIn(d)
	s.must(s.bind(d.ID, "vfio-pci"))
	s.becomes(d, healthy)
	s.granted(d)
}

// removeRescan takes a function off the bus by sysfs.
func removeRescan(s *stage) {
	d := s.plain()[0]
	s.must(s.remove(d.ID))
	s.becomes(d, unhealthy)
	s.refused(d)
	s.must(s.rescan(d.ID))
	if got := driver(d.ID); got != "" {
		s.errorf("it came back with driver %s", got)
	}
	s.must(s.bind(d.ID, "vfio-pci"))
	s.becomes(d, healthy)
	s.granted(d)
}

// reload unloads all of VFIO, as an administrator does, and loads it again. The functions' overrides
// stay, so the driver takes them back by itself.
func reload(s *stage) {
	s.must(unloadModules("vfio-pci"))
	for _, d := range s.plain() {
		s.becomes(d, unhealthy)
		s.refused(d)
	}
	s.must(s.loadModules("vfio-pci"))
	for _, d := range s.plain() {
		s.becomes(d, healthy)
		s.granted(d)
	}
	s.must(unloadModules(vfioModules()[1:]...))
	if _, err := os.Stat("/sys/class/vfio-dev"); !os.IsNotExist(err) {
		s.errorf("VFIO's class is there without its module: %v", err)
	}
	for _, d := range s.plain() {
		s.becomes(d, unhealthy)
	}
	s.must(s.loadModules(vfioModules()[1:]...))
	for _, d := range s.plain() {
		s.becomes(d, healthy)
		s.granted(d)
	}
}

// companion has a device whose IOMMU group the host uses as well.
func companion(s *stage) {
	d, n := s.role(wire.Shared), s.role(wire.Neighbour)
	s.giveBack(n)
	from := s.plugin.mark()
	s.must(s.bind(d.ID, "vfio-pci"))
	s.becomes(d, unhealthy)
	if _, ok := s.plugin.logged(from, patience, finding("HST002", d.ID)); !ok {
		s.errorf("the log does not say HST002")
	}
	if why := s.refused(d); !strings.Contains(why, "HST002") {
		s.errorf("the refusal says %q", why)
	}
	if err := claim(d.ID); err == nil {
		s.errorf("the kernel lets a VM have %s beside the driver %s", d.ID, driver(n.ID))
	} else {
		s.notef("the kernel says: %v", err)
	}
}

// giveBack binds the host's device to its driver.
func (s *stage) giveBack(n wire.Device) {
	if driver(n.ID) == "" {
		s.must(put("/sys/bus/pci/drivers_probe", n.ID))
	}
	if got := driver(n.ID); got != "virtio-pci" {
		s.fatalf("the driver of %s is %q", n.ID, got)
	}
}

// companionLeaves has the host give its device up, which sends no event that concerns VFIO, and take
// it back.
func companionLeaves(s *stage) {
	d, n := s.role(wire.Shared), s.role(wire.Neighbour)
	s.giveBack(n)
	s.must(s.bind(d.ID, "vfio-pci"))
	s.becomes(d, unhealthy)
	s.must(s.unbind(n.ID))
	s.must(claim(d.ID))
	s.granted(d) // it is asked for, and so looked at
	s.becomes(d, healthy)
	s.giveBack(n)
	if why := s.refused(d); !strings.Contains(why, "HST002") {
		s.errorf("the refusal says %q", why)
	}
	s.becomes(d, unhealthy)
}

// finding matches the log's line about a finding of a device.
func finding(id, device string) func(entry) bool {
	return func(e entry) bool { return e.Finding == id && (device == "" || e.Device == device) }
}

// mediated makes a VFIO device that is no PCI function.
func mediated(s *stage) {
	s.must(s.loadModules("mdev", "mtty"))
	from := s.plugin.mark()
	s.must(createMediated())
	e, ok := s.plugin.logged(from, patience, finding("HST024", ""))
	if !ok {
		s.errorf("the log does not say HST024")
	}
	s.notef("%v: %s", e.Device, e.Reason)
	for _, d := range s.plain() {
		s.becomes(d, healthy)
		s.granted(d)
	}
	s.must(removeMediated(), unloadModules("mdev", "mtty"))
}

const mediatedID = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001"

func createMediated() error {
	return put("/sys/devices/virtual/mtty/mtty/mdev_supported_types/mtty-1/create", mediatedID)
}

func removeMediated() error { return put("/sys/bus/mdev/devices/"+mediatedID+"/remove", "1") }
