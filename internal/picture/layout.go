package picture

import (
	"cmp"
	"strconv"

	"kata-device-plugin/internal/inventory"
)

// The measures of boxes and cards.
const (
	pad        = 10
	head       = 24 // of a box, for its name
	cardWidth  = 240
	cardHeight = 84
	vfRow      = 24
)

// level says what a tile stands for.
type level int

const (
	numaNode level = iota
	pcieRoot
	bridge
	device
)

// tile is a box or a card. Its place is relative to the tile that it is in.
type tile struct {
	level      level
	name, more string
	x, y, w, h int
	below      []*tile
	leaf       *inventory.Leaf // of a card
}

// tiles are the NUMA nodes of an inventory with all that is in them.
func tiles(i *inventory.Inventory) []*tile {
	var all []*tile
	for _, n := range i.Tree() {
		t := &tile{level: numaNode, name: "NUMA unknown"}
		if n.Node != nil {
			t.name = "NUMA node " + strconv.Itoa(*n.Node)
		}
		for k := range n.Roots {
			t.below = append(t.below, branch(&n.Roots[k]))
		}
		all = append(all, t)
	}
	return all
}

func branch(b *inventory.Branch) *tile {
	t := &tile{level: bridge}
	switch last := len(b.Bridges) - 1; {
	case b.Root != nil:
		t.level, t.name = pcieRoot, "PCIe root "+cmp.Or(*b.Root, "unknown")
	case b.Switch:
		t.name = "switch " + b.Bridges[last].String()
	default:
		t.name = "port " + b.Bridges[last].String()
	}
	if len(b.Bridges) > 1 {
		t.more = "behind " + addresses(b.Bridges[:len(b.Bridges)-1])
	}
	for k := range b.Branches {
		t.below = append(t.below, branch(&b.Branches[k]))
	}
	for k := range b.Functions {
		t.below = append(t.below, &tile{level: device, leaf: &b.Functions[k]})
	}
	return t
}

// arrange gives a tile its size, and what is in it its place.
func (t *tile) arrange(width int) {
	if t.leaf != nil {
		t.w, t.h = cardWidth, cardHeight
		if len(t.leaf.VFs) > 0 {
			t.h += vfRow
		}
		return
	}
	w, h := flow(t.below, min(width-2*pad, t.columns()*(cardWidth+pad)))
	for _, b := range t.below {
		b.x, b.y = b.x+pad, b.y+head
	}
	t.w, t.h = max(w, widthOf(t.name, t.label()))+2*pad, head+h+pad
}

// flow puts tiles into rows, in order, and gives the room that they take.
func flow(all []*tile, width int) (w, h int) {
	x, y, from := 0, 0, 0
	for k, t := range all {
		t.arrange(width)
		if k > from && x+t.w > width {
			y += row(all[from:k]) + pad
			x, from = 0, k
		}
		t.x, t.y = x, y
		w = max(w, x+t.w)
		x += t.w + pad
	}
	return w, y + row(all[from:])
}

// ground puts NUMA nodes on the ground, each row as wide as all of it.
func ground(nodes []*tile, least, most int) (w, h int) {
	w, h = flow(nodes, most)
	w = max(w, least)
	for k, n := range nodes {
		if k == len(nodes)-1 || nodes[k+1].x == 0 {
			n.w = w - n.x
		}
	}
	return w, h
}

// label is how the name of a box looks.
func (t *tile) label() style {
	if t.level == numaNode {
		return style{size: 13, bold: true, fill: ink}
	}
	return style{size: 11, fill: ink}
}

// columns is how many cards a box has beside each other: few make a column, so that a switch
// with a GPU and its NIC is narrow, and many come near a square. What holds boxes is as wide
// as it can be.
func (t *tile) columns() int {
	for _, b := range t.below {
		if b.leaf == nil {
			return maxWidth
		}
	}
	switch n := len(t.below); {
	case n <= 2:
		return 1
	case n <= 8:
		return 2
	}
	return 4
}

// row makes the boxes of a row equally high, and gives the height.
func row(all []*tile) int {
	h := 0
	for _, t := range all {
		h = max(h, t.h)
	}
	for _, t := range all {
		if t.leaf == nil {
			t.h = h
		}
	}
	return h
}
