// Package holders says who has which device, and which devices nobody has. The joined state of a
// node knows both, device by device, from kubelet; the objects of a cluster know the devices of claims by name, and
// those of device plugins only by their number.
package holders

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/nodestate"
)

// Row is a device, or as many as one container has of a resource whose devices the input does not
// name.
type Row struct {
	Node string
	// Device is the device's ID or name, "" where the input does not name it.
	Device string
	// Address is its PCI address, "" where that is not known.
	Address  string
	Resource string // of a device plugin
	// Driver and Pool are those of a device of a claim.
	Driver, Pool string
	Count        int64
	// Namespace, Pod and Container have it. Held is false where nobody does.
	Held                      bool
	Namespace, Pod, Container string
	// Claim is namespace/name. Admin: it has admin access, and keeps nobody from having the device too.
	Claim string
	Admin bool
}

// List is who has what.
type List struct {
	Rows []Row
	// Unknown says in words what the input does not tell.
	Unknown []string
}

// Names finds what is known of a device of a claim elsewhere: its PCI address, "" for nothing.
type Names func(driver, pool, device string) string

// Node is one with what its sources say, joined.
type Node struct {
	Name  string
	State *nodestate.State
}

// FromNodes lists what the kubelets of nodes say.
func FromNodes(names Names, all ...Node) *List {
	l := &List{}
	for _, n := range all {
		l.node(n, names)
	}
	l.sort()
	return l
}

func (l *List) node(n Node, names Names) {
	for _, a := range n.State.Allocations {
		l.Rows = append(l.Rows, held(n.Name, a, a.Address.String()))
	}
	for _, a := range n.State.Elsewhere {
		at := ""
		if a.By == nodestate.ByDRA {
			at = names(a.Driver, a.Pool, a.Device)
		}
		l.Rows = append(l.Rows, held(n.Name, a, at))
	}
	for _, of := range []struct {
		nodestate.Source
		what string
	}{{nodestate.Pods, "who has which device"}, {nodestate.Allocatable, "which devices nobody has"}} {
		if s := n.State.Source(of.Source); s.Err != nil {
			l.Unknown = append(l.Unknown, of.what+" on node "+n.Name+": "+s.Err.Error())
		}
	}
	if n.State.Source(nodestate.Pods).Err != nil {
		return // whoever has them is not known, so nobody is not either
	}
	for _, d := range n.State.Idle {
		l.Rows = append(l.Rows, Row{Node: n.Name, Device: d.ID, Address: d.Address, Resource: d.Resource, Count: 1})
	}
}

// held is the row of a device that a container has.
func held(node string, a nodestate.Allocation, address string) Row {
	r := Row{
		Node: node, Device: a.Device, Address: address, Resource: a.Resource, Driver: a.Driver, Pool: a.Pool, Count: 1,
		Held: true, Namespace: a.Namespace, Pod: a.Pod, Container: a.Container,
	}
	if a.Claim != "" {
		r.Claim = a.Namespace + "/" + a.Claim // a pod's claims are in its own namespace
		r.Admin = a.Admin == nodestate.Yes
	}
	return r
}

func (l *List) sort() {
	slices.SortStableFunc(l.Rows, func(a, b Row) int { return slices.Compare(a.key(), b.key()) })
	slices.Sort(l.Unknown)
	l.Unknown = slices.Compact(l.Unknown)
}

func (r Row) key() []string {
	return []string{r.Node, r.Resource, r.Driver, r.Pool, r.Device, r.Namespace, r.Pod, r.Container, r.Claim}
}

// who is namespace/pod.
func (r Row) who() string {
	if !r.Held {
		return nobody
	}
	if r.Pod == "" {
		return "-" // a claim has it, and no pod has the claim
	}
	return strings.TrimPrefix(r.Namespace+"/"+r.Pod, "/")
}
