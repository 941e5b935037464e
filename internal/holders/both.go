package holders

import (
	"slices"

	"kata-device-plugin/internal/check"
)

// FromBoth lists what the kubelets of nodes say and, of what these do not know, what objects say: devices
// of claims that no pod on the node has, and nodes whose kubelets were not asked.
func FromBoth(v *check.View, nodes ...Node) *List {
	l := FromNodes(NamesOf(v), nodes...)
	l.free(v)
	objects := FromObjects(v)
	asked := map[string]bool{}
	for _, n := range nodes {
		asked[n.Name] = true
	}
	said := len(v.Nodes())+len(v.Objects("ResourceSlice"))+len(v.Objects("ResourceClaim"))+len(v.Pods()) > 0
	for _, r := range objects.Rows {
		if asked[r.Node] && (r.Driver == "" || l.has(r)) {
			continue
		}
		l.Rows = append(l.Rows, r)
	}
	if said {
		l.Unknown = append(l.Unknown, lacking(v)...)
	}
	l.Unknown = append(l.Unknown, l.nameless()...)
	l.sort()
	return l
}

// free gives up what pods have that are known to have ended: an older kubelet names them until it needs
// their devices.
func (l *List) free(v *check.View) {
	var gone []Row
	l.Rows = slices.DeleteFunc(l.Rows, func(r Row) bool {
		over := r.Held && r.Claim == "" && ended(v.Pod(r.Namespace, r.Pod))
		if over {
			gone = append(gone, r)
		}
		return over
	})
	for _, r := range gone {
		if !l.has(r) {
			l.Rows = append(l.Rows, Row{Node: r.Node, Device: r.Device, Address: r.Address, Resource: r.Resource, Count: r.Count})
		}
	}
}

// has says whether the list has the device of a row.
func (l *List) has(r Row) bool {
	return slices.ContainsFunc(l.Rows, func(of Row) bool {
		return of.Node == r.Node && of.Resource == r.Resource && of.Driver == r.Driver && of.Pool == r.Pool && of.Device == r.Device
	})
}
