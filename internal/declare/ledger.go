package declare

import (
	"cmp"
	"slices"
	"strings"

	"kata-device-plugin/internal/finding"
)

// After is what may be announced when before has been announced already: every device
// of before is still in it. One that is no longer declared is there as unhealthy, with
// the reason.
//
// An ID is never withdrawn, because kubelet keeps pointers into its device map while
// it waits for Allocate, and crashes when a list arrives without the device
// (kubernetes/kubernetes#95041); and because it reports a device that has left the
// list as healthy in the status of the pod that holds it.
func (d Declaration) After(before []Resource) Declaration {
	reasons := d.reasons()
	now := make(map[subject]*Device)
	home := make(map[string]string) // device -> the first resource that has it
	for _, r := range d.Resources {
		for i := range r.Devices {
			dev := &r.Devices[i]
			now[subject{r.Name, dev.ID}] = dev
			if home[dev.ID] == "" {
				home[dev.ID] = r.Name
			}
		}
	}
	told := make(map[string]bool) // findings that are with a device now
	var next Declaration
	for _, r := range before {
		merged := Resource{Name: r.Name}
		for _, old := range r.Devices {
			if dev := now[subject{r.Name, old.ID}]; dev != nil {
				merged.Devices = append(merged.Devices, *dev)
				continue
			}
			why := reasons.of(r.Name, old)
			merged.Devices = append(merged.Devices, d.absent(old, r.Name, why, home[old.ID]))
			if why.Resource == r.Name || why.Resource == "" {
				told[why.Key()] = true
			}
		}
		next.Resources = append(next.Resources, merged)
	}
	next.join(d.Resources)
	for _, f := range d.Findings {
		if !told[f.Key()] {
			next.Findings = append(next.Findings, f)
		}
	}
	return next
}

// subject is a device of a resource. The resource is empty where any will do.
type subject struct{ resource, device string }

// reasons are the first findings of each subject: why it is no device comes before what else
// there is.
type reasons map[subject]finding.Finding

func (d Declaration) reasons() reasons {
	all := make(reasons, len(d.Findings))
	for _, f := range d.Findings {
		for _, s := range []subject{{f.Resource, f.Device}, {"", f.Device}} {
			if _, ok := all[s]; !ok {
				all[s] = f
			}
		}
	}
	return all
}

// of is the reason why a device of a resource is none any more: its own, or its function's.
func (r reasons) of(resource string, d Device) finding.Finding {
	address := d.Function.Address.String()
	for _, s := range []subject{{resource, d.ID}, {"", d.ID}, {resource, address}, {"", address}} {
		if f, ok := r[s]; ok {
			return f
		}
	}
	return finding.Finding{}
}

// join adds the devices of resources that are not there yet.
func (d *Declaration) join(resources []Resource) {
	for _, r := range resources {
		i := slices.IndexFunc(d.Resources, func(x Resource) bool { return x.Name == r.Name })
		if i < 0 {
			d.Resources = append(d.Resources, Resource{Name: r.Name})
			i = len(d.Resources) - 1
		}
		into := &d.Resources[i]
		have := make(map[string]bool, len(into.Devices))
		for _, dev := range into.Devices {
			have[dev.ID] = true
		}
		for _, dev := range r.Devices {
			if !have[dev.ID] {
				into.Devices = append(into.Devices, dev)
			}
		}
		slices.SortFunc(into.Devices, Order)
	}
}

// Order is by function, and then by ID, of which a longer one has the larger number.
func Order(a, b Device) int {
	return cmp.Or(a.Function.Address.Compare(b.Function.Address), cmp.Compare(len(a.ID), len(b.ID)), strings.Compare(a.ID, b.ID))
}

// absent is a device that was announced and is not declared any more. why is the reason
// why it is none, and elsewhere the resource that it is declared as instead.
func (d Declaration) absent(old Device, resource string, why finding.Finding, elsewhere string) Device {
	at := old.Function.Address.String()
	if elsewhere == "" && why.Resource != resource {
		elsewhere = why.Resource // it would be of another resource, if something was not in the way
	}
	class, other := d.Others[at]
	switch {
	case elsewhere != "":
		why = finding.New(finding.ChangedClass(), old.ID, finding.Evidence{Path: "resource now", Value: elsewhere})
	case other:
		why = finding.New(finding.ChangedClass(), old.ID, class)
	case why.ID == "" && old.Left:
		why = old.Faults[0]
	case why.ID == "":
		why = finding.New(finding.Gone(), old.ID, finding.Evidence{Path: "/sys/bus/pci/devices/" + at, Value: "none"})
	case why.ID == finding.NoCdev().ID:
		why = finding.New(finding.Gone(), old.ID, why.Evidence...)
	}
	why.Device = old.ID // of a share it is the function's
	dev := Device{
		ID: old.ID, Function: old.Function, Faults: []finding.Finding{why.For(resource)},
		Left: why.ID == finding.ChangedClass().ID || why.ID == finding.Deselected().ID,
	}
	if d.there(old) {
		dev.Present, dev.Nodes, dev.With, dev.About, dev.NoTopology = true, old.Nodes, old.With, old.About, old.NoTopology
	}
	return dev
}

// there says whether the hardware and all nodes of a device are what they were, whatever it is
// of now.
func (d Declaration) there(old Device) bool {
	f, ok := d.Snapshot.Function(old.Function.Address)
	if !ok || !f.Known || f.Vendor != old.Function.Vendor || f.Device != old.Function.Device || len(old.Nodes) == 0 {
		return false
	}
	now := d.Snapshot.NodesOf(old.ID)
	return !slices.ContainsFunc(old.Nodes, func(n Node) bool { return !slices.Contains(now, n.OnHost()) })
}
