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
		refused[f.Device] = f
	}
	now := make(map[string]*Device)
	home := make(map[string]string) // device -> resource
	for _, r := range d.Resources {
		for i := range r.Devices {
			now[r.Devices[i].ID], home[r.Devices[i].ID] = &r.Devices[i], r.Name
		}
	}
	kept := make(map[string]bool)
	var next Declaration
	for _, r := range before {
		merged := Resource{Name: r.Name}
		for _, old := range r.Devices {
			if dev := now[old.ID]; dev != nil && home[old.ID] == r.Name {
				merged.Devices = append(merged.Devices, *dev)
				continue
			}
			kept[old.ID] = true
			merged.Devices = append(merged.Devices, absent(old, r.Name, refused[old.ID], home[old.ID]))
		}
		next.Resources = append(next.Resources, merged)
	}
	next.join(d.Resources)
	for _, f := range d.Findings {
		if !kept[f.Device] || f.Resource == "" {
			next.Findings = append(next.Findings, f) // else it is with the device now
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

// absent is a device that was announced and is not declared any more.
func absent(old Device, resource string, why finding.Finding, elsewhere string) Device {
	switch {
	case elsewhere != "":
		why = finding.New(finding.ChangedClass(), old.ID, finding.Evidence{Path: "resource now", Value: elsewhere})
	case why.ID == "":
		why = finding.New(finding.Gone(), old.ID, finding.Evidence{Path: "/sys/bus/pci/devices/" + old.ID, Value: "none"})
	case why.ID == finding.NoCdev().ID:
		why = finding.New(finding.Gone(), old.ID, why.Evidence...)
	}
	return Device{ID: old.ID, Function: old.Function, Faults: []finding.Finding{why.For(resource)}}
}
