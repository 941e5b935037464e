package check

import (
	"path"
	"slices"
	"time"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/podresources"
)

// publishedTwice finds functions that are devices of two drivers: each of them may be handed out. What one
// driver publishes of one function more than once is for the driver to know.
func publishedTwice(w *World) []Finding {
	first := map[function]Published{}
	var all []Finding
	for _, p := range w.published {
		at := function{p.Node, p.Address}
		if p.Node == "" || p.Address == "" {
			continue
		}
		was, seen := first[at]
		if !seen {
			first[at] = p
			continue
		}
		if was.Driver != p.Driver {
			f := found(w.ref(p.Slice), p.Device.Get("attributes", pciAddressKey, "string"),
				"%s and %s are both %s of node %s", was.DeviceName, p.DeviceName, p.Address, p.Node)
			all = append(all, f.with(was.at.Get("name").Place(), "the other driver has it"))
		}
	}
	return all
}

const functionsDir = "/sys/bus/pci/devices"

func (n *captured) hasFunctions() bool { return n.lists(functionsDir) }

// publishedAbsent is about devices that are PCI functions of a node, which was captured without them.
func publishedAbsent(w *World) []Finding {
	return w.onNodes((*captured).hasFunctions, func(n *captured) []Finding {
		entries, _ := n.dir(functionsDir)
		var all []Finding
		for _, p := range w.published {
			if p.Node != n.name || pciAddress(p.Address) == "" {
				continue
			}
			is := func(e *capture.Entry) bool { return path.Base(e.Path) == p.Address }
			if slices.ContainsFunc(entries, is) {
				continue
			}
			f := found(w.ref(p.Slice), p.Device.Get("attributes", pciAddressKey, "string"),
				"device %s is %s of node %s, which has no such PCI function", p.DeviceName, p.Address, n.name)
			all = append(all, f.with(manifest.Place{File: n.file}, "the node"))
		}
		return all
	})
}

// otherThanAllocated compares the devices that kubelet has given to containers with those that their
// claims have. A claim of later than the capture is another one.
func otherThanAllocated(w *World) []Finding {
	has := func(n *captured) bool { return n.hasHolders() && n.hasNames() }
	allotted := map[Ref][]Allotted{}
	for _, a := range w.allotted() {
		allotted[a.Claim] = append(allotted[a.Claim], a)
	}
	return w.onNodes(has, func(n *captured) []Finding {
		var all []Finding
		seen := map[Ref]bool{} // kubelet repeats a claim for each container
		for _, p := range n.pods.Pods {
			for _, c := range p.Containers {
				for _, claim := range c.Claims {
					ref := Ref{"ResourceClaim", claim.Namespace, claim.Name}
					if known := allotted[ref]; len(known) > 0 && !seen[ref] && !n.before(w.claimOf[ref]) {
						seen[ref] = true
						all = append(all, n.notIn(known, p, claim)...)
					}
				}
			}
		}
		return all
	})
}

// before says whether the node was captured before an object was made.
func (n *captured) before(o *manifest.Object) bool {
	made, err := time.Parse(time.RFC3339, o.Get("metadata", "creationTimestamp").Text())
	return err == nil && !n.c.Meta.Time.IsZero() && made.After(n.c.Meta.Time)
}

// notIn finds the devices that kubelet names and a claim does not have. An old kubelet names none.
func (n *captured) notIn(known []Allotted, p podresources.Pod, claim podresources.Claim) []Finding {
	var all []Finding
	for _, d := range claim.Devices {
		name := DeviceName{d.Driver, d.Pool, d.Device}
		if d.Device == "" || slices.ContainsFunc(known, func(a Allotted) bool { return a.DeviceName == name }) {
			continue
		}
		f := found(known[0].Claim, known[0].At, "%s has %s, and kubelet of node %s has given %s to pod %s/%s for it",
			known[0].Claim, known[0].DeviceName, n.name, name, p.Namespace, p.Name)
		all = append(all, f.with(manifest.Place{File: n.file}, "the node"))
	}
	return all
}
