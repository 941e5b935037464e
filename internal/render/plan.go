package render

import (
	"fmt"
	"slices"
	"strings"
)

// asked is how many devices of each flavour the containers of a pod have, by the flavour's resource: one
// number for each container, in their order.
type asked map[string][]int

// request is one request of a claim.
type request struct {
	flavour *Flavour
	name    string
	count   int
	from    int // its first device, counted along all devices of the flavour
}

// constraint is one constraint of a claim.
type constraint struct {
	requests  []string
	attribute string
}

// plan is a claim that gives the containers of a pod what they have from a device plugin.
type plan struct {
	requests    []request
	constraints []constraint
	// uses are the requests of each container, in the order of the claim.
	uses [][]string
}

// span is a part of the devices of a flavour, counted from 0.
type span struct{ from, to int }

// spans lays out the devices of one flavour: which of them each container has. It follows kubelet's device
// manager and the scheduler: what an init container has had goes to those after it, what a sidecar
// has it keeps, and the other containers have each their own. So a claim is of as many devices as a
// device plugin would give, and quotas count the same.
func spans(containers []container, counts []int) (all []span, total int) {
	kept := 0
	for i, c := range containers {
		all = append(all, span{kept, kept + counts[i]})
		total = max(total, kept+counts[i])
		if c.role != starter {
			kept += counts[i]
		}
	}
	return all, total
}

// planOf makes the claim. What is wrong with it, if anything, comes with what to do.
func (p *Policy) planOf(containers []container, counts asked) (pl *plan, what, remedy string) {
	pl = &plan{uses: make([][]string, len(containers))}
	all := map[string][]span{}
	cuts := map[string][]int{}
	for resource, n := range counts {
		all[resource], _ = spans(containers, n)
		for _, sp := range all[resource] {
			cuts[resource] = append(cuts[resource], sp.from, sp.to)
		}
	}
	groups, what, remedy := p.groups(containers, all)
	if what != "" {
		return nil, what, remedy
	}
	for _, g := range groups {
		for resource, sp := range g.spans {
			cuts[resource] = append(cuts[resource], sp.from, sp.to)
		}
	}
	for i := range p.Flavours {
		pl.cut(&p.Flavours[i], cuts[p.Flavours[i].Resource])
	}
	for i := range containers {
		for _, f := range p.Flavours {
			if spans := all[f.Resource]; spans != nil {
				pl.uses[i] = append(pl.uses[i], pl.within(f.Resource, spans[i])...)
			}
		}
	}
	for _, g := range groups {
		c := constraint{attribute: g.attribute}
		for _, f := range p.Flavours {
			if sp, ok := g.spans[f.Resource]; ok {
				c.requests = append(c.requests, pl.within(f.Resource, sp)...)
			}
		}
		pl.constraints = append(pl.constraints, c)
	}
	return pl, "", ""
}

// cut makes the requests of a flavour: one for each part between two places where a container's or a
// group's devices begin or end.
func (pl *plan) cut(f *Flavour, places []int) {
	slices.Sort(places)
	places = slices.Compact(places)
	for i := range len(places) - 1 {
		r := request{flavour: f, name: f.Request, count: places[i+1] - places[i], from: places[i]}
		if len(places) > 2 {
			r.name = fmt.Sprintf("%s-%d", f.Request, i)
		}
		pl.requests = append(pl.requests, r)
	}
}

// within are the requests that make up a span.
func (pl *plan) within(resource string, sp span) []string {
	var names []string
	for _, r := range pl.requests {
		if r.flavour.Resource == resource && r.from >= sp.from && r.from < sp.to {
			names = append(names, r.name)
		}
	}
	return names
}

// group is a set of devices with something in common.
type group struct {
	attribute string
	spans     map[string]span
}

// groups applies the alignments to each container that runs as long as the pod. An init container has
// the devices of those, aligned or not.
func (p *Policy) groups(containers []container, all map[string][]span) (gs []group, what, remedy string) {
	for _, a := range p.Alignments {
		for i, c := range containers {
			counts := map[string]int{}
			for _, resource := range a.Resources {
				if spans := all[resource]; spans != nil && spans[i].to > spans[i].from {
					counts[resource] = spans[i].to - spans[i].from
				}
			}
			if c.role == starter || len(counts) < 2 {
				continue
			}
			n := 1
			if !a.Together {
				n = least(counts)
			}
			for _, resource := range a.Resources {
				if count := counts[resource]; count%n != 0 {
					return nil, fmt.Sprintf("%s asks for %s, which cannot be put in groups of the same kind", c.name, sum(p, counts)),
						fmt.Sprintf("make the number of %s a multiple of %d, or write mode: Together in the alignment", resource, n)
				}
			}
			for g := range n {
				gr := group{attribute: a.Attribute, spans: map[string]span{}}
				for resource, count := range counts {
					from := all[resource][i].from + g*count/n
					gr.spans[resource] = span{from, from + count/n}
				}
				gs = append(gs, gr)
			}
		}
	}
	return gs, "", ""
}

func least(counts map[string]int) int {
	n := 0
	for _, count := range counts {
		if n == 0 || count < n {
			n = count
		}
	}
	return n
}

// sum names numbers of devices, in the order of the policy.
func sum(p *Policy, counts map[string]int) string {
	var parts []string
	for _, f := range p.Flavours {
		if n := counts[f.Resource]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, f.Resource))
		}
	}
	return strings.Join(parts, " and ")
}

// total is how many devices the claim is of.
func (pl *plan) total() int {
	n := 0
	for _, r := range pl.requests {
		n += r.count
	}
	return n
}

// What a claim may have: the constants of resource.k8s.io/v1.
const (
	mostConstraints = 32
	mostDevices     = 32 // AllocationResultsMaxSize; as many as requests, so these need no check
)

// tooMuch says which limit of a claim the plan goes beyond, or nothing.
func (pl *plan) tooMuch() string {
	switch {
	case pl.total() > mostDevices:
		return fmt.Sprintf("a claim of %d devices, and it may have %d", pl.total(), mostDevices)
	case len(pl.constraints) > mostConstraints:
		return fmt.Sprintf("a claim of %d constraints, and it may have %d", len(pl.constraints), mostConstraints)
	}
	return ""
}

// title names what the claim is of: gpu-2-nic-1.
func (pl *plan) title() string {
	counts := map[string]int{}
	var order []string
	for _, r := range pl.requests {
		if counts[r.flavour.Request] == 0 {
			order = append(order, r.flavour.Request)
		}
		counts[r.flavour.Request] += r.count
	}
	var parts []string
	for _, name := range order {
		parts = append(parts, fmt.Sprintf("%s-%d", name, counts[name]))
	}
	const most = 100
	title := strings.Join(parts, "-")
	return strings.Trim(title[:min(len(title), most)], "-")
}
