package check

import (
	"slices"

	"kata-device-plugin/internal/capture"
)

// Captured lists the captured nodes, each by the name of its Node where there is one. Captures that a newer one
// of the node takes the place of are left out.
func (v *View) Captured() []NodeInput {
	var all []NodeInput
	for _, n := range v.captured {
		all = append(all, NodeInput{Name: n.name, File: n.file, Capture: n.c})
	}
	return all
}

// Belonging is what a capture turned out to be of.
type Belonging struct {
	// Name is that of its Node, or where there is none, of the host.
	Name string
	// Stranger: the input has Nodes, and the capture is not known to be of one of them.
	Stranger bool
	// Newer is the file of the capture that takes its place, "" where it counts itself.
	Newer string
}

// Belonging says what one of the captures is of.
func (v *View) Belonging(c *capture.Capture) Belonging {
	for _, n := range slices.Concat(v.captured, v.outdated) {
		if n.c != c {
			continue
		}
		b := Belonging{Name: n.name, Stranger: n.stranger}
		if n.newer != nil {
			b.Newer = n.newer.file
		}
		return b
	}
	return Belonging{Name: c.Meta.Hostname}
}

// NodeNamed is the name of the only Node whose host has a name, and that name where there is none.
func (v *View) NodeNamed(hostname string) string {
	if like := namedLike(v.nodes, hostname); len(like) == 1 {
		return like[0].Name
	}
	return hostname
}
