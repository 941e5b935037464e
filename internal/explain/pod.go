package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/manifest"
)

// Pod explains a pod: each resource and each claim that it asks for. The error is a NotFound.
func Pod(in Input, namespace, name string) (*Report, error) {
	e := &explainer{in}
	p := in.View.Pod(namespace, name)
	if p == nil {
		return nil, e.notFound(check.Ref{Kind: "Pod", Namespace: namespace, Name: name})
	}
	r := &Report{Subject: p.Ref(), State: podState(p)}
	networks := in.View.Networks(p)
	names := []string{}
	for _, w := range p.Wants() {
		names = append(names, w.Name)
	}
	for network := range networks {
		if !slices.Contains(names, network) {
			names = append(names, network) // attached, and not requested
		}
	}
	slices.Sort(names[len(p.Wants()):])
	for _, resource := range names {
		if class, is := e.mapped(p, resource); is {
			r.Chains = append(r.Chains, e.byClass(p, resource, class))
			continue
		}
		r.Chains = append(r.Chains, e.byPlugin(p, resource, networks[resource]))
	}
	for entry := range p.Spec.Get("resourceClaims").Each() {
		r.Chains = append(r.Chains, e.byClaim(p, entry))
	}
	return r, nil
}

// podState is what a pod says of itself.
func podState(p *check.Workload) string {
	status := p.Object.Get("status")
	s := p.Phase()
	if s == "" {
		s = "not known: the input has no status of it"
	}
	if reason := status.Get("reason").Text(); reason != "" {
		s += ", " + reason
	}
	if node := p.NodeName(); node != "" {
		return s + ", on node " + node
	}
	if p.Phase() == "Pending" {
		return s + ", without a node"
	}
	return s
}

// notFound says where something was looked for.
func (e *explainer) notFound(r check.Ref) *NotFound {
	n := &NotFound{Subject: r, Searched: e.View.Inputs()}
	for _, o := range e.View.Objects(r.Kind) {
		if o.Name == r.Name {
			n.Near = append(n.Near, e.View.RefOf(o).String())
		}
	}
	if r.Kind != "Pod" {
		return n
	}
	// A pod that quota or admission refuses never is: only its maker's events tell.
	for _, o := range e.View.Objects("Event") {
		message := oneLine(o.Get("message").Text())
		if o.Get("reason").Text() == "FailedCreate" && o.Namespace == r.Namespace && strings.Contains(message, r.Name) {
			n.Refused = append(n.Refused, seen(o.Get("message"), "%s", message))
		}
	}
	return n
}

// resource is one extended resource that a pod wants of a device plugin.
type resource struct {
	*explainer
	pod      *check.Workload
	name     string
	count    int64
	networks []*check.Network
}

func (e *explainer) byPlugin(p *check.Workload, name string, networks []*check.Network) Chain {
	r := &resource{explainer: e, pod: p, name: name, networks: networks}
	about := "resource " + name + ", not requested"
	if want := p.Want(name); want != nil {
		r.count = want.Count
		about = fmt.Sprintf("resource %s, %s requested", name, amount(p, want))
	}
	past := func(q question) question { // what was so when a node was found needs no proof
		return question{q.name, func() Step {
			if p.NodeName() != "" {
				return r.bound(q.name == nodeAllocatable)
			}
			return q.ask()
		}}
	}
	return walk(about, []question{
		{"spelled the same", r.spelled},
		past(question{"plugin on a matching node", r.plugin}),
		past(question{"device present and declared", r.present}),
		past(question{"registered", r.registered}),
		past(question{nodeAllocatable, r.allocatable}),
		past(question{"free", r.free}),
		past(question{"scheduler constraints", r.constraints}),
		{"admitted by kubelet", func() Step { return e.admitted(p) }},
		{"allocated, CDI resolved", r.allocated},
		{"network got the device", r.networked},
		{"visible in the container", func() Step { return e.visible(p, r.name) }},
	})
}

// amount is how many a pod wants, in its own words where one of them is no whole number of devices.
func amount(p *check.Workload, want *check.Want) string {
	for _, c := range p.Containers {
		for _, a := range slices.Concat(c.Limits, c.Requests) {
			if _, whole := a.Whole(); a.Name == want.Name && !whole {
				return a.Text()
			}
		}
	}
	return strconv.FormatInt(want.Count, 10)
}

// nodeAllocatable is the question at which it shows that a pod got past the scheduler.
const nodeAllocatable = "node allocatable"

// bound: a pod gets a node only after all that comes before it, unless it got past the scheduler.
func (r *resource) bound(decides bool) Step {
	n := r.View.Node(r.pod.NodeName())
	if n == nil || n.Key(r.name).Exists() || !strings.Contains(r.name, "/") {
		return r.passed()
	}
	lacks := seen(n.Object.Get("status"), "the status of node %s has no such key", n.Name)
	if !decides {
		return unknown("", "the pod is on node %s, past the scheduler", n.Name).because(lacks)
	}
	return no("POD005", "let the scheduler choose the node, or name one that has the resource",
		"the pod is on node %s, which does not have %q: it starts without the device", n.Name, r.name).because(lacks)
}

// passed: that the scheduler chose the node answers what comes before. Whoever wrote the node's name
// into the pod had the scheduler not ask.
func (r *resource) passed() Step {
	at := seen(r.pod.Spec.Get("nodeName"), "nodeName: %s", r.pod.NodeName())
	c := condition(r.pod, "PodScheduled")
	if c.Get("status").Text() != "True" && len(r.events(r.pod.Ref(), "Scheduled")) == 0 {
		return Step{Verdict: NotNeeded, Says: "not asked: the pod has node " + r.pod.NodeName() +
			", and nothing shows that the scheduler chose it"}.because(at)
	}
	return yes("the pod has node %s, which comes behind this", r.pod.NodeName()).because(at.since(c.Get("lastTransitionTime")))
}

// spelled: in the request, in the network and by whoever advertises it. The checks judge.
func (r *resource) spelled() Step {
	known := slices.ContainsFunc(r.View.Nodes(), func(n *check.Node) bool { return n.Key(r.name).Exists() })
	for _, id := range []string{"NAM009", "NAM010", "NAM003", "NAM008", "NAM004", "NAM006", "NAM001", "NAM002"} {
		if (id == "NAM001" || id == "NAM002") && known && !r.View.Outlived(r.name) {
			continue // a node has had it: what has become of that is asked below
		}
		for _, by := range r.spellers() {
			if f, ok := r.View.Proven(id, by, r.name); ok {
				return proven(f)
			}
		}
	}
	s := yes("what is requested is advertised")
	if known && !slices.ContainsFunc(r.View.Nodes(), func(n *check.Node) bool { return n.Most(r.name) > 0 }) &&
		len(r.View.Advertised(r.name)) == 0 {
		s = yes("what is requested was advertised; nothing in the input advertises it now")
	}
	for _, a := range r.View.Advertised(r.name) {
		s = s.because(Evidence{Text: fmt.Sprintf("%s (%s)", a.Object, a.Why), Source: a.Place.String()})
	}
	for _, n := range r.View.Nodes() {
		if n.Key(r.name).Exists() {
			s = s.because(nodeNow(n, r.name))
		}
	}
	if len(s.Evidence) == 0 {
		return unknown("all nodes, ConfigMaps, DaemonSets and DeviceClasses of the cluster (--live -A)", "nothing in the input advertises %q", r.name).
			because(r.suspected()...)
	}
	s.Evidence = some(s.Evidence)
	return s
}

// suspected is what a check would say of the name if the input had everything.
func (r *resource) suspected() []Evidence {
	var all []Evidence
	for _, f := range slices.Concat(r.View.Findings("NAM001"), r.View.Findings("NAM008")) {
		if f.Object == r.pod.Ref() && f.Resource == r.name {
			all = append(all, Evidence{Text: f.ID + " would say: " + f.Help, Source: f.Place.String()})
		}
	}
	return all
}

// spellers are the objects that name the resource: the pod, and the networks that it attaches.
func (r *resource) spellers() []check.Ref {
	all := []check.Ref{r.pod.Ref()}
	for _, n := range r.networks {
		all = append(all, r.View.RefOf(n.Object))
	}
	return all
}

// first is the first value of a list, missing where there is none.
func first(v manifest.Value) manifest.Value {
	for item := range v.Each() {
		return item
	}
	return manifest.Value{}
}
