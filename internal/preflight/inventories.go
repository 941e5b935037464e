package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/finding"
)

// Both is what a PCI function is in the two inventories of a node.
type Both struct {
	Address string
	// Resource is the extended resource of the plugin, and Device the name in the driver's
	// ResourceSlices; "" where it is in only one.
	Resource, Device string
	// Differs says in what they differ, "" for nothing.
	Differs string
}

// Compared is a node with the devices that its plugin and its driver have.
type Compared struct {
	Node    string
	Devices []Both
	// Lacks is what is missing for a comparison, "" for nothing.
	Lacks string
}

// compare joins, by PCI address, what kubelet said in a capture and what the driver has published, of
// the resources that are to be left behind.
func (s *survey) compare(moves []Move) (all []Compared, findings []check.Finding) {
	if len(moves) == 0 {
		return nil, nil
	}
	for _, n := range s.captured {
		plugin, driver := n.offered(moves), s.publishedOn(n, moves)
		one := Compared{Node: n.name}
		switch {
		case !n.told:
			one.Lacks = "the capture has no answer of kubelet which devices there are"
		case len(plugin) == 0:
			one.Lacks = "kubelet offered no such device when the node was captured"
		case len(driver) == 0:
			one.Lacks = "the input has no ResourceSlice of " + draname.Driver + " with such a device of the node"
		default:
			one.Devices = joined(plugin, driver)
		}
		all = append(all, one)
		for _, d := range one.Devices {
			if d.Differs == "" {
				continue
			}
			f := n.found(finding.InventoriesDiffer(), "%s of node %s: %s", d.Address, n.name, d.Differs)
			f.Resource = d.Resource
			if p, ok := driver[d.Address]; ok {
				f.Related = []check.Related{{Place: p.Device.Place(), Text: "the driver has published it as " + p.String()}}
			}
			findings = append(findings, f)
		}
	}
	return all, findings
}

// offered are the plugin's devices by their addresses.
func (n *captured) offered(moves []Move) map[string]string {
	all := map[string]string{}
	for _, p := range n.plugged {
		if slices.ContainsFunc(moves, func(m Move) bool { return m.Resource == p.resource }) {
			all[p.address] = p.resource
		}
	}
	return all
}

// publishedOn are the driver's devices of a node by their addresses: those of a type that the
// resources have, and those that the plugin has.
func (s *survey) publishedOn(n *captured, moves []Move) map[string]check.Published {
	plugin, all := n.offered(moves), map[string]check.Published{}
	for _, d := range s.View.Published() {
		if d.Driver != draname.Driver || d.Node != n.name || d.Address == "" {
			continue
		}
		_, known := plugin[d.Address]
		if known || slices.ContainsFunc(moves, func(m Move) bool { return typeOf(m.Resource) == publishedType(d) }) {
			all[d.Address] = d
		}
	}
	return all
}

// typeOf is the driver's type of what is behind a resource, "?" for what is not known.
func typeOf(resource string) string {
	switch resource {
	case "nvidia.com/gpu", "nvidia.com/pgpu":
		return "gpu"
	case "nvidia.com/nvswitch":
		return "nvswitch"
	}
	return "?"
}

func publishedType(d check.Published) string {
	for _, key := range []string{draname.Driver + "/type", "type"} {
		if v := d.Device.Get("attributes", key, "string"); v.Exists() {
			return v.Text()
		}
	}
	return ""
}

// joined says of each address who has it, and in what the two differ.
func joined(plugin map[string]string, driver map[string]check.Published) []Both {
	addresses := slices.Concat(slices.Collect(maps.Keys(plugin)), slices.Collect(maps.Keys(driver)))
	slices.Sort(addresses)
	var all []Both
	for _, address := range slices.Compact(addresses) {
		one := Both{Address: address, Resource: plugin[address]}
		d, published := driver[address]
		one.Device = d.DeviceName.Device
		switch want := typeOf(one.Resource); {
		case !published:
			one.Differs = fmt.Sprintf("kubelet offers it as %s, and the driver has not published it", one.Resource)
		case one.Resource == "":
			one.Differs = fmt.Sprintf("the driver has published it as %s, and kubelet does not offer it", one.Device)
		case want != "?" && publishedType(d) != want:
			one.Differs = fmt.Sprintf("it is a device of %s, and of the type %q to the driver", one.Resource, publishedType(d))
		case len(d.Taints) > 0:
			one.Differs = fmt.Sprintf("kubelet offers it as %s, and the driver keeps pods from it: %s", one.Resource, taints(d))
		}
		all = append(all, one)
	}
	return all
}

func taints(d check.Published) string {
	var all []string
	for _, t := range d.Taints {
		all = append(all, t.String())
	}
	return strings.Join(all, ", ")
}
