// Package placement chooses, among free devices, those that sit closest together. It
// knows nothing of PCI: a device's place is a path of domains, from the widest (a NUMA
// node) to the narrowest (a switch port).
package placement

import (
	"slices"
)

// Unit is one device that may be chosen.
type Unit struct {
	ID string
	// Path names the domains that the device is in, the widest first.
	Path []string
}

// Choose picks size units: first those named in must, then the ones that span the
// fewest and narrowest domains; among equals those that leave the largest sets
// together for others. It is deterministic, and answers as well as it can when must
// names an unknown unit or there are fewer units than asked for: kubelet rejects the
// pod when this hint fails. The order of units is kept, behind the musts.
func Choose(units []Unit, must []string, size int) []string {
	chosen := make([]string, 0, max(size, 0))
	required := make(map[string]bool, len(must))
	for _, id := range must {
		if !required[id] && len(chosen) < size {
			required[id] = true
			chosen = append(chosen, id)
		}
	}
	root := &domain{}
	known := 0
	for _, u := range units {
		if required[u.ID] {
			known++
		}
		root.insert(u, u.Path, required[u.ID])
	}
	picked := make(map[string]bool, size)
	// Musts that are no units take their share of size without a place of their own.
	root.pick(min(size-len(required)+known, root.units), picked)
	for _, u := range units {
		if picked[u.ID] && !required[u.ID] {
			chosen = append(chosen, u.ID)
		}
	}
	return chosen
}

// domain is a node of the tree of domains. Its leaves are units.
type domain struct {
	name     string
	children []*domain
	units    int // units below
	must     int // those among them that are required
	id       string
}

func (d *domain) insert(u Unit, path []string, must bool) {
	d.units++
	if must {
		d.must++
	}
	if d.id != "" {
		return
	}
	if len(path) == 0 {
		leaf := &domain{id: u.ID, units: 1}
		if must {
			leaf.must = 1
		}
		d.children = append(d.children, leaf)
		return
	}
	i := slices.IndexFunc(d.children, func(c *domain) bool { return c.id == "" && c.name == path[0] })
	if i < 0 {
		d.children = append(d.children, &domain{name: path[0]})
		i = len(d.children) - 1
	}
	d.children[i].insert(u, path[1:], must)
}

// pick marks n of the domain's units. n is at least the number of required ones and at
// most the number of units.
func (d *domain) pick(n int, picked map[string]bool) {
	if n <= 0 {
		return
	}
	if d.id != "" {
		picked[d.id] = true
		return
	}
	for i, share := range d.shares(n) {
		d.children[i].pick(share, picked)
	}
}

// shares decides how many units each child gives.
func (d *domain) shares(n int) []int {
	shares := make([]int, len(d.children))
	rest := n
	var used, free []int // children that give already, and the others
	room := 0
	for i, c := range d.children {
		shares[i] = c.must
		rest -= c.must
		if c.must > 0 {
			used = append(used, i)
			room += c.units - c.must
		} else {
			free = append(free, i)
		}
	}
	// Children that have to give anyway are no wider a spread.
	if rest > room {
		for _, i := range used {
			shares[i] = d.children[i].units
		}
		rest -= room
		used = d.fewest(free, rest)
	}
	d.fill(used, rest, shares)
	return shares
}

// fill takes n units from the given children, all of them but one whole: the rest
// comes from the one that it fits best.
func (d *domain) fill(from []int, n int, shares []int) {
	room := func(i int) int { return d.children[i].units - shares[i] }
	for n > 0 && len(from) > 0 {
		best := from[0]
		for _, i := range from[1:] {
			fits, better := room(i) >= n, room(best) >= n
			if (fits && (!better || room(i) < room(best))) || (!fits && !better && room(i) > room(best)) {
				best = i
			}
		}
		take := min(n, room(best))
		shares[best] += take
		n -= take
		from = slices.DeleteFunc(slices.Clone(from), func(i int) bool { return i == best })
	}
}
