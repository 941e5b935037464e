// Package declare decides which facts become which resource. It is pure: a snapshot
// goes in, resources and findings come out. It reads nothing and remembers nothing
// but what its caller hands back to it.
package declare

import (
	"slices"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// Rule declares the functions of one vendor and some classes as one resource.
type Rule struct {
	Name
	// Vendor and Classes (base class and subclass) choose the functions.
	Vendor  pci.ID
	Classes []uint16
}

// Table is a list of rules. No function may match two of them.
type Table []Rule

// Passthrough is the table of kata-device-plugin: whole NVIDIA devices that are bound
// to VFIO. A further device type is one more row.
//
// The class decides, never the device number: boards of one generation carry many,
// and Vera Rubin's are not settled. 0x0302 (3D controller) are the data-centre
// boards, 0x0300 (VGA controller) those with the display engine on, 0x0680 (bridge,
// other) the NVSwitches of HGX A100 to H200; later switches are no functions of the
// compute host.
func Passthrough() Table {
	const nvidia = pci.ID(0x10de)
	return Table{
		{Name: Name{"nvidia.com/gpu", "kata-gpu"}, Vendor: nvidia, Classes: []uint16{0x0302, 0x0300}},
		{Name: Name{"nvidia.com/nvswitch", "kata-nvswitch"}, Vendor: nvidia, Classes: []uint16{0x0680}},
	}
}

// Resource names the resource of a function, "" when no rule matches.
func (t Table) Resource(id host.Identity) string {
	for _, r := range t {
		if r.Vendor == id.Vendor && slices.Contains(r.Classes, id.Class.Sub()) {
			return r.Resource
		}
	}
	return ""
}

// Wants says whether a function is a candidate of any rule.
func (t Table) Wants(id host.Identity) bool { return t.Resource(id) != "" }

// Names are those of the rows.
func (t Table) Names() []Name {
	var all []Name
	for _, r := range t {
		if !slices.Contains(all, r.Name) { // a name may stand in several rows
			all = append(all, r.Name)
		}
	}
	return all
}
