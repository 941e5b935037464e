package check

import (
	"slices"

	"kata-device-plugin/internal/manifest"
)

// matchCaptured finds the Node of each capture, which has the host's name and not the Node's. What a capture
// of no Node says of kubelet is about a cluster that is not the one of the input, as far as anybody knows:
// only what is found in it counts. Of two captures of one node the older one is left out.
func (w *World) matchCaptured(all []*captured) {
	newest := map[identity]*captured{}
	for _, n := range all {
		n.match(w.nodes)
		was := newest[n.identity()]
		if was == nil || n.c.Meta.Time.After(was.c.Meta.Time) {
			newest[n.identity()] = n
		}
	}
	for _, n := range all {
		if by := newest[n.identity()]; by != n && n.name != "" {
			n.newer = by
			w.outdated = append(w.outdated, n)
			continue
		}
		w.captured = append(w.captured, n)
	}
}

// identity tells captured nodes apart.
type identity struct{ name, boot string }

// identity is that of a node. The word in the place of a name is that of another node too, where two clusters use
// one salt: of such captures those are of one node that are of one boot, whose ID no other has.
func (n *captured) identity() identity {
	switch {
	case n.hasNames():
		return identity{name: n.name}
	case n.c.Meta.Boot != "":
		return identity{n.name, n.c.Meta.Boot}
	}
	return identity{n.name, n.file} // of nobody else
}

// match looks for the Node of a capture, if there are any.
func (n *captured) match(nodes []*Node) {
	if len(nodes) == 0 {
		return
	}
	if n.hasNames() {
		n.like = namedLike(nodes, n.name)
	}
	if n.stranger = len(n.like) != 1; !n.stranger {
		n.name = n.like[0].Name
	}
}

// namedLike are the nodes that have a name, or else those that say to have it as their host name.
func namedLike(nodes []*Node, name string) []*Node {
	var all []*Node
	for _, n := range nodes {
		if n.Name == name {
			return []*Node{n}
		}
		if slices.Contains(n.hostNames(), name) {
			all = append(all, n)
		}
	}
	return all
}

// hostNames are what a node says that its host is called.
func (n *Node) hostNames() []string {
	all := []string{n.Labels.Get("kubernetes.io/hostname").Text()}
	for a := range n.Object.Get("status", "addresses").Each() {
		if a.Get("type").Text() == "Hostname" {
			all = append(all, a.Get("address").Text())
		}
	}
	return slices.DeleteFunc(all, func(name string) bool { return name == "" })
}

// ofNoNode is about captures beside Nodes: what is compared by name would silently not match. Those with
// other words for names are EVD006.
func ofNoNode(w *World) []Finding {
	return w.onNodes((*captured).hasEntries, func(n *captured) []Finding {
		if !n.stranger || !n.hasNames() {
			return nil
		}
		f := n.found("the captured node %s is no Node of the input, and what kubelet says there is not about the cluster of the input", n.name)
		if len(n.like) > 1 {
			var names []string
			for _, node := range n.like {
				names = append(names, node.Name)
			}
			f = f.because("the nodes %s all say that their host is called that", few(names))
		}
		return []Finding{f}
	})
}

// capturedTwice is about captures that a newer one takes the place of.
func capturedTwice(w *World) []Finding {
	var all []Finding
	for _, n := range w.outdated {
		f := n.found("node %s was captured more than once, and this capture is left out", n.name).
			with(manifest.Place{File: n.newer.file}, "this one counts")
		if at, by := n.c.Meta.Time, n.newer.c.Meta.Time; at.Before(by) {
			f = f.because("it is older by %s", by.Sub(at))
		} else {
			f = f.because("it is not known to be newer")
		}
		all = append(all, f)
	}
	return all
}
