package dra

import (
	"slices"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// Device is one device as it is published: a function that is bound to VFIO, with all of its
// IOMMU group.
type Device struct {
	// Name is the type and the address, with dashes for what a DNS label cannot have:
	// gpu-0000-1b-00-0. It names the same hardware for as long as that is in its slot.
	Name string
	Type Type
	// Function holds the facts.
	Function host.Function
	// Group is the hardware that whoever has the device holds: all functions of the IOMMU
	// group, the device's own among them, sorted.
	Group []pci.Address
	// Nodes are the host's paths of the character devices: of the function, and of those of its
	// type in the group, which come with it.
	Nodes []string
	// Faults are the reasons why the device must not be handed out. A device without any is
	// healthy.
	Faults []finding.Finding

	vfIndex *int // the number of a VF at its PF, nil where the PF does not list it
}

// Healthy says whether the device may be handed out.
func (d *Device) Healthy() bool { return len(d.Faults) == 0 }

// group are the functions of a function's IOMMU group. The function is always one of them, also
// where the group could not be listed.
func group(f *host.Function) []pci.Address {
	all := []pci.Address{f.Address}
	for _, m := range f.Companions() {
		all = append(all, m.Address)
	}
	slices.SortFunc(all, pci.Address.Compare)
	return all
}
