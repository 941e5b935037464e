package nic

import (
	"fmt"
	"slices"
	"strings"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nicconfig"
	"kata-device-plugin/internal/pci"
)

// numbered says whether a unit's number is among those of an entry.
func numbered(x nicconfig.Indexes, index int) answer {
	if index < 0 && len(x) > 0 {
		return unseen // the PF does not list the VF yet, or any more
	}
	return is(index < 0 || x.Has(uint32(index)))
}

func (u *unit) rootDevices(entries []nicconfig.RootDevice) (a, guess answer) {
	pf, index, ok := u.parent()
	if !ok {
		return no, no
	}
	i := slices.IndexFunc(entries, func(e nicconfig.RootDevice) bool { return e.Address == pf })
	if i < 0 {
		return no, no
	}
	return numbered(entries[i].Indexes, index), unseen
}

// pfNames compares without case, as the old plugin does.
func (u *unit) pfNames(entries []nicconfig.PFName) (a, guess answer) {
	_, index, ok := u.parent()
	if !ok {
		return no, no
	}
	var links []host.Interface
	if u.pf != nil && u.pf.Network != nil {
		links = uplinks(u.pf.Network.Interfaces)
	}
	if len(links) == 0 {
		return no.unless(u.pf == nil || u.pf.Driver == "" || hides(u.pf)), unseen
	}
	a = no
	for _, e := range entries {
		if !slices.ContainsFunc(links, func(i host.Interface) bool { return strings.EqualFold(i.Name, e.Name) }) {
			continue
		}
		if b := numbered(e.Indexes, index); b != no {
			a = b
		}
	}
	return a, unseen
}

// unless is the answer, unless it cannot be seen.
func (a answer) unless(hidden bool) answer {
	if hidden {
		return unseen
	}
	return a
}

func (u *unit) pfName() string {
	_, index, ok := u.parent()
	if !ok {
		return "no PF"
	}
	name := "a PF without an interface here"
	if u.pf != nil && u.pf.Network != nil {
		var all []string
		for _, i := range uplinks(u.pf.Network.Interfaces) {
			all = append(all, i.Name)
		}
		if len(all) > 0 {
			name = strings.Join(all, ",")
		}
	}
	return fmt.Sprintf("%s#%d", name, index)
}

// links is what is known of the unit's link types: its own, else the PF's.
func (u *unit) links() (own, pf []nicconfig.LinkType) {
	own = linkTypes(u.interfaces(), u.rdma())
	if u.pf != nil && u.pf.Network != nil {
		pf = linkTypes(u.pf.Network.Interfaces, u.pf.Network.RDMA)
	}
	return own, pf
}

// linkTypes asks the unit's own interface, and where it has none its PF's: a VF on VFIO has
// the link of its PF. Where the own interface may be somewhere else, the PF is a guess.
func (u *unit) linkTypes(want []nicconfig.LinkType) selector {
	matches := func(have []nicconfig.LinkType) answer {
		return is(slices.ContainsFunc(have, func(t nicconfig.LinkType) bool { return slices.Contains(want, t) }))
	}
	shown := func() string {
		own, pf := u.links()
		return orNone(strings.Trim(fmt.Sprint(append(own, pf...)), "[]"))
	}
	return selector{"linkTypes", len(want) > 0, shown, func() (answer, answer) {
		own, pf := u.links()
		_, _, hasPF := u.parent()
		switch {
		case len(own) > 0:
			return matches(own), no
		case len(pf) > 0 && u.f.Driver != "" && !hides(u.f):
			return matches(pf), no
		case len(pf) > 0:
			return unseen, matches(pf)
		case hides(u.f) || u.f.Driver == "":
			return unseen, unseen
		}
		return no.unless(hasPF && (u.pf == nil || u.pf.Driver == "" || hides(u.pf))), unseen
	}}
}

// isRDMA: while the interface is in the host's namespace, so is the RDMA device, or there is
// none. Otherwise both may be in a pod, and the PF of a VF says whether it has such things.
func (u *unit) isRDMA() (a, guess answer) {
	switch {
	case len(u.rdma()) > 0:
		return yes, no
	case !u.mayHide():
		return no, no
	case u.visible() || u.sf == "" && u.f.PhysFn == nil:
		return unseen, no
	case u.pf == nil || u.pf.Network == nil:
		return unseen, unseen
	case u.driverless() && len(u.pf.Network.RDMA) > 0:
		return unseen, unseen // its driver decides
	}
	return unseen, is(len(u.pf.Network.RDMA) > 0)
}

// pKeys are those of InfiniBand; RoCE has one that means nothing.
func (u *unit) pKeys(want []uint16) (a, guess answer) {
	all := u.rdma()
	own, pf := u.links()
	if types := slices.Concat(own, pf); len(types) > 0 && !slices.Contains(types, nicconfig.InfiniBand) {
		return no, no
	}
	if len(all) == 0 {
		return no.unless(u.mayHide()), no.unless(!u.visible())
	}
	return is(slices.Contains(own, nicconfig.InfiniBand) && all[0].PKey != nil && slices.Contains(want, *all[0].PKey)), no
}

func (u *unit) pKey() string {
	all := u.rdma()
	if len(all) == 0 {
		return "none"
	}
	return show(all[0].PKey, "0x%04x")
}

// find returns a function of a list that is sorted by address.
func find(all []host.Function, a pci.Address) *host.Function {
	i, ok := slices.BinarySearchFunc(all, a, func(f host.Function, a pci.Address) int { return f.Address.Compare(a) })
	if !ok {
		return nil
	}
	return &all[i]
}
