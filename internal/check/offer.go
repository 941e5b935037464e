package check

import "kata-device-plugin/internal/manifest"

// Offer is what a node has of an extended resource.
type Offer struct {
	Node *Node
	// Has is how many the scheduler may give, Most how many it would be if all were healthy, and Free how many
	// nobody has.
	Has, Most, Free int64
	// Class has them for claims, nil where a device plugin advertises them.
	Class *manifest.Object
	// At is where the number stands, or for a class the slice with the devices.
	At manifest.Value
	// Held are those of a class that claims have.
	Held []Allotted
}

// Offers are those of all nodes, as the checks reckon. They are not known to be all where it is not known what the
// class of the resource takes.
func (v *View) Offers(resource string) (all []Offer, known bool) {
	s := v.supplyOf(resource)
	return v.offers(s), s.known
}

// offers reckons node by node, once: a plugin's or a class's, as the scheduler does.
func (w *World) offers(s *supply) []Offer {
	if s.offers != nil {
		return s.offers
	}
	var all []Offer
	for _, n := range s.nodes {
		o := Offer{Node: n, Has: n.Allocatable[s.name], Most: s.most(n), At: n.key(s.name)}
		o.Free = o.Has - w.requested(n, s.name)
		if c := s.claims[n.Name]; c != nil {
			o.Has, o.Free, o.Class, o.At, o.Held = c.most, c.free, s.class, c.slice.Get("spec"), c.held
		}
		all = append(all, o)
	}
	s.offers = all
	return all
}
