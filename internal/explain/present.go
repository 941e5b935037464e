package explain

import (
	"slices"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/inventory"
)

// present: hardware and rules make a device of the resource.
func (r *resource) present() Step {
	var have []Evidence
	for _, n := range r.View.Nodes() {
		if n.Most(r.name) > 0 {
			have = append(have, nodeNow(n, r.name))
		}
	}
	var lacks *Step
	for _, c := range r.Nodes {
		if s := r.declared(c); s.Verdict == Yes {
			have = append(have, s.Evidence...)
		} else if lacks == nil {
			lacks = &s
		}
	}
	switch {
	case len(have) > 0:
		return yes("there are devices of the resource").because(some(have)...)
	case lacks != nil && lacks.Verdict == No && !r.captured():
		return unknown("captures of the other nodes: kubectl device snapshot there", "%s; whether others have one is not known", lacks.Says).
			because(lacks.Evidence...)
	case lacks != nil:
		return *lacks
	}
	return unknown(snapshotTells, "no node has a device of it now; whether the hardware is there, only the node tells")
}

// captured says whether every node of the cluster is one whose hardware is known.
func (r *resource) captured() bool {
	return len(r.View.Nodes()) > 0 && r.View.Complete("Node") && !slices.ContainsFunc(r.View.Nodes(), func(n *check.Node) bool {
		return !slices.ContainsFunc(r.Nodes, func(c Node) bool { return c.Name == n.Name })
	})
}

// declared is what a captured node's own rules make of its hardware.
func (r *resource) declared(n Node) Step {
	for _, of := range n.Inventory.Resources {
		if of.Name == r.name && of.Devices > 0 {
			return yes("node %s has it", n.Name).because(n.evidence("node %s: %d declared, %d healthy", n.Name, of.Devices, of.Healthy))
		}
	}
	for _, f := range n.Inventory.Findings {
		if f.Resource == r.name { // of a pool of the NIC plugin's configuration, which is known then
			s := no(f.ID, f.Remedy, "node %s: %s", n.Name, f.Title)
			for _, e := range f.Evidence {
				s = s.because(n.evidence("%s: %s", e.Path, e.Value))
			}
			return s
		}
	}
	s := unknown("the configuration of the plugin that serves it", "the capture of node %s has no device of it", n.Name)
	for _, f := range n.Inventory.Functions {
		if f.State != inventory.NotDeclared || len(f.Findings) == 0 {
			continue
		}
		why := f.Findings[0]
		e := n.evidence("%s %s: %s", f.Address, why.ID, why.Title)
		if compiled(r.name) && s.Verdict != No {
			s = no(why.ID, why.Remedy, "no function of node %s is a device of it", n.Name)
		}
		s = s.because(e)
	}
	s.Evidence = some(s.Evidence)
	return s
}

// compiled says whether the rules for a resource are those of kata-device-plugin, which every
// inventory follows. Those of other plugins are in files.
func compiled(name string) bool { return name == "nvidia.com/gpu" || name == "nvidia.com/nvswitch" }
