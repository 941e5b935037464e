package inventory

import (
	"cmp"
	"slices"
	"strings"

	"kata-device-plugin/internal/pci"
)

// NUMA is one NUMA node with the PCIe roots that have a function of the inventory.
type NUMA struct {
	// Node is nil for the functions of which nobody knows the node.
	Node  *int
	Roots []Branch
}

// Branch is a PCIe root, or a bridge below one.
type Branch struct {
	// Root is the name of a PCIe root, empty where nobody knows it. Of a bridge it is nil.
	Root *string
	// Bridges are the ports that lead to the functions: several where nothing branches off
	// between them.
	Bridges []pci.Address
	// Switch says that the last of the bridges is the port of a switch above the others.
	Switch    bool
	Branches  []Branch
	Functions []Leaf
}

// Leaf is a function in its place.
type Leaf struct {
	*Function
	// Via are the ports between the branch and the function that lead nowhere else.
	Via []pci.Address
	// VFs are the function's own virtual ones.
	VFs []*Function
}

// Tree hangs the functions where the hardware has them, all in order. Unknown comes last.
func (i *Inventory) Tree() []NUMA {
	vfs := map[pci.Address][]*Function{}
	isPF := map[pci.Address]bool{}
	for k := range i.Functions {
		isPF[i.Functions[k].Address] = len(i.Functions[k].VirtualFunctions) > 0
	}
	sprouts := map[place]*sprout{}
	var places []place
	for k := range i.Functions {
		f := &i.Functions[k]
		if pf := f.PhysicalFunction; pf != nil && isPF[*pf] {
			vfs[*pf] = append(vfs[*pf], f)
			continue
		}
		p := placeOf(f)
		if sprouts[p] == nil {
			sprouts[p] = &sprout{}
			places = append(places, p)
		}
		sprouts[p].hang(f)
	}
	slices.SortFunc(places, place.compare)
	var all []NUMA
	for at, p := range places {
		if at == 0 || p.unknown != places[at-1].unknown || p.numa != places[at-1].numa {
			all = append(all, NUMA{})
			if !p.unknown {
				all[len(all)-1].Node = new(p.numa)
			}
		}
		root := sprouts[p].grow(vfs)
		root.Root = new(p.root)
		last := &all[len(all)-1]
		last.Roots = append(last.Roots, root)
	}
	return all
}

// place is a PCIe root of a NUMA node.
type place struct {
	unknown bool
	numa    int
	root    string
}

func placeOf(f *Function) place {
	if f.NUMANode == nil {
		return place{unknown: true, root: f.PCIeRoot}
	}
	return place{numa: *f.NUMANode, root: f.PCIeRoot}
}

// compare puts longer names behind shorter ones: pci10000:00 is behind pcifffe:00.
func (p place) compare(q place) int {
	if p.unknown != q.unknown {
		if p.unknown {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(p.numa, q.numa), cmp.Compare(len(p.root), len(q.root)), strings.Compare(p.root, q.root))
}

// sprout is a branch while it grows: one bridge, what hangs below it, and further bridges.
type sprout struct {
	bridge    pci.Address
	below     []*sprout
	functions []*Function
}

func (s *sprout) hang(f *Function) {
	for _, b := range f.Bridges {
		at := slices.IndexFunc(s.below, func(x *sprout) bool { return x.bridge == b })
		if at < 0 {
			s.below = append(s.below, &sprout{bridge: b})
			at = len(s.below) - 1
		}
		s = s.below[at]
	}
	s.functions = append(s.functions, f)
}

// grow makes a branch of a sprout. A port with one function below it is told with the
// function, and ports in a row are one branch: what a person looks for are the places where
// functions part.
func (s *sprout) grow(vfs map[pci.Address][]*Function) Branch {
	var b Branch
	for _, f := range s.functions {
		b.Functions = append(b.Functions, Leaf{Function: f, VFs: vfs[f.Address]})
	}
	for _, below := range s.below {
		child := below.grow(vfs)
		child.Bridges = append([]pci.Address{below.bridge}, child.Bridges...)
		switch {
		case len(child.Branches) == 0 && len(child.Functions) == 1:
			leaf := child.Functions[0]
			leaf.Via = append(child.Bridges, leaf.Via...)
			b.Functions = append(b.Functions, leaf)
		case len(child.Branches) == 1 && len(child.Functions) == 0:
			only := child.Branches[0]
			only.Bridges = append(child.Bridges, only.Bridges...)
			only.Switch = only.Switch || only.parts()
			b.Branches = append(b.Branches, only)
		default:
			child.Switch = child.parts()
			b.Branches = append(b.Branches, child)
		}
	}
	slices.SortFunc(b.Branches, func(x, y Branch) int { return x.Bridges[0].Compare(y.Bridges[0]) })
	slices.SortFunc(b.Functions, func(x, y Leaf) int { return x.Address.Compare(y.Address) })
	return b
}

// parts says whether a branch is the upstream port of a switch: it has further ports below,
// and a port above, as a switch has and a root port has not.
func (b *Branch) parts() bool {
	ports := len(b.Branches)
	for _, l := range b.Functions {
		if len(l.Via) > 0 {
			ports++
		}
	}
	return ports > 1 && len(b.Bridges) > 1
}
