package main

import (
	"kata-device-plugin/test/kernel/wire"
)

// tables takes down what the product reads in each state that the simulator can be put into, for the
// host to compare. It begins with nothing bound, so that the numbers begin with 0.
func tables(s *stage) {
	for _, d := range s.plain() {
		s.must(s.unbind(d.ID))
	}
	s.table("nothing bound")
	for _, d := range s.plain() {
		s.must(s.bind(d.ID, "vfio-pci"))
		s.table(d.ID + " bound")
	}
	a, b := s.plain()[0], s.plain()[1]
	s.must(s.unbind(a.ID), s.unbind(b.ID), s.bind(b.ID, "vfio-pci"), s.bind(a.ID, "vfio-pci"))
	s.table("two rebound the other way round")

	vm, err := hold(a.ID)
	s.must(err)
	wait := s.while(func() error { return put(functions+a.ID+"/driver/unbind", a.ID) })
	s.eventually("the node has gone", func() bool { return cdev(a.ID) == "" && driver(a.ID) == "" })
	s.steps = append(s.steps, wire.Step{Do: wire.Hold, Address: a.ID})
	s.table("unbound while held")
	s.must(vm.Close())
	wait()
	s.steps = append(s.steps, wire.Step{Do: wire.Release, Address: a.ID})
	s.table("released")

	s.must(s.remove(b.ID))
	s.table("removed")
	s.must(s.rescan(b.ID))
	s.table("rescanned")
	s.must(s.bind(b.ID, "vfio-pci"), s.bind(a.ID, "vfio-pci"))
	s.table("all bound again")

	for _, d := range s.orders.Devices {
		if d.Role == wire.Shared || d.Role == wire.Display {
			s.must(s.bind(d.ID, "vfio-pci"))
			s.table(d.Role + " bound")
		}
		if d.Role == wire.PF {
			s.virtualTables(d)
		}
	}
}

// virtualTables are those of virtual functions.
func (s *stage) virtualTables(pf wire.Device) {
	s.must(s.bind(pf.ID, "vfio-pci"))
	s.table("PF bound")
	s.allowVFs()
	s.must(s.setVFs(pf.ID, 3, "vfio-pci"))
	s.kubelet.forbid(virtfns(pf.ID)...)
	s.table("VFs on VFIO")
	s.must(s.setVFs(pf.ID, 0, ""))
	s.table("VFs gone")
}
