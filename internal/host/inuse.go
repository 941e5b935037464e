package host

import (
	"slices"

	"kata-device-plugin/internal/pci"
)

// Use is the reason why a function is in the host's use.
type Use struct {
	Interface string  // the function's own
	Via       string  // the one with the route, which may be the same
	Default   Default // the route
}

// InUse says through which of its interfaces the host reaches the rest of the world by a
// function, and how: one that carries a default route, or a port of a bond, bridge or
// switch that does, or what such a link is stacked upon. It reports false for what is not
// in use, and for an unknown function.
func (s *Snapshot) InUse(a pci.Address) (Use, bool) {
	if all := s.Uses(a); len(all) > 0 {
		return all[0], true
	}
	return Use{}, false
}

// Uses are the reasons why a function is in the host's use: one for each of its interfaces
// and those of its subfunctions that is.
func (s *Snapshot) Uses(a pci.Address) []Use {
	if s == nil {
		return nil
	}
	return s.uses[a]
}

// owner is whose an interface is.
type owner struct {
	function pci.Address
	name     string
}

// use finds the functions in use. Of several routes by one interface the first counts.
func (l *look) use() {
	links := l.next.Links
	if links == nil {
		return
	}
	owners := map[int]owner{}
	for i := range l.next.Functions {
		f := &l.next.Functions[i]
		for _, i := range f.interfaces() {
			owners[i.Index] = owner{f.Address, i.Name}
		}
	}
	l.next.uses = map[pci.Address][]Use{}
	seen := map[int]bool{}
	below := links.below()
	for _, route := range links.Defaults {
		for _, index := range below.reach(route.Index) {
			o, ours := owners[index]
			if !ours || seen[index] {
				continue
			}
			seen[index] = true
			u := Use{Interface: o.name, Via: links.Links[route.Index].Name, Default: route}
			if index == route.Index {
				u.Via = o.name
			}
			l.next.uses[o.function] = append(l.next.uses[o.function], u)
		}
	}
}

// interfaces are those of a function and of its subfunctions.
func (f *Function) interfaces() []Interface {
	if f.Network == nil {
		return nil
	}
	all := f.Network.Interfaces
	for _, sf := range f.Network.Subfunctions {
		all = append(slices.Clip(all), sf.Interfaces...)
	}
	return all
}

// lowers are the links that carry the traffic of a link, by ifindex.
type lowers map[int][]int

// below turns the links upside down. Open vSwitch decides by flows which port the traffic of
// a bridge of its own takes, and of that netlink shows nothing: any port may carry it.
func (n *Links) below() lowers {
	l := lowers{}
	var bridges, ports []int
	for index, link := range n.Links {
		if link.Lower > 0 {
			l[index] = append(l[index], link.Lower)
		}
		if link.Master > 0 {
			l[link.Master] = append(l[link.Master], index)
			if n.Links[link.Master].Kind == openVSwitch {
				ports = append(ports, index)
			}
		}
		if link.Kind == openVSwitch {
			bridges = append(bridges, index)
		}
	}
	for _, b := range bridges {
		l[b] = append(l[b], ports...)
	}
	return l
}

// openVSwitch is the kind of Open vSwitch's own links (net/openvswitch/vport-internal_dev.c).
const openVSwitch = "openvswitch"

// reach are all links that may carry the traffic of one, itself among them. Links of several
// namespaces could seem to go round in a circle, so each is visited once.
func (l lowers) reach(index int) []int {
	all := []int{index}
	seen := map[int]bool{index: true}
	for at := 0; at < len(all); at++ {
		for _, below := range l[all[at]] {
			if !seen[below] {
				seen[below] = true
				all = append(all, below)
			}
		}
	}
	return all
}
