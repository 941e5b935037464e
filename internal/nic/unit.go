package nic

import (
	"slices"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
)

// unit is what a pool takes or leaves: a function, or a subfunction of one.
type unit struct {
	id string // of the device that it would be
	// f is the function, of a subfunction the parent. Its Network, which is never nil, has
	// also what is in a pod now and was seen before. seen is what the look itself saw.
	f    *host.Function
	seen *host.Network
	sf   string         // the name of the subfunction, "" for a function
	pf   *host.Function // the PF of a VF, the parent of a subfunction; nil when there is none to be seen

	was  *declare.Device // the device as it was announced last, nil when it was not
	home string          // the resource that it was announced as
	held []string        // the resources that pods hold it as
}

// newUnit is a unit without a past.
func newUnit(f *host.Function, sf string) *unit {
	own := *f
	if own.Network == nil { // it could not be read
		own.Network = &host.Network{VFIndex: -1}
	}
	u := &unit{id: f.Address.String(), f: &own, seen: own.Network, sf: sf}
	if sf != "" {
		u.id = sf
	}
	return u
}

// remember fills in what cannot be seen now and was seen before. The interface of a
// function and its RDMA device go from the host's view when they are moved into a pod's
// network namespace, and nothing else changes: they are the function's all the same.
// Without a driver they are gone, but the next one usually makes them again.
func (u *unit) remember(before *host.Function) {
	if before == nil || before.Network == nil || !u.mayHide() || before.Vendor != u.f.Vendor || before.Device != u.f.Device {
		return
	}
	old, now := before.Network, *u.f.Network
	if u.sf != "" {
		now.Subfunctions = slices.Clone(now.Subfunctions)
		for i := range now.Subfunctions {
			s := &now.Subfunctions[i]
			if o := subfunction(old, u.sf); s.Name == u.sf && o != nil {
				s.Interfaces, s.RDMA = orElse(s.Interfaces, o.Interfaces), orElse(s.RDMA, o.RDMA)
			}
		}
		u.f.Network = &now
		return
	}
	now.Interfaces, now.RDMA, now.VDPA = orElse(now.Interfaces, old.Interfaces), orElse(now.RDMA, old.RDMA), orElse(now.VDPA, old.VDPA)
	if now.Profile == "" {
		now.Profile = old.Profile
	}
	u.f.Network = &now
}

func orElse[T any](now, before []T) []T {
	if len(now) == 0 {
		return before
	}
	return now
}

// mayHide says whether interfaces and RDMA devices that are not to be seen may be there
// all the same: elsewhere, or as soon as the driver is back.
func (u *unit) mayHide() bool { return u.f.Driver == "" || hides(u.f) }

// hides says whether a function's driver is one of the kernel's network drivers, as far as
// that can be told: those of VFIO and UIO leave the device to its user, a few only keep it
// from others, and some only make a vDPA device of it (drivers/vdpa).
func hides(f *host.Function) bool {
	switch f.Driver {
	case "", "pci-stub", "pci-pf-stub", "xen-pciback", "vp_vdpa", "ifcvf", "octep_vdpa", "snet":
		return false
	}
	return !onVFIO(f) && !onUIO(f)
}

// onVFIO says whether a function is bound to VFIO. Variant drivers have other names than
// vfio-pci; what they all do is to register a VFIO device.
func onVFIO(f *host.Function) bool {
	return f.Driver == "vfio-pci" || f.Driver != "" && (f.Cdev != nil || f.Network != nil && f.Network.GroupNode != nil)
}

func onUIO(f *host.Function) bool {
	switch f.Driver {
	case "uio", "igb_uio", "uio_pci_generic":
		return true
	}
	return f.Network != nil && len(f.Network.UIO) > 0
}

func subfunction(n *host.Network, name string) *host.Subfunction {
	for i := range n.Subfunctions {
		if n.Subfunctions[i].Name == name {
			return &n.Subfunctions[i]
		}
	}
	return nil
}

// interfaces and rdma are the unit's own, the remembered ones included.
func (u *unit) interfaces() []host.Interface {
	if u.sf == "" {
		return u.f.Network.Interfaces
	}
	if s := subfunction(u.f.Network, u.sf); s != nil {
		return s.Interfaces
	}
	return nil
}

func (u *unit) rdma() []host.RDMADevice { return u.rdmaOf(u.f.Network) }

func (u *unit) rdmaOf(n *host.Network) []host.RDMADevice {
	if u.sf == "" {
		return n.RDMA
	}
	if s := subfunction(n, u.sf); s != nil {
		return s.RDMA
	}
	return nil
}

// visible says whether an interface of the unit is in the host's network namespace now.
func (u *unit) visible() bool {
	if u.sf == "" {
		return len(u.seen.Interfaces) > 0
	}
	s := subfunction(u.seen, u.sf)
	return s != nil && len(s.Interfaces) > 0
}

// driverless says whether the unit has no driver.
func (u *unit) driverless() bool {
	if u.f.Driver == "" {
		return true
	}
	s := subfunction(u.seen, u.sf)
	return s != nil && s.Driver == ""
}
