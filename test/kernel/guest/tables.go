package main

import (
	"os"

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
	s.did(wire.Step{Do: wire.Hold, Address: a.ID})
	s.table("unbound while held")
	s.must(vm.Close())
	wait()
	s.did(wire.Step{Do: wire.Release, Address: a.ID})
	s.table("released")

	s.must(s.remove(b.ID))
	s.table("removed")
	s.must(s.rescan(b.ID))
	s.table("rescanned")
	s.must(s.bind(b.ID, "vfio-pci"), s.bind(a.ID, "vfio-pci"))
	s.table("all bound again")

	for _, d := range s.orders.Devices {
		switch d.Role {
		case wire.Shared:
			s.neighbourTables(d)
		case wire.Display:
			s.must(s.bind(d.ID, "vfio-pci"))
			s.table("display bound")
			s.must(s.bind(s.role(wire.Audio).ID, "vfio-pci"))
			s.table("display and audio bound")
			s.must(s.unbind(s.role(wire.Audio).ID))
			s.table("audio unbound")
		case wire.PF:
			s.virtualTables(d)
		case wire.Hot:
			s.hotTables(d)
			s.mediatedTables()
		}
	}
}

// neighbourTables are those of a function whose group the host uses as well.
func (s *stage) neighbourTables(d wire.Device) {
	n := s.role(wire.Neighbour)
	s.must(s.bind(d.ID, "vfio-pci"))
	s.table("shared bound")
	s.must(s.unbind(n.ID))
	s.table("neighbour unbound")
	s.giveBack(n)
	s.did(wire.Step{Do: wire.Bind, Address: n.ID, Driver: driver(n.ID)})
	s.table("neighbour bound to its driver")
}

// hotTables are those of a function that is plugged out and in.
func (s *stage) hotTables(d wire.Device) {
	gone := func() bool { _, err := os.Stat(functions + d.ID); return os.IsNotExist(err) }
	s.must(s.bind(d.ID, "vfio-pci"))
	s.table("hot bound")
	s.must(s.plugOut())
	s.eventually("the function has left", gone)
	s.did(wire.Step{Do: wire.Remove, Address: d.ID})
	s.table("hot plugged out")
	s.plugIn(d)
	s.did(wire.Step{Do: wire.Add, Address: d.ID})
	s.table("hot plugged in")
	s.must(s.bind(d.ID, "vfio-pci"))
	vm, err := hold(d.ID)
	s.must(err)
	s.table("hot bound again")
	s.must(s.plugOut())
	s.eventually("the node has gone", func() bool { return cdev(d.ID) == "" && driver(d.ID) == "" })
	s.did(wire.Step{Do: wire.HoldRemoved, Address: d.ID})
	s.table("hot plugged out while held")
	s.must(vm.Close())
	s.eventually("the function has left", gone)
	s.did(wire.Step{Do: wire.Release, Address: d.ID})
	s.table("hot released")
	s.plugIn(d)
	s.did(wire.Step{Do: wire.Add, Address: d.ID})
	s.table("hot plugged in again")
}

// mediatedTables are those of a VFIO device that is no PCI function.
func (s *stage) mediatedTables() {
	s.must(s.loadModules("mdev", "mtty"), createMediated())
	s.did(wire.Step{Do: wire.AddMediated, Address: mediatedID})
	s.table("a mediated device")
	s.must(removeMediated())
	s.did(wire.Step{Do: wire.LoseMediated, Address: mediatedID})
	s.table("the mediated device removed")
	s.must(unloadModules("mdev", "mtty"))
}

// tablesWithoutIOMMU are those of VFIO's unsafe mode.
func tablesWithoutIOMMU(s *stage) {
	d := s.plain()[0]
	for _, d := range s.plain() {
		s.must(s.unbind(d.ID))
	}
	s.table("nothing bound")
	for _, d := range s.plain() {
		s.must(s.bind(d.ID, "vfio-pci"))
		s.steps[len(s.steps)-1].Do = wire.BindNoIOMMU
	}
	s.table("all bound without IOMMU")
	s.must(s.unbind(d.ID))
	s.table(d.ID + " unbound")
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
