package nodestate

import (
	"maps"
	"slices"
	"strings"

	"kata-device-plugin/internal/declare"
)

// resolve enters what CDI names come to.
func (j *join) resolve() {
	if !j.fresh[Specs] {
		return
	}
	j.s.Specs = map[SpecState]int{}
	kinds := map[string]bool{} // that have a spec
	for i := range j.facts.Specs.Value {
		spec := &j.facts.Specs.Value[i]
		j.s.Specs[spec.State]++
		kinds[spec.Kind] = true
	}
	count := map[string]map[CDIState]int{}
	enter := func(kind string, state CDIState) {
		if count[kind] == nil {
			count[kind] = map[CDIState]int{}
		}
		count[kind][state]++
	}
	if j.fresh[Hardware] {
		j.units4CDI(kinds, enter)
	}
	j.claims(enter)
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		j.s.Names = append(j.s.Names, Names{Kind: kind, Count: count[kind]})
	}
}

// units4CDI judges the names of the units that a plugin offers, and those that no unit has.
func (j *join) units4CDI(kinds map[string]bool, enter func(string, CDIState)) {
	nodes := j.nodes()
	for i := range j.s.Units {
		u := &j.s.Units[i]
		_, registered := j.facts.Record.Value.Registered[u.Resource]
		if !kinds[u.Resource] && !(registered && j.fresh[Record]) && u.Offered != Yes {
			continue // nobody offers it, so nobody has to resolve it
		}
		if !nameable(u.Resource) {
			continue // its plugin hands nodes out without names
		}
		own := nodes[unitKey{u.Resource, u.ID}]
		if len(own) == 0 && u.Healthy() {
			continue // an interface without a node has no CDI name
		}
		u.CDI = j.name(u.Resource, u.ID, own)
		if (u.CDI == CDIMissing || u.CDI == CDIUnknown) && !u.Healthy() {
			u.CDI = "" // what is not there has no spec
			continue
		}
		enter(u.Resource, u.CDI)
	}
	for name := range j.specs {
		if r, ok := j.resources[name.resource]; !ok || !r.Declared {
			continue // somebody else's
		}
		_, known := j.units[name]
		if _, ours := j.address(name.resource, name.id); ours && !known {
			enter(name.resource, CDIStale)
		}
	}
}

// nameable says whether a resource can be a CDI kind: vendor and class begin with a letter there, and
// kubelet takes more.
func nameable(resource string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	vendor, class, _ := strings.Cut(resource, "/")
	return strings.IndexAny(vendor, letters) == 0 && strings.IndexAny(class, letters) == 0
}

// nodes are those that the units have now, by unit.
func (j *join) nodes() map[unitKey][]string {
	all := make(map[unitKey][]string, len(j.units))
	for _, d := range j.s.declared {
		for i := range d {
			for k := range d[i].Devices {
				device := &d[i].Devices[k]
				all[unitKey{d[i].Name, device.ID}] = onHost(device.Nodes)
			}
		}
	}
	return all
}

func onHost(nodes []declare.Node) []string {
	all := make([]string, len(nodes))
	for i, n := range nodes {
		all[i] = n.OnHost()
	}
	return all
}

// name is what a CDI name comes to. nodes are what it should, nil where that is not known.
func (j *join) name(kind, device string, nodes []string) CDIState {
	specs := j.specs[unitKey{kind, device}]
	switch {
	case len(specs) == 0 && j.unread(kind, 0):
		return CDIUnknown
	case len(specs) == 0:
		return CDIMissing
	case len(specs) == 1 && j.unread(kind, specs[0].Rank) || j.unread(kind, specs[0].Rank+1):
		return CDIUnknown
	case len(specs) > 1:
		return CDIConflicting
	case specs[0].Private:
		return CDIUnreadable
	case specs[0].Stale[device]:
		return CDIStale
	}
	if has := specs[0].Devices[device]; len(nodes) > 0 && has != nil && !slices.Equal(has, nodes) {
		return CDIStale
	}
	return CDIResolvable
}

// unread says whether a spec of that rank or a higher one may have names of a kind, and nobody knows.
func (j *join) unread(kind string, rank int) bool {
	return slices.ContainsFunc(j.unexamined, func(s *Spec) bool { return (s.Kind == "" || s.Kind == kind) && s.Rank >= rank })
}
