package agent

import (
	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/pci"
)

// objections are what other owners' specs say against devices of a resource, by ID.
func objections(resource string, devices []declare.Device, foreign []cdi.Foreign) map[string][]finding.Finding {
	all := make(map[string][]finding.Finding)
	for id, f := range conflicts(resource, foreign) {
		all[id] = append(all[id], f)
	}
	claimed := claims(foreign)
	if len(claimed) == 0 {
		return all
	}
	for i := range devices {
		d := &devices[i]
		if e, held := claimOn(d, claimed); held {
			all[d.ID] = append(all[d.ID], finding.New(finding.Claimed(), d.ID, e).For(resource))
		}
	}
	return all
}

// conflicts are the devices of a resource that other owners' specs define too.
func conflicts(resource string, foreign []cdi.Foreign) map[string]finding.Finding {
	all := make(map[string]finding.Finding)
	for _, f := range foreign {
		if !f.Known() || f.Kind != resource {
			continue
		}
		for _, name := range f.Names {
			all[name] = finding.New(finding.SpecConflict(), name, finding.Evidence{Path: f.Path}).For(resource)
		}
	}
	return all
}

// claims are the functions that DRA claims hold, with the spec that says so. The specs outlive
// the driver, as the pods of the claims do.
func claims(foreign []cdi.Foreign) map[pci.Address]finding.Evidence {
	all := make(map[pci.Address]finding.Evidence)
	for i := range foreign {
		for _, c := range foreign[i].Claimed() {
			if _, known := all[c.Address]; !known {
				all[c.Address] = finding.Evidence{Path: foreign[i].Path, Value: c.Name}
			}
		}
	}
	return all
}

// claimOn finds the claim that holds a device, or another function of its IOMMU group: the VM
// that has one function of a group keeps every other VM from the rest.
func claimOn(d *declare.Device, claimed map[pci.Address]finding.Evidence) (finding.Evidence, bool) {
	if e, held := claimed[d.Function.Address]; held {
		return e, true
	}
	if d.Function.Group == nil {
		return finding.Evidence{}, false
	}
	for _, m := range d.Function.Group.Members {
		if e, held := claimed[m.Address]; held {
			return e, true
		}
	}
	return finding.Evidence{}, false
}
