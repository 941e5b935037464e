package explain

import (
	"slices"
	"strconv"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
)

// constraints: one of the nodes with free devices takes the pod.
func (r *resource) constraints() Step {
	var nodes []*check.Node
	offers, known := r.View.Offers(r.name)
	for _, o := range offers {
		if o.Has >= max(r.count, 1) && o.Free >= r.count {
			nodes = append(nodes, o.Node)
		}
	}
	s := r.fits(r.pod, nodes, "has enough free of "+strconv.Quote(r.name))
	meant := r.meant(nodes)
	switch {
	case s.Check != finding.NodesExcluded().ID:
	case len(meant) > 0: // not all nodes that have the resource are excluded
		s = s.because(meant...)
		s.Check, s.Help = "POD010", "free devices on the nodes that would take the pod, or let the pod run on the others"
	case r.unseen() || !known:
		return unknown(everyClass, "no node of those takes the pod, and a DeviceClass may stand for the name on others").because(s.Evidence...)
	}
	return s
}

// meant are the nodes that would take the pod and have too few devices: perhaps those that it was made for.
func (r *resource) meant(enough []*check.Node) []Evidence {
	var all []Evidence
	offers, _ := r.View.Offers(r.name)
	for _, o := range offers {
		if o.Most == 0 || slices.Contains(enough, o.Node) || o.Node.Refuses(r.pod.Spec) != "" {
			continue
		}
		all = append(all, seen(o.At, "node %s would take the pod: of %d it has %d healthy, %d of them free", o.Node.Name, o.Most, o.Has, max(o.Free, 0)))
	}
	return some(all)
}

// fits says whether one of the nodes that have the device takes a pod that waits, all else
// considered; quality is what the nodes have in common.
func (e *explainer) fits(p *check.Workload, nodes []*check.Node, quality string) Step {
	if gates := p.Spec.Get("schedulingGates"); gates.Len() > 0 {
		k := finding.Gated()
		return no(k.ID, k.Remedy, "the scheduler leaves the pod alone while it has a gate").
			because(seen(gates, "schedulingGates: %s", first(gates).Get("name").Text()))
	}
	if f, ok := e.View.Proven(finding.LargerThanANode().ID, p.Ref(), ""); ok {
		return proven(f)
	}
	says := e.says(p)
	var against, room []Evidence
	all := true // nodes refuse the pod for what its spec says
	for _, n := range nodes {
		why, excluded := e.hinders(p, n)
		if why.Text == "" {
			room = append(room, seen(n.Object.Value, "node %s: nothing is in the way that the input shows", n.Name))
			continue
		}
		all = all && excluded
		against = append(against, why)
	}
	switch {
	case len(nodes) == 0:
		return unknown("all nodes of the cluster", "no node of the input %s", quality).because(says...)
	case len(room) == 0 && !e.View.Complete("Node"):
		return unknown("all nodes of the cluster", "no node of the input that %s takes the pod", quality).
			because(append(some(against), says...)...)
	case len(room) == 0 && all:
		return no("POD011", "change the selector, the affinity or the tolerations of the pod, or make the node free for it",
			"no node that %s takes the pod", quality).because(append(some(against), says...)...)
	case len(room) == 0:
		return no("POD010", "request less of what is short, or end pods on these nodes", "no node that %s takes the pod", quality).
			because(append(some(against), says...)...)
	}
	return e.undecided(p, append(some(room), says...), len(says) > 0)
}

// undecided: by all that was reckoned a node takes the pod. The scheduler knows more.
func (e *explainer) undecided(p *check.Workload, evidence []Evidence, said bool) Step {
	message := oneLine(e.View.SchedulerSays(p).Text())
	switch {
	case !said:
		return unknown("the pod's events and its condition PodScheduled", "the scheduler has not said anything of the pod").because(evidence...)
	case other(message):
		return no("POD010", "change what the scheduler names", "the scheduler has another reason").because(evidence...)
	}
	return unknown("a newer dump, with the pods of all namespaces", "by the input a node takes the pod, and the scheduler says no: "+
		"one of the two is older").because(evidence...)
}

// other says whether a message of the scheduler has a reason that is not reckoned with here. Its
// words are those of the scheduler's plugins.
func other(message string) bool {
	return slices.ContainsFunc([]string{"affinity rules", "topology spread", "volume", "free ports", "persistentvolumeclaim", "preempted",
		"PodGroup", "gated"}, func(word string) bool { return strings.Contains(message, word) })
}

// says is the scheduler's message as evidence, none where it has said nothing.
func (e *explainer) says(p *check.Workload) []Evidence {
	message := e.View.SchedulerSays(p)
	if message.Text() == "" {
		return nil
	}
	return []Evidence{seen(message, "the scheduler: %s", oneLine(message.Text())).
		since(condition(p, "PodScheduled").Get("lastTransitionTime"))}
}

// hinders says what keeps a pod from a node, apart from what the question is about; nothing, where
// the input shows nothing. excluded says that it is the pod's own word on nodes, or a taint.
func (e *explainer) hinders(p *check.Workload, n *check.Node) (why Evidence, excluded bool) {
	if text := n.Refuses(p.Spec); text != "" {
		at := n.Object.Get("metadata", "labels")
		if strings.Contains(text, "taint") || strings.Contains(text, "cordoned") {
			at = n.Object.Get("spec")
		}
		return seen(at, "node %s: %s", n.Name, text), true
	}
	for _, name := range []string{"cpu", "memory", "ephemeral-storage"} {
		if e := e.short(p, n, name); e.Text != "" {
			return e, false
		}
	}
	if most := n.Object.Get("status", "allocatable", "pods"); most.Exists() {
		have := len(e.View.PodsOn(n.Name))
		if limit, err := strconv.Atoi(most.Text()); err == nil && have >= limit {
			return seen(most, "node %s: it has %d pods, and takes %d", n.Name, have, limit), false
		}
	}
	for _, w := range p.Wants() {
		offers, known := e.View.Offers(w.Name)
		if _, is := e.mapped(p, w.Name); is || !strings.Contains(w.Name, "/") {
			continue
		}
		i := slices.IndexFunc(offers, func(o check.Offer) bool { return o.Node == n })
		switch {
		case i < 0 && known:
			return seen(n.Key(w.Name), "node %s: 0 of %q left, %d requested", n.Name, w.Name, w.Count), false
		case i >= 0 && offers[i].Free < w.Count:
			return seen(offers[i].At, "node %s: %d of %q left, %d requested", n.Name, max(offers[i].Free, 0), w.Name, w.Count), false
		}
	}
	return Evidence{}, false
}

// short says that a node has too little of what is not a device.
func (e *explainer) short(p *check.Workload, n *check.Node, name string) Evidence {
	want, allocatable := p.Requested(name), n.Object.Get("status", "allocatable", name)
	if zero, ok := check.Compare(want, "0"); !ok || zero == 0 || !allocatable.Exists() {
		return Evidence{}
	}
	used := []string{}
	for _, other := range e.View.PodsOn(n.Name) {
		used = append(used, other.Requested(name))
	}
	taken := check.Sum(used...)
	if c, ok := check.Compare(check.Sum(append(used, want)...), allocatable.Text()); !ok || c <= 0 {
		return Evidence{}
	}
	return seen(allocatable, "node %s: %s of %s requested, and pods have %s of %s", n.Name, check.Readable(want, name), name,
		check.Readable(taken, name), allocatable.Text())
}
