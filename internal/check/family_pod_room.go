package check

import (
	"slices"
	"strconv"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// wantsDevices says whether a pod is one that this is about.
func (w *Workload) wantsDevices() bool {
	return len(w.Wants()) > 0 || w.Spec.Get("resourceClaims").Len() > 0
}

// gated: of such a pod the scheduler says nothing but that.
func gated(w *World) []Finding {
	var all []Finding
	for _, p := range w.workloads {
		gates := p.Spec.Get("schedulingGates")
		if !p.pending() || gates.Len() == 0 || !p.wantsDevices() {
			continue
		}
		var names []string
		for g := range gates.Each() {
			names = append(names, g.Get("name").Text())
		}
		all = append(all, found(p.ref(), gates, "%s is not scheduled while it has the gates %s", p.ref(), strings.Join(names, ", ")))
	}
	return all
}

// ordinaries are what nodes have besides devices, and pods request of them.
func ordinaries() []string { return []string{"cpu", "memory", "ephemeral-storage"} }

// largerThanANode: what the pod requests is more than a node has when it is empty.
func largerThanANode(w *World) []Finding {
	var all []Finding
	for _, p := range w.workloads {
		if p.VM || p.Live && !p.pending() || p.Object.Kind == "DaemonSet" || p.node() != "" || !p.wantsDevices() {
			continue
		}
		nodes := w.withDevices(p)
		for _, name := range ordinaries() {
			if n := largest(nodes, name); n != nil && tooLarge(p, n, name) {
				have := n.Object.Get("status", "allocatable", name)
				f := found(p.ref(), p.Spec, "%s requests %s of %s, and no node that has its devices has more than %s", p.ref(),
					Readable(p.Requested(name), name), name, have.Text()).with(have.Place(), "node %s has the most", n.Name)
				all = append(all, w.ifAllNodes(f, p))
			}
		}
	}
	return all
}

// ifAllNodes: nodes that are not in the input may be larger, and so may those be that a class has devices on: one that
// the input lacks, or one of which a driver has published more than the input has.
func (w *World) ifAllNodes(f Finding, p *Workload) Finding {
	if !w.complete("Node") {
		return f.as(finding.Note).because("the input does not have all nodes of the cluster")
	}
	for _, want := range p.Wants() {
		s := w.supplyOf(want.Name)
		switch {
		case !s.known || s.class == nil && w.mayStand(p, want.Name):
			return f.as(finding.Note).because("device classes may have %s on other nodes", want.Name)
		case s.class != nil && !w.complete("ResourceSlice"):
			return w.unless(f, "ResourceSlice")
		}
	}
	return f
}

// withDevices are the nodes that have some of each resource that a pod wants: all of them where it has claims alone.
func (w *World) withDevices(p *Workload) []*Node {
	nodes := slices.Clone(w.nodes)
	for _, want := range p.Wants() {
		has := w.supplyOf(want.Name).nodes
		nodes = slices.DeleteFunc(nodes, func(n *Node) bool { return want.Count > 0 && !slices.Contains(has, n) })
	}
	return nodes
}

// largest is the node that has the most of something, nil where one does not say how much it has.
func largest(nodes []*Node, name string) *Node {
	var most *Node
	for _, n := range nodes {
		if parseQuantity(n.allocatable(name)).value == nil {
			return nil
		}
		if most == nil || larger(most.allocatable(name), n.allocatable(name)) != most.allocatable(name) {
			most = n
		}
	}
	return most
}

func tooLarge(p *Workload, n *Node, name string) bool {
	c, ok := Compare(p.Requested(name), n.allocatable(name))
	return ok && c > 0
}

// allocatable is how much pods may have of what is no device.
func (n *Node) allocatable(name string) string {
	return n.Object.Get("status", "allocatable", name).Text()
}

// Requested is what a pod requests of something that is no device: for all of it, or else what its containers do. A
// limit for all of it is a request where no container has one (pkg/apis/core/v1/defaults.go, defaultPodRequests).
func (w *Workload) Requested(name string) string {
	overhead, whole := w.Spec.Get("overhead", name).Text(), w.Spec.Get("resources")
	if requests := whole.Get("requests", name); requests.Exists() {
		return Sum(requests.Text(), overhead)
	}
	amount, asked := w.requestedInside(name)
	if limit := whole.Get("limits", name); !asked && limit.Exists() {
		amount = limit.Text()
	}
	return Sum(amount, overhead)
}

// requestedInside is what the containers have at most at one time, and whether any asks. Those that stay are counted
// together; one that ends has its own beside those that have begun before it and stay, as devices are counted.
func (w *Workload) requestedInside(name string) (most string, asked bool) {
	most, stay := "0", "0"
	for _, c := range w.Containers {
		amount := amountIn(c.Value, name)
		asked = asked || amount != ""
		at := Sum(stay, amount)
		if !c.Init {
			stay = at
		}
		most = larger(most, at)
	}
	return most, asked
}

// amountIn is what resources request, "" for nothing: a limit is a request, too.
func amountIn(v manifest.Value, name string) string {
	if amount := v.Get("resources", "requests", name); amount.Exists() {
		return amount.Text()
	}
	return v.Get("resources", "limits", name).Text()
}

func larger(a, b string) string {
	if c, ok := Compare(a, b); ok && c < 0 {
		return b
	}
	return a
}

// Readable is an amount as people write it: without zeros at its end, and bytes with the largest unit that is whole.
func Readable(amount, name string) string {
	if strings.Contains(amount, ".") {
		amount = strings.TrimRight(strings.TrimRight(amount, "0"), ".")
	}
	n, err := strconv.ParseInt(amount, 10, 64)
	if err != nil || name == "cpu" {
		return amount
	}
	unit := ""
	for _, next := range []string{"Ki", "Mi", "Gi", "Ti", "Pi"} {
		if n == 0 || n%1024 != 0 {
			break
		}
		n, unit = n/1024, next
	}
	return strconv.FormatInt(n, 10) + unit
}
