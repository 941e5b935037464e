package nic

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/nicconfig"
	"kata-device-plugin/internal/pci"
)

// selector is one list of a selector object with the fact that it is held against. A list
// that is empty is no question.
type selector struct {
	key   string
	asked bool
	fact  func() string
	test  func() (a, guess answer)
}

// known is a selector on a fact that every function has.
func known[T comparable](key string, list []T, value T) selector {
	return selector{key, len(list) > 0, func() string { return fmt.Sprint(value) },
		func() (answer, answer) { return is(slices.Contains(list, value)), no }}
}

// judge holds all selectors against the facts.
func judge(all []selector) verdict {
	v := verdict{answer: yes}
	for _, s := range all {
		if v.answer == no {
			break
		}
		if !s.asked {
			continue
		}
		w := verdict{key: s.key}
		if w.answer, w.guess = s.test(); w.answer != yes {
			w.fact = finding.Evidence{Path: s.key, Value: s.fact()}
		}
		v = v.and(w)
	}
	return v
}

// match holds one selector object of a pool against a unit.
func (u *unit) match(s *nicconfig.Selector) verdict {
	f, n := u.f, u.f.Network
	return judge([]selector{
		known("vendors", s.Vendors, f.Vendor),
		known("devices", s.Devices, f.Device),
		u.drivers(s.Drivers),
		known("pciAddresses", s.PCIAddresses, f.Address),
		{"acpiIndexes", len(s.ACPIIndexes) > 0, func() string { return show(n.ACPIIndex, "%d") },
			func() (answer, answer) {
				return is(n.ACPIIndex != nil && slices.Contains(s.ACPIIndexes, *n.ACPIIndex)), no
			}},
		{"pfNames", len(s.PFNames) > 0, u.pfName, func() (answer, answer) { return u.pfNames(s.PFNames) }},
		{"rootDevices", len(s.RootDevices) > 0, u.root, func() (answer, answer) { return u.rootDevices(s.RootDevices) }},
		u.linkTypes(s.LinkTypes),
		{"ddpProfiles", len(s.DDPProfiles) > 0, func() string { return orNone(n.Profile) }, func() (answer, answer) {
			if n.Profile == "" {
				return unseen, no // devlink may be busy
			}
			return is(slices.Contains(s.DDPProfiles, n.Profile)), no
		}},
		{"pKeys", len(s.PKeys) > 0, u.pKey, func() (answer, answer) { return u.pKeys(s.PKeys) }},
		{"isRdma", s.IsRDMA, func() string { return "no RDMA device" }, u.isRDMA},
		{"vdpaType", s.VDPAType != nicconfig.NoVDPA, u.vdpaDriver, func() (answer, answer) { return u.vdpa(s.VDPAType) }},
	})
}

// drivers: a unit without a driver may get the one it had back, of which only its past knows.
func (u *unit) drivers(list []string) selector {
	return selector{"drivers", len(list) > 0, func() string { return orNone(u.f.Driver) }, func() (answer, answer) {
		if u.f.Driver == "" {
			return unseen, no
		}
		return is(slices.Contains(list, u.f.Driver)), no
	}}
}

// vdpa asks the first vDPA device.
func (u *unit) vdpa(want nicconfig.VDPAType) (a, guess answer) {
	all := u.f.Network.VDPA
	if len(all) == 0 {
		return no, no
	}
	switch all[0].Driver {
	case "":
		return unseen, no // it is being bound
	case "vhost_vdpa":
		return is(want == nicconfig.VhostVDPA), no
	case "virtio_vdpa":
		return is(want == nicconfig.VirtioVDPA), no
	}
	return no, no
}

func (u *unit) vdpaDriver() string {
	if all := u.f.Network.VDPA; len(all) > 0 {
		return all[0].Name + " on " + orNone(all[0].Driver)
	}
	return "no vDPA device"
}

// match holds the selectors of a shared pool against a function.
func (p *sharedPool) match(u *unit) verdict {
	s, f := &p.Selector, u.f
	return judge([]selector{
		known("vendors", s.Vendors, f.Vendor),
		known("deviceIDs", s.DeviceIDs, f.Device),
		u.drivers(s.Drivers),
		{"ifNames", len(s.IfNames) > 0, u.names, func() (answer, answer) {
			for _, i := range u.interfaces() {
				if slices.Contains(s.IfNames, i.Name) {
					return yes, no
				}
			}
			if len(u.interfaces()) == 0 && u.mayHide() {
				return unseen, unseen
			}
			return no, no
		}},
		u.linkTypes(s.LinkTypes),
	})
}

func (u *unit) names() string {
	var all []string
	for _, i := range u.interfaces() {
		all = append(all, i.Name)
	}
	return orNone(strings.Join(all, ","))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func show[T any](p *T, format string) string {
	if p == nil {
		return "none"
	}
	return fmt.Sprintf(format, *p)
}

// root is the PF's address with the unit's number at it.
func (u *unit) root() string {
	a, index, ok := u.parent()
	if !ok {
		return "no PF"
	}
	return a.String() + "#" + strconv.Itoa(index)
}

// parent is the address of the PF of a VF, or of the parent of a subfunction, with the
// number at it, -1 where that is not known.
func (u *unit) parent() (a pci.Address, index int, ok bool) {
	if u.sf != "" {
		if s := subfunction(u.f.Network, u.sf); s != nil {
			return u.f.Address, int(s.Number), true
		}
		return u.f.Address, -1, true
	}
	if u.f.PhysFn == nil {
		return a, -1, false
	}
	return *u.f.PhysFn, u.f.Network.VFIndex, true
}
