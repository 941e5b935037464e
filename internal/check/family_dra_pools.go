package check

import (
	"strconv"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// classesContend: of two classes the newer one is used, and of two that are as old the one
// whose name comes first.
func classesContend(w *World) []Finding {
	var all []Finding
	for _, name := range w.classNames() {
		classes, known := w.classesOf(name)
		for _, o := range classes[1:] {
			at := o.Get("spec", "extendedResourceName")
			f := found(w.ref(o), at, "%s stands for %q, and so does %s", w.ref(o), name, w.ref(classes[0])).about(name)
			f = f.with(classes[0].Get("spec", "extendedResourceName").Place(), "the other class")
			if known {
				f = f.because("%s is used: it is the newer one, or the first by name of two that are as old", w.ref(classes[0]))
			}
			all = append(all, f)
		}
	}
	return all
}

// servedBoth lists who serves a name where. A node with a device of a plugin is the plugin's,
// whatever slices it has.
func servedBoth(w *World) []Finding {
	var all []Finding
	for _, o := range w.kinds["DeviceClass"] {
		at := o.Get("spec", "extendedResourceName")
		name := at.Text()
		if name == "" {
			continue
		}
		offered := w.nodesWith(o)
		var plugin, claims []string
		for _, n := range w.nodes {
			switch {
			case n.Allocatable[name] > 0:
				plugin = append(plugin, n.Name)
			case offered[n.Name]:
				claims = append(claims, n.Name)
			}
		}
		if len(plugin) > 0 && len(claims) > 0 {
			all = append(all, found(w.ref(o), at, "%q comes from a device plugin on %s, and from claims of %s on %s", name,
				few(plugin), w.ref(o), few(claims)).about(name))
		}
	}
	return all
}

// nodesWith are the nodes with devices that a class selects, none where that is not known.
func (w *World) nodesWith(class *manifest.Object) map[string]bool {
	all := map[string]bool{}
	m, err := w.Matching(class.Get("spec", "selectors"))
	if err != nil {
		return nil // which is DRA023
	}
	for p := range m.Taken() {
		all[p.Node] = true
	}
	return all
}

// few is a list for people, not longer than they want to read.
func few(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(len(names)-most) + " others"
}

// poolIncomplete: of a pool the slices of the newest generation count, and all of them have to
// be there.
func poolIncomplete(w *World) []Finding {
	var all []Finding
	for _, p := range w.slicePools {
		at := p.newest.Get("spec", "pool", "resourceSliceCount")
		switch {
		case p.name == "":
		case p.known && !p.whole():
			f := found(w.ref(p.newest.Object), at,
				"pool %s of driver %s has %d of %d slices of generation %d: the scheduler does not "+
					"use it", p.name, p.driver, p.have, p.want, p.newest.generation)
			if !w.complete("ResourceSlice") {
				f = f.as(finding.Warning).because("the input may not have every ResourceSlice of the cluster")
			}
			all = append(all, f)
		case p.old > 0:
			all = append(all, found(w.ref(p.newest.Object), at, "pool %s of driver %s has %s of older generations than %d", p.name,
				p.driver, counted(p.old, "slice"),
				p.newest.generation).as(finding.Note).advise("nothing, if the driver removes them soon"))
		}
	}
	return all
}

// withoutAddress is about nodes that have devices of a plugin as well: elsewhere nothing
// depends on it.
func withoutAddress(w *World) []Finding {
	type place struct{ driver, node string }
	silent, first := map[place]bool{}, map[place]Published{}
	var order []place
	for _, p := range w.published {
		at := place{p.Driver, p.Node}
		if _, seen := first[at]; !seen {
			first[at], silent[at] = p, true
			order = append(order, at)
		}
		silent[at] = silent[at] && p.Address == ""
	}
	var all []Finding
	seen := map[string]bool{}
	for _, at := range order {
		n := w.nodeOf[at.node]
		if n == nil || !silent[at] || seen[at.driver] {
			continue
		}
		for _, name := range n.names() {
			if n.Allocatable[name] > 0 {
				seen[at.driver] = true
				f := found(w.ref(first[at].Slice), first[at].at,
					"no device of driver %s on node %s has %s, and the node has devices of %q from a device plugin",
					at.driver, at.node, pciAddressKey, name).about(name)
				all = append(all, f.with(n.key(name).KeyPlace(), "node %s has it", n.Name))
				break
			}
		}
	}
	return all
}
