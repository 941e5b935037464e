package agent

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/kubelet"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/placement"
)

// allocate answers for the devices of one container, from a fresh look at each of them
// and at the CDI spec. Where that does not agree with what was announced, the whole
// node is looked at once, and the question asked again.
func (a *Agent) allocate(ctx context.Context, o *offer, ids []string) (kubelet.Answer, error) {
	answer, refusal := a.grant(o, ids)
	if refusal != nil && refusal.Kind == kubelet.Unhealthy {
		if err := a.lookout.Refresh(ctx); err != nil {
			return kubelet.Answer{}, err
		}
		answer, refusal = a.grant(o, ids)
	}
	if refusal != nil {
		return kubelet.Answer{}, refusal
	}
	return answer, nil
}

// grant holds the announcement still while it checks, so that the spec on disk, the
// announced list and the answer are of one moment.
func (a *Agent) grant(o *offer, ids []string) (kubelet.Answer, *kubelet.Refusal) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	unhealthy := func(id, reason string) (kubelet.Answer, *kubelet.Refusal) {
		return kubelet.Answer{}, &kubelet.Refusal{Device: id, Kind: kubelet.Unhealthy, Reason: reason}
	}
	devices := make([]*declare.Device, 0, len(ids))
	for _, id := range ids {
		d := o.byID[id]
		if d == nil {
			return kubelet.Answer{}, &kubelet.Refusal{Device: id, Kind: kubelet.Unknown, Reason: a.unknown(o, id)}
		}
		if reason := a.against(o, d); reason != "" {
			return unhealthy(id, reason)
		}
		devices = append(devices, d)
	}
	if !o.unnamed && !o.file.InStep() {
		return unhealthy(ids[0], "the CDI spec "+o.file.Path()+" is not as it was written")
	}
	if err := a.tellGrant(o, devices); err != nil {
		return unhealthy(ids[0], err.Error())
	}
	return a.answer(o, devices), nil
}

// answer is what a container gets for devices: their CDI names, their nodes and what goes
// with them, each once, and what it is told.
func (a *Agent) answer(o *offer, devices []*declare.Device) kubelet.Answer {
	var answer kubelet.Answer
	given := make(map[string]bool)
	give := func(nodes []declare.Node) {
		for _, n := range nodes {
			if !given[n.Path] {
				given[n.Path] = true
				answer.Nodes = append(answer.Nodes, kubelet.Node{Host: n.OnHost(), Container: n.Path, Permissions: n.Permissions})
			}
		}
	}
	for _, d := range devices {
		if o.named(d) {
			answer.CDI = append(answer.CDI, cdi.QualifiedName(o.resource, d.ID))
		}
		give(d.With)
		give(d.Nodes)
	}
	answer.Env = a.rules.Environment(o.resource, devices)
	return answer
}

// unknown says where an ID might come from.
func (a *Agent) unknown(o *offer, id string) string {
	for _, other := range a.offers {
		if other.knows(id) {
			return "it is a device of " + other.resource + ", not of " + o.resource
		}
	}
	return "not a device that " + a.prog.Name + " announced for " + o.resource + "; does another plugin advertise the same resource?"
}

// against says what speaks against handing a device out now, "" when nothing does.
func (a *Agent) against(o *offer, d *declare.Device) string {
	if !d.Healthy() {
		return d.Faults[0].String()
	}
	fresh, there := a.source.Again(a.snapshot, d.Function.Address)
	switch {
	case !there:
		return "it is no longer there as it was announced: " + d.String()
	case fresh.Err != nil:
		return fresh.Err.Error()
	}
	now := a.rules.Again(&fresh, d, o.resource)
	switch {
	case !now.Healthy():
		return now.Faults[0].String()
	case !slices.Equal(now.Nodes, d.Nodes):
		return "it is " + now.String() + " now, and was announced as " + d.String()
	case o.named(d) && !o.file.Resolves(resolved(d)):
		return "the CDI spec " + o.file.Path() + " does not name it"
	}
	return a.without(d)
}

// without says which node that goes with a device is not what it was, "" for none. One that is
// another device's is looked for there: numbers change hands.
func (a *Agent) without(d *declare.Device) string {
	fresh := map[string][]string{}
	for _, n := range d.With {
		there := a.source.HasNode(n.OnHost())
		if there && n.Owner != "" {
			nodes, known := fresh[n.Owner]
			if !known {
				nodes = a.nodesAgain(n.Owner)
				fresh[n.Owner] = nodes
			}
			there = slices.Contains(nodes, n.OnHost())
		}
		if !there {
			return n.OnHost() + ", which goes with it, is not there as it was announced"
		}
	}
	return ""
}

// nodesAgain are the nodes of a function, read anew.
func (a *Agent) nodesAgain(owner string) []string {
	address, err := pci.ParseAddress(owner)
	if err != nil {
		return nil
	}
	f, there := a.source.Again(a.snapshot, address)
	if !there || f.Err != nil {
		return nil
	}
	return f.NodesOf(owner)
}

// prefer chooses devices that sit close together. What is not ours is passed over: kubelet
// makes up for it.
func (a *Agent) prefer(o *offer, available, must []string, size int) []string {
	a.mu.RLock()
	devices := o.devices // replaced as a whole, never changed
	a.mu.RUnlock()
	free := make(map[string]bool, len(available))
	for _, id := range available {
		free[id] = true
	}
	units := make([]placement.Unit, 0, min(len(devices), len(available)))
	for i := range devices {
		if d := &devices[i]; free[d.ID] {
			units = append(units, placement.Unit{ID: d.ID, Path: place(d)})
		}
	}
	if shares(devices) {
		return placement.Spread(units, must, size)
	}
	return placement.Choose(units, must, size)
}

// shares says whether devices are shares of others: one function has several of them.
func shares(devices []declare.Device) bool {
	return len(devices) > 0 && strings.Contains(devices[0].ID, "::")
}

// place is where a device sits: NUMA node, PCIe root, then bridge by bridge, the PF of a VF,
// and the function of a part.
func place(d *declare.Device) []string {
	f := &d.Function
	path := make([]string, 0, 4+len(f.Bridges))
	node := "node " + strconv.Itoa(int(f.NUMA))
	if f.NUMA == host.NoNode {
		node = "node of " + f.Root // two that are unknown need not be one
	}
	path = append(path, node, f.Root)
	for _, b := range f.Bridges {
		path = append(path, b.String())
	}
	if f.PhysFn != nil {
		path = append(path, f.PhysFn.String())
	}
	if address := f.Address.String(); d.ID != address {
		path = append(path, address) // one of several devices of the function
	}
	return path
}
