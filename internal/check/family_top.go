package check

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/finding"
)

// The family TOP: the NUMA nodes of devices, as plugins told them to kubelet and as the host has
// them. kubelet's record has those of devices that somebody has.
func topologyChecks() []Check {
	both := []Need{needRecord, needHardware}
	return []Check{
		{finding.NoTopology(), both, noTopology},
		{finding.NodeUnknown(), both, nodeUnknown},
		{finding.TopologyMixed(), []Need{needRecord}, topologyMixed},
		{finding.NodeUntold(), []Need{needHardware}, nodeUntold},
		{finding.TooManyNUMA(), []Need{needLimits}, tooManyNUMA},
		{finding.NUMAExhausted(), []Need{needPods}, numaExhausted},
		{finding.NodeDiffers(), both, nodeDiffers},
	}
}

func (n *captured) hasBoth() bool { return n.hasRecord() && n.hasHardware() }

// noNode is what kubelet's record has for a device without a NUMA node.
const noNode = -1

// toldNodes are the NUMA nodes that plugins gave devices, with an example of each.
func (n *captured) toldNodes() map[string]map[int]string {
	all := map[string]map[int]string{}
	for _, g := range n.record.Data.PodDeviceEntries {
		n.eachNode(g, func(node int, id string) {
			if all[g.ResourceName] == nil {
				all[g.ResourceName] = map[int]string{}
			}
			all[g.ResourceName][node] = cmp.Or(all[g.ResourceName][node], id)
		})
	}
	return all
}

func (n *captured) eachNode(g capture.Given, do func(node int, id string)) {
	for _, key := range slices.Sorted(maps.Keys(g.DeviceIDs)) {
		node, err := strconv.Atoi(key)
		if err != nil {
			continue
		}
		for _, id := range g.DeviceIDs[key] {
			do(node, id)
		}
	}
}

// numaOf are the NUMA nodes of the host's functions, by their addresses.
func (n *captured) numaOf() map[string]int {
	all := map[string]int{}
	for _, f := range n.inventory().Functions {
		if f.NUMANode != nil {
			all[f.Address.String()] = *f.NUMANode
		}
	}
	return all
}

// hostNodes are the NUMA nodes on which there are functions.
func (n *captured) hostNodes() map[int]bool {
	all := map[int]bool{}
	for _, node := range n.numaOf() {
		all[node] = true
	}
	return all
}

// noTopology is of interest where there are several nodes, and where nobody wanted it so.
func noTopology(w *World) []Finding {
	wanted := map[string]bool{}
	for _, c := range w.configs {
		for _, p := range c.Pools {
			if p.GetFold("excludeTopology").Text() == "true" {
				wanted[p.full()] = true
			}
		}
	}
	return w.onNodes((*captured).hasBoth, func(n *captured) []Finding {
		var all []Finding
		told := n.toldNodes()
		for _, resource := range slices.Sorted(maps.Keys(told)) {
			if _, some := told[resource][noNode]; some && len(told[resource]) == 1 && len(n.hostNodes()) > 1 &&
				!wanted[resource] {
				all = append(all, n.found("devices of %s on node %s have no NUMA node, for example %s", resource, n.name,
					told[resource][noNode]).about(resource))
			}
		}
		return all
	})
}

// nodeUnknown: memory and processors may be on nodes without a function, but no function is.
func nodeUnknown(w *World) []Finding {
	return w.onNodes((*captured).hasBoth, func(n *captured) []Finding {
		var all []Finding
		told, host := n.toldNodes(), n.hostNodes()
		for _, resource := range slices.Sorted(maps.Keys(told)) {
			for _, node := range slices.Sorted(maps.Keys(told[resource])) {
				if node != noNode && len(host) > 0 && !host[node] {
					all = append(all, n.found("%s of %s is on NUMA node %d by its plugin, and no function of node %s is there",
						told[resource][node], resource, node, n.name).about(resource))
				}
			}
		}
		return all
	})
}

func topologyMixed(w *World) []Finding {
	return w.onNodes((*captured).hasRecord, func(n *captured) []Finding {
		var all []Finding
		told := n.toldNodes()
		for _, resource := range slices.Sorted(maps.Keys(told)) {
			nodes := told[resource]
			if without, some := nodes[noNode]; some && len(nodes) > 1 {
				numbers := slices.Sorted(maps.Keys(nodes))
				all = append(all, n.found("of %s on node %s %s has no NUMA node, and %s is on NUMA node %d", resource,
					n.name, without,
					nodes[numbers[1]], numbers[1]).about(resource))
			}
		}
		return all
	})
}

func nodeUntold(w *World) []Finding {
	return w.onNodes((*captured).hasHardware, func(n *captured) []Finding {
		if len(n.hostNodes()) < 2 {
			return nil
		}
		var without []string
		for _, f := range n.inventory().Functions {
			if f.NUMANode == nil {
				without = append(without, f.Address.String())
			}
		}
		if len(without) == 0 {
			return nil
		}
		return []Finding{n.found("node %s has several NUMA nodes, and of %s it is not known which", n.name, few(without))}
	})
}

func nodeDiffers(w *World) []Finding {
	return w.onNodes((*captured).hasBoth, func(n *captured) []Finding {
		host, there := n.numaOf(), n.hostNodes()
		var all []Finding
		for _, g := range n.record.Data.PodDeviceEntries {
			n.eachNode(g, func(node int, id string) {
				if is, known := host[pciAddress(id)]; known && there[node] && node != is { // else it is TOP002
					all = append(all, n.found("%s of %s on node %s is on NUMA node %d by its plugin, and on %d by the host", id,
						g.ResourceName, n.name, node, is).about(g.ResourceName))
				}
			})
		}
		return all
	})
}
