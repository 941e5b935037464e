package check

import (
	"kata-device-plugin/internal/manifest"
)

// use is a place where an object refers to a name.
type use struct {
	name     string
	by       Ref
	does     string // what the object does with it, as a verb
	at       manifest.Place
	path     string
	network  *Network
	workload *Workload
}

// findUses lists the references of pods, machines and networks, in the order of the input. Pods
// that have ended are history.
func (w *World) findUses() []use {
	var all []use
	for _, p := range w.workloads {
		if p.Live && !p.holds() {
			continue
		}
		for _, want := range p.Wants() {
			at := want.At.KeyPlace()
			if p.VM {
				at = want.At.Place()
			}
			all = append(all, use{name: want.Name, by: p.ref(), does: "requests", at: at, path: want.At.Path(), workload: p})
		}
	}
	for _, n := range w.ordered {
		if n.Resource != "" {
			all = append(all, use{name: n.Resource, by: n.objectRef(w), does: "names", at: n.At.Place(), path: n.At.Path(),
				network: n})
		}
	}
	return all
}

// objectRef is the object that a person wrote: of a network that is made by an operator, that
// operator's object.
func (n *Network) objectRef(w *World) Ref {
	if n.Generated {
		return w.ref(n.Object)
	}
	return n.ref()
}

// agreement lists the names that a pod and a network have alike.
func agreement(uses []use) map[string]bool {
	pods, both := map[string]bool{}, map[string]bool{}
	for _, u := range uses {
		pods[u.name] = pods[u.name] || u.workload != nil
	}
	for _, u := range uses {
		both[u.name] = both[u.name] || u.network != nil && pods[u.name]
	}
	return both
}

// corroborated says whether a pod and a network agree on a name. Where nothing in the input
// could advertise it, two spellings that agree are all that can be asked for.
func (w *World) corroborated(name string) bool { return w.agreed[name] && len(w.names.known) == 0 }
