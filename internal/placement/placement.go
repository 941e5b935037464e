// Package placement chooses, among free devices, those that sit closest together. It
// knows nothing of PCI: a device's place is a path of domains, from the widest (a NUMA
// node) to the narrowest (a switch port).
package placement

import "slices"

// maxWork bounds the product of the number of free units and the number asked for. A
// node stays far below. Above it the choice is still the closest together, but not
// proven to leave the most for others.
const maxWork = 1 << 15

// Unit is one device that may be chosen.
type Unit struct {
	ID string
	// Path names the domains that the device is in, the widest first.
	Path []string
}

// Choose picks size units: those named in must, and others so that all of them span as
// few of the widest domains as possible, then as few of the next narrower, and so on.
// Among equals the choice leaves the largest sets together for others, again in the
// widest domains first; among those, it takes the units that come first.
//
// It is deterministic, and answers as well as it can when must names an unknown unit or
// there are fewer units than asked for: kubelet rejects the pod when this hint fails.
// The order of units is kept, behind the musts.
func Choose(units []Unit, must []string, size int) []string {
	chosen := make([]string, 0, min(max(size, 0), len(units)+len(must)))
	required := make(map[string]bool, len(must))
	for _, id := range must {
		if !required[id] && len(chosen) < size {
			required[id] = true
			chosen = append(chosen, id)
		}
	}
	root := &domain{}
	known := 0
	seen := make(map[string]bool, len(units))
	for _, u := range units {
		if seen[u.ID] {
			continue
		}
		seen[u.ID] = true
		if required[u.ID] {
			known++
		}
		root.insert(u.ID, u.Path, required[u.ID])
	}
	// Musts that are no units take their share of size without a place of their own.
	n := min(max(size, 0)-len(required)+known, root.units)
	root.solve(0, n, root.units*n <= maxWork)
	picked := make(map[string]bool, n)
	root.pick(n, picked)
	for _, u := range units {
		if picked[u.ID] && !required[u.ID] {
			picked[u.ID] = false
			chosen = append(chosen, u.ID)
		}
	}
	return chosen
}

// domain is a node of the tree of domains. Its leaves are units.
type domain struct {
	name     string
	children []*domain
	byName   map[string]*domain
	units    int // units below, itself included
	leaf     bool
	id       string // of a leaf
	must     bool   // the leaf is required

	// shares tells how many units child i gives when the children up to it give k.
	shares [][]int
}

func (d *domain) insert(id string, path []string, must bool) {
	d.units++
	if len(path) == 0 {
		d.children = append(d.children, &domain{leaf: true, id: id, must: must, units: 1})
		return
	}
	c := d.byName[path[0]]
	if c == nil {
		c = &domain{name: path[0]}
		if d.byName == nil {
			d.byName = map[string]*domain{}
		}
		d.byName[path[0]] = c
		d.children = append(d.children, c)
	}
	c.insert(id, path[1:], must)
}

// solve finds the best choice of k units below the domain for every k up to most, and
// returns what each costs: a domain's best choice is made of its children's best. depth
// is 0 for the root, which everything spans. leave says whether to look at what is left
// for others.
func (d *domain) solve(depth, most int, leave bool) []score {
	if d.leaf {
		return []score{{impossible: d.must}, {impossible: most == 0}}
	}
	best := []score{{}}
	units := 0
	var sum score
	for _, c := range d.children {
		of := c.solve(depth+1, most, leave)
		units += c.units
		next := make([]score, min(units, most)+1)
		share := make([]int, len(next))
		for k := range next {
			next[k].impossible = true
			// From the fewest up, and only for the better, so that earlier children give.
			for n := max(0, k-len(best)+1); n <= min(k, len(of)-1); n++ {
				if best[k-n].impossible || of[n].impossible {
					continue
				}
				sum.set(&best[k-n], &of[n])
				if next[k].impossible || sum.better(&next[k]) {
					next[k], sum, share[k] = sum, next[k], n
				}
			}
		}
		best = next
		d.shares = append(d.shares, share)
	}
	if depth > 0 {
		for k := range best {
			if k > 0 && !best[k].impossible {
				best[k].span(depth-1, d.units, d.units-k, leave)
			}
		}
	}
	return best
}

// pick marks the units of the best choice of k.
func (d *domain) pick(k int, picked map[string]bool) {
	if d.leaf {
		if k > 0 {
			picked[d.id] = true
		}
		return
	}
	for i, c := range slices.Backward(d.children) {
		n := d.shares[i][k]
		c.pick(n, picked)
		k -= n
	}
}
