package check

import (
	"slices"

	"kata-device-plugin/internal/finding"
)

// hasOffers says whether it is known what a node has, and what kubelet offers of it.
func (n *captured) hasOffers() bool { return n.hasHardware() && n.hasAllocatable() }

// fewerOffered compares what the rules of our own plugins declare with what kubelet offers, of
// resources of which it offers something: a plugin that is not there is another finding.
func fewerOffered(w *World) []Finding {
	return w.onNodes((*captured).hasOffers, func(n *captured) []Finding {
		offered := n.offered()
		missing, declared := map[string][]string{}, map[string]int{}
		inv := n.inventory()
		for i := range inv.Functions {
			for _, d := range inv.Functions[i].Devices {
				if !d.Healthy || len(offered[d.Resource]) == 0 || !n.byAddress(offered[d.Resource]) {
					continue
				}
				declared[d.Resource]++
				if !slices.Contains(offered[d.Resource], d.ID) {
					missing[d.Resource] = append(missing[d.Resource], d.ID)
				}
			}
		}
		var all []Finding
		for _, r := range inv.Resources {
			if ids := missing[r.Name]; len(ids) > 0 {
				f := n.found("kubelet of node %s offers %d of %q, and the host has %d that are well: %s is missing", n.name,
					len(offered[r.Name]), r.Name, declared[r.Name], few(ids))
				if len(ids) > 1 {
					f = n.found("kubelet of node %s offers %d of %q, and the host has %d that are well: %s are missing", n.name,
						len(offered[r.Name]), r.Name, declared[r.Name], few(ids))
				}
				all = append(all, f.about(r.Name).as(finding.Warning))
			}
		}
		return all
	})
}

// byAddress says whether devices are called by their PCI addresses, as those of our plugins are.
// Another plugin that advertises the name has names of its own.
func (n *captured) byAddress(ids []string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool { return pciAddress(id) == "" })
}
