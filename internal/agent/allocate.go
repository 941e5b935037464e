package agent

import (
	"context"
	"strconv"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/kubelet"
	"kata-device-plugin/internal/placement"
)

// allocate answers for the devices of one container, from a fresh look at each of them
// and at the CDI spec. Where that does not agree with what was announced, the whole
// node is looked at once, and the question asked again.
func (a *Agent) allocate(ctx context.Context, o *offer, ids []string) ([]kubelet.Grant, error) {
	grants, refusal := a.grant(o, ids)
	if refusal != nil && refusal.Kind == kubelet.Unhealthy {
		if err := a.refresh(ctx); err != nil {
			return nil, err
		}
		grants, refusal = a.grant(o, ids)
	}
	if refusal != nil {
		return nil, refusal
	}
	return grants, nil
}

// grant holds the announcement still while it checks, so that the spec on disk, the
// announced list and the answer are of one moment.
func (a *Agent) grant(o *offer, ids []string) ([]kubelet.Grant, *kubelet.Refusal) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	grants := make([]kubelet.Grant, 0, len(ids))
	for _, id := range ids {
		d := o.byID[id]
		if d == nil {
			return nil, &kubelet.Refusal{Device: id, Kind: kubelet.Unknown, Reason: a.unknown(o, id)}
		}
		if reason := a.against(o, d); reason != "" {
			return nil, &kubelet.Refusal{Device: id, Kind: kubelet.Unhealthy, Reason: reason}
		}
		grants = append(grants, kubelet.Grant{CDI: cdi.QualifiedName(o.resource, id), Node: d.Node()})
	}
	if !o.file.InStep() {
		return nil, &kubelet.Refusal{Device: ids[0], Kind: kubelet.Unhealthy, Reason: "the CDI spec " + o.file.Path() + " is not as it was written"}
	}
	a.answers.add(grants)
	return grants, nil
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
		return "it is no longer at " + d.Node()
	case fresh.Err != nil:
		return fresh.Err.Error()
	}
	if faults := a.prog.Table.Judge(&fresh, o.resource); len(faults) > 0 {
		return faults[0].String()
	}
	if !o.file.Resolves(cdi.Device{Name: d.ID, Node: d.Node()}) {
		return "the CDI spec " + o.file.Path() + " does not name it"
	}
	return ""
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
	return placement.Choose(units, must, size)
}

// place is where a device sits: NUMA node, PCIe root, then bridge by bridge.
func place(d *declare.Device) []string {
	f := &d.Function
	path := make([]string, 0, 2+len(f.Bridges))
	node := "node " + strconv.Itoa(int(f.NUMA))
	if f.NUMA == host.NoNode {
		node = "node of " + f.Root // two that are unknown need not be one
	}
	path = append(path, node, f.Root)
	for _, b := range f.Bridges {
		path = append(path, b.String())
	}
	return path
}
