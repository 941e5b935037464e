package check

import (
	"slices"

	"kata-device-plugin/internal/manifest"
)

// complete says whether the input has all objects of a kind that the cluster has. What only a list seems to have all
// of, it has not where something refers to another one.
func (w *World) complete(kind string) bool {
	return w.set.Complete(kind) && !(w.lacksNodes && manifest.Folded(kind) == manifest.Folded("Node"))
}

// findLacking finds out whether nodes were left out of their list: pods run on them, or drivers have published there.
func (w *World) findLacking() bool {
	if w.set.Listed("Node") == "" {
		return false // whoever says that these are all nodes knows of the others
	}
	absent := func(node string) bool { return node != "" && w.nodeOf[node] == nil }
	runs := slices.ContainsFunc(w.workloads, func(p *Workload) bool { return p.holds() && p.phase() == "Running" && absent(p.node()) })
	publishes := slices.ContainsFunc(w.slices, func(s *slice) bool { return s.FromCluster && absent(s.node) })
	return runs || publishes
}

// completeKinds lists them, in lower case.
func (w *World) completeKinds() []string {
	return slices.DeleteFunc(w.set.CompleteKinds(), func(kind string) bool { return !w.complete(kind) })
}

// Listed is a kind of which a list seems to have all objects of the cluster.
type Listed struct{ Kind, Input string }

// byLists are those kinds, sorted.
func (w *World) byLists() []Listed {
	var all []Listed
	for _, kind := range w.completeKinds() {
		if in := w.set.Listed(kind); in != "" {
			all = append(all, Listed{kind, in})
		}
	}
	return all
}
