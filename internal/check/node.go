package check

import (
	"slices"
	"strconv"
	"strings"

	"kata-device-plugin/internal/manifest"
)

// Node is a node with what its kubelet says of devices.
type Node struct {
	Object                *manifest.Object
	Name                  string
	Labels                manifest.Value
	Capacity, Allocatable map[string]int64 // of names with a slash
	Taints                []Taint
}

// Taint is a taint that keeps pods away.
type Taint struct{ Key, Value, Effect string }

// String is the taint as kubectl writes it.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

func newNode(o *manifest.Object) *Node {
	n := &Node{Object: o, Name: o.Name, Labels: o.Get("metadata", "labels")}
	n.Capacity, n.Allocatable = devices(o.Get("status", "capacity")), devices(o.Get("status", "allocatable"))
	for t := range o.Get("spec", "taints").Each() {
		if effect := t.Get("effect").Text(); effect != "PreferNoSchedule" {
			n.Taints = append(n.Taints, Taint{t.Get("key").Text(), t.Get("value").Text(), effect})
		}
	}
	return n
}

func devices(v manifest.Value) map[string]int64 {
	all := map[string]int64{}
	for e := range v.Entries() {
		if strings.Contains(e.Key(), "/") {
			all[e.Key()], _ = parseQuantity(e.Text()).whole()
		}
	}
	return all
}

// key is where the node's status has a name.
func (n *Node) key(name string) manifest.Value {
	if v := n.Object.Get("status", "allocatable", name); v.Exists() {
		return v
	}
	return n.Object.Get("status", "capacity", name)
}

// most is how many devices of a name the node has when all are healthy.
func (n *Node) most(name string) int64 { return max(n.Capacity[name], n.Allocatable[name]) }

// names lists what the node's status has, sorted.
func (n *Node) names() []string {
	var all []string
	for name := range n.Capacity {
		all = append(all, name)
	}
	for name := range n.Allocatable {
		if _, ok := n.Capacity[name]; !ok {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// refuses says why the scheduler does not put pods with a spec on the node: as far as labels
// and taints tell. Nothing that is not understood is taken for a reason.
func (n *Node) refuses(spec manifest.Value) string {
	if why := n.deselected(spec); why != "" {
		return why
	}
	cordoned := n.Object.Get("spec", "unschedulable").Text() == "true"
	if cordoned && !tolerates(spec, Taint{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"}) {
		return "it is cordoned"
	}
	return notTolerated(n.tainted(spec, func(Taint) bool { return false }))
}

// refusesDaemon is refuses for pods of a DaemonSet.
func (n *Node) refusesDaemon(spec manifest.Value) string {
	if why := n.deselected(spec); why != "" {
		return why
	}
	return notTolerated(n.daemonTaint(spec))
}

// notTolerated is a taint as a reason, "" without one.
func notTolerated(t Taint, tainted bool) string {
	if !tainted {
		return ""
	}
	return "its taint " + t.String() + " is not tolerated"
}

// daemonTaint is a taint that pods of a DaemonSet do not tolerate, of which Kubernetes lets them tolerate
// the state of a node.
func (n *Node) daemonTaint(spec manifest.Value) (Taint, bool) {
	return n.tainted(spec, func(t Taint) bool { return strings.HasPrefix(t.Key, "node.kubernetes.io/") })
}

// tainted is the first taint that is not tolerated.
func (n *Node) tainted(spec manifest.Value, tolerated func(Taint) bool) (Taint, bool) {
	for _, t := range n.Taints {
		if !tolerated(t) && !tolerates(spec, t) {
			return t, true
		}
	}
	return Taint{}, false
}

func (n *Node) deselected(spec manifest.Value) string {
	for want := range spec.Get("nodeSelector").Entries() {
		if have := n.Labels.Get(want.Key()); !have.Exists() || have.Text() != want.Text() {
			return "its label " + want.Key() + " is not " + strconv.Quote(want.Text()) + ", as nodeSelector wants"
		}
	}
	required := spec.Get("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
	if required.Len() > 0 && !n.matchesAny(required) {
		return "it does not match the required node affinity"
	}
	return ""
}

// matchesAny: of terms one must match, and of a term everything. An empty term matches nothing.
func (n *Node) matchesAny(terms manifest.Value) bool {
	for term := range terms.Each() {
		expressions, fields := term.Get("matchExpressions"), term.Get("matchFields")
		if expressions.Len()+fields.Len() > 0 && n.matches(expressions) && n.matchesFields(fields) {
			return true
		}
	}
	return false
}

// matchesFields: the only field that there is, is the name.
func (n *Node) matchesFields(fields manifest.Value) bool {
	for f := range fields.Each() {
		if slices.Contains(f.Get("values").Texts(), n.Name) == (f.Get("operator").Text() == "NotIn") {
			return false
		}
	}
	return true
}

func (n *Node) matches(expressions manifest.Value) bool {
	for e := range expressions.Each() {
		have := n.Labels.Get(e.Get("key").Text())
		if !satisfies(e.Get("operator").Text(), e.Get("values").Texts(), have) {
			return false
		}
	}
	return true
}

func satisfies(operator string, values []string, have manifest.Value) bool {
	switch operator {
	case "In":
		return have.Exists() && slices.Contains(values, have.Text())
	case "NotIn":
		return !have.Exists() || !slices.Contains(values, have.Text())
	case "Exists":
		return have.Exists()
	case "DoesNotExist":
		return !have.Exists()
	case "Gt", "Lt":
		a, err := strconv.ParseInt(have.Text(), 10, 64)
		if err != nil || len(values) != 1 {
			return false
		}
		b, err := strconv.ParseInt(values[0], 10, 64)
		return err == nil && (operator == "Gt" && a > b || operator == "Lt" && a < b)
	}
	return true
}

func tolerates(spec manifest.Value, t Taint) bool {
	for tol := range spec.Get("tolerations").Each() {
		key, effect := tol.Get("key").Text(), tol.Get("effect").Text()
		if effect != "" && effect != t.Effect || key != "" && key != t.Key {
			continue
		}
		if tol.Get("operator").Text() == "Exists" || key != "" && tol.Get("value").Text() == t.Value {
			return true
		}
	}
	return false
}
