package check

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// View is a loaded set for those who explain one object of it. It answers with the same judgement
// as the checks do.
type View struct {
	*World
	found   map[string][]Finding // by the ID of the check
	objects map[Ref]*manifest.Object
	pods    map[Ref]*Workload
}

// Look loads a view of a set.
func Look(set *manifest.Set, o Options) *View {
	v := &View{
		World: newWorld(set, o), found: map[string][]Finding{}, objects: map[Ref]*manifest.Object{}, pods: map[Ref]*Workload{},
	}
	for _, object := range v.World.objects {
		if r := v.ref(object); v.objects[r] == nil {
			v.objects[r] = object
		}
	}
	for _, p := range v.workloads {
		if r := p.ref(); r.Kind == "Pod" && v.pods[r] == nil {
			v.pods[r] = p
		}
	}
	return v
}

// Findings are what a check finds. A check that lacks an input finds nothing.
func (v *View) Findings(id string) []Finding {
	if found, ok := v.found[id]; ok {
		return found
	}
	var all []Finding
	for _, c := range Checks() {
		if c.ID != id || len(v.missing(c.Needs)) > 0 {
			continue
		}
		for _, f := range c.Run(v.World) {
			f.Kind = c.Kind
			if f.severity != nil {
				f.Severity = *f.severity
			}
			if f.Help == "" {
				f.Help = f.Remedy
			}
			all = append(all, f)
		}
	}
	v.found[id] = all
	return all
}

// Proven is the finding of a check about an object and a resource that the input proves.
func (v *View) Proven(id string, object Ref, resource string) (Finding, bool) {
	for _, f := range v.Findings(id) {
		if f.Object == object && f.Resource == resource && f.Severity == finding.Error {
			return f, true
		}
	}
	return Finding{}, false
}

// Complete says whether all objects of a kind are in the input.
func (v *View) Complete(kind string) bool { return v.complete(kind) }

// MayStand says whether a device class that the input lacks may stand for an extended resource of a pod.
func (v *View) MayStand(p *Workload, resource string) bool { return v.mayStand(p, resource) }

// Inputs are the names of what was read.
func (v *View) Inputs() []string {
	var all []string
	for _, i := range v.set.Inputs {
		all = append(all, i.Name)
	}
	return all
}

// Objects are the objects of a kind.
func (v *View) Objects(kind string) []*manifest.Object { return v.kinds[kind] }

// Object finds an object, nil where the input has none.
func (v *View) Object(r Ref) *manifest.Object { return v.objects[r] }

// Pod finds a pod, nil where the input has none.
func (v *View) Pod(namespace, name string) *Workload { return v.pods[Ref{"Pod", namespace, name}] }

// RefOf is the identity of an object.
func (v *View) RefOf(o *manifest.Object) Ref { return v.ref(o) }

// Pods are the pods of the input, those that have ended among them.
func (v *View) Pods() []*Workload {
	return slices.DeleteFunc(slices.Clone(v.workloads), func(p *Workload) bool { return p.Object.Kind != "Pod" })
}

// Nodes are the nodes of the input, with what their kubelets say.
func (v *View) Nodes() []*Node { return v.nodes }

// Node finds a node, nil where the input has none of the name.
func (v *View) Node(name string) *Node { return v.nodeOf[name] }

// PodsOn are the pods that a node has and that have not ended.
func (v *View) PodsOn(node string) []*Workload { return v.podsOn[node] }

// Events are those about an object, the newest last.
func (v *View) Events(r Ref) []*manifest.Object { return v.events[r] }

// Advertised lists who advertises a name, nodes apart.
func (v *View) Advertised(name string) []Advertiser {
	var all []Advertiser
	for _, p := range v.names.of(name) {
		all = append(all, Advertiser{p.Object, p.At, p.Why})
	}
	return all
}

// Agents are the workloads that advertise a name.
func (v *View) Agents(name string) []*Agent {
	var all []*Agent
	add := func(a *Agent) {
		if a != nil && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	for _, p := range v.names.of(name) {
		add(p.agent)
		if p.pool != nil {
			for _, a := range p.pool.Config.Agents {
				add(a)
			}
		}
	}
	return all
}

// Networks are the networks of a workload that are tied to a resource, by its name.
func (v *View) Networks(p *Workload) map[string][]*Network {
	all := map[string][]*Network{}
	for _, a := range v.attachments(p) {
		all[a.resource] = a.networks
	}
	return all
}

// SchedulerSays is the scheduler's message about a pod that waits; it is missing where there is none.
func (v *View) SchedulerSays(p *Workload) manifest.Value { return v.unschedulable(p) }

// Refusal says in words what kubelet means by refusing a pod, "" where the message is not known.
func Refusal(message string) string {
	for _, r := range reasons() {
		if strings.Contains(message, r.fragment) {
			return r.meaning
		}
	}
	return ""
}

// Ref is the identity of a workload's object.
func (w *Workload) Ref() Ref { return w.ref() }

// NodeName is the node that a pod is bound to, "" for none.
func (w *Workload) NodeName() string { return w.node() }

// Phase is the phase of a pod.
func (w *Workload) Phase() string { return w.phase() }

// Want is what the workload asks for of a name, nil for nothing.
func (w *Workload) Want(name string) *Want { return w.want(name) }

// Refuses says why the scheduler does not put pods with a spec on the node, "" for no reason that
// labels and taints tell.
func (n *Node) Refuses(spec manifest.Value) string { return n.refuses(spec) }

// RefusesDaemon is Refuses for pods of a DaemonSet.
func (n *Node) RefusesDaemon(spec manifest.Value) string { return n.refusesDaemon(spec) }

// Key is where the node's status has a name. It is missing where kubelet has never had it.
func (n *Node) Key(name string) manifest.Value { return n.key(name) }

// Most is how many devices of a name the node has when all are healthy.
func (n *Node) Most(name string) int64 { return n.most(name) }

// Compare compares two amounts as Kubernetes writes them. It is false where one is none.
func Compare(a, b string) (int, bool) {
	x, y := parseQuantity(a), parseQuantity(b)
	if x.value == nil || y.value == nil {
		return 0, false
	}
	return x.value.Cmp(y.value), true
}

// Sum adds amounts as Kubernetes writes them, as a decimal number. What is no amount counts nothing.
func Sum(amounts ...string) string {
	total := parseQuantity("0").value
	for _, a := range amounts {
		if q := parseQuantity(a); q.value != nil {
			total.Add(total, q.value)
		}
	}
	return total.FloatString(3)
}

// Whole is the amount as a number of devices, and false when it is not a whole number.
func (a Amount) Whole() (int64, bool) { return a.whole() }
