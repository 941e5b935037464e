package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kata-device-plugin/internal/nodeconfig"
)

// numaLimits are kubelet's of NUMA nodes, nil where its configuration is not in the capture.
func (n *captured) numaLimits() *nodeconfig.Kubelet {
	k, err := nodeconfig.ReadKubelet(n.c.FS(), n.kubeletDir())
	if err != nil {
		return nil // it is not there, or it says nothing: either is for a check of the configuration to say
	}
	return k
}

func (n *captured) hasLimits() bool { return n.hasHardware() && n.numaLimits() != nil }

// tooManyNUMA counts the nodes on which there is PCI hardware: there may be more, and not fewer.
func tooManyNUMA(w *World) []Finding {
	return w.onNodes((*captured).hasLimits, func(n *captured) []Finding {
		k, nodes := n.numaLimits(), len(n.hostNodes())
		if k.Policy == "none" || nodes <= k.MaxNUMANodes {
			return nil
		}
		f := n.found("node %s has hardware on %d NUMA nodes, and its topology manager works with %d", n.name, nodes, k.MaxNUMANodes)
		return []Finding{f.because("topologyManagerPolicy is %s in %s", k.Policy, k.File)}
	})
}

// unaligned says whether kubelet refused a pod because of NUMA nodes.
func unaligned(p *Workload) bool {
	reason := p.Object.Get("status", "reason").Text()
	return p.Live && p.phase() == "Failed" && (reason == "TopologyAffinityError" ||
		strings.Contains(p.Object.Get("status", "message").Text(), "Resources cannot be allocated with Topology locality"))
}

// numaExhausted puts what a refused pod wanted beside what each NUMA node of its node has free at
// the time of the capture.
func numaExhausted(w *World) []Finding {
	var all []Finding
	for _, p := range w.workloads {
		if !unaligned(p) {
			continue
		}
		at := p.Object.Get("status", "reason")
		f := found(p.ref(), at, "%s was refused: its devices are not free together on one NUMA node of %s", p.ref(), p.node())
		for _, n := range w.captured {
			if n.name == p.node() && n.hasOffers() && n.hasHolders() {
				for _, want := range p.Wants() {
					f = f.because("%s: %d requested, %s", want.Name, want.Count, n.freeByNode(want.Name))
				}
			}
		}
		if len(f.Evidence) == 0 {
			f = f.because("what is free there is in no capture of the node with its hardware and kubelet's answers")
		}
		all = append(all, f)
	}
	return all
}

// freeByNode counts the devices of a resource that no container has, by NUMA node.
func (n *captured) freeByNode(resource string) string {
	held := map[string]bool{}
	for _, p := range n.pods.Pods {
		for _, c := range p.Containers {
			for _, d := range c.Devices {
				held[d.Resource+" "+d.ID] = true
			}
		}
	}
	host := n.numaOf()
	free, elsewhere := map[int]int{}, 0
	for _, id := range n.offered()[resource] {
		node, known := host[pciAddress(id)]
		if known {
			free[node] += 0 // a node whose devices are all in use is of interest, too
		}
		switch {
		case held[resource+" "+id]:
		case known:
			free[node]++
		default:
			elsewhere++
		}
	}
	var parts []string
	for _, node := range slices.Sorted(maps.Keys(free)) {
		parts = append(parts, fmt.Sprintf("%d free on NUMA node %d", free[node], node))
	}
	if elsewhere > 0 || len(parts) == 0 {
		parts = append(parts, fmt.Sprintf("%d free of which the NUMA node is not known", elsewhere))
	}
	return strings.Join(parts, ", ")
}
