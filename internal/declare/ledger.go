package declare

import (
	"slices"

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
	refused := make(map[string]finding.Finding, len(d.Findings))
	for _, f := range d.Findings {
		if _, ok := refused[f.Device]; !ok { // why it is no device comes before what else there is
			refused[f.Device] = f
		}
	}
	now := make(map[string]*Device)
	home := make(map[string]string) // device -> resource
	for _, r := range d.Resources {
		for i := range r.Devices {
			now[r.Devices[i].ID], home[r.Devices[i].ID] = &r.Devices[i], r.Name
		}
	}
	told := make(map[string]bool) // findings that are with a device now
	var next Declaration
	for _, r := range before {
		merged := Resource{Name: r.Name}
		for _, old := range r.Devices {
			if dev := now[old.ID]; dev != nil && home[old.ID] == r.Name {
				merged.Devices = append(merged.Devices, *dev)
				continue
			}
			merged.Devices = append(merged.Devices, d.absent(old, r.Name, refused[old.ID], home[old.ID]))
			if why := refused[old.ID]; why.Resource == r.Name || why.Resource == "" {
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
		slices.SortFunc(into.Devices, func(a, b Device) int {
			return a.Function.Address.Compare(b.Function.Address)
		})
	}
}

// absent is a device that was announced and is not declared any more. why is the reason
// why it is none, and elsewhere the resource that it is declared as instead.
func (d Declaration) absent(old Device, resource string, why finding.Finding, elsewhere string) Device {
	if elsewhere == "" && why.Resource != resource {
		elsewhere = why.Resource // it would be of another resource, if something was not in the way
	}
	class, other := d.others[old.ID]
	switch {
	case elsewhere != "":
		why = finding.New(finding.ChangedClass(), old.ID, finding.Evidence{Path: "resource now", Value: elsewhere})
	case other:
		why = finding.New(finding.ChangedClass(), old.ID, class)
	case why.ID == "":
		why = finding.New(finding.Gone(), old.ID, finding.Evidence{Path: "/sys/bus/pci/devices/" + old.ID, Value: "none"})
	case why.ID == finding.NoCdev().ID:
		why = finding.New(finding.Gone(), old.ID, why.Evidence...)
	}
	return Device{ID: old.ID, Function: old.Function, Faults: []finding.Finding{why.For(resource)}}
}
