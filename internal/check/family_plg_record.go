package check

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/finding"
)

func recordUnreadable(w *World) []Finding {
	return w.onNodes((*captured).hasRecordAsked, func(n *captured) []Finding {
		if n.recordErr == nil || errors.Is(n.recordErr, fs.ErrNotExist) {
			return nil
		}
		return []Finding{n.found("%s of node %s cannot be read: %s", capture.CheckpointPath, n.name, cause(n.recordErr))}
	})
}

// recordStale wants to know all pods of the cluster: one that is not in the input may be there.
func recordStale(w *World) []Finding {
	has := func(n *captured) bool { return n.hasRecord() && n.hasNames() }
	uids := map[string]bool{}
	for _, p := range w.workloads {
		if p.holds() {
			uids[p.Meta.Get("uid").Text()] = true
			// A static pod has two UIDs: kubelet's own is the hash of its configuration.
			uids[p.Meta.Get("annotations", "kubernetes.io/config.hash").Text()] = true
		}
	}
	return w.onNodes(has, func(n *captured) []Finding {
		var all []Finding
		for _, g := range n.record.Data.PodDeviceEntries {
			if g.PodUID == "" || uids[g.PodUID] {
				continue
			}
			f := n.found("kubelet's record on node %s has %s of %s for container %s of a pod with UID %s, "+
				"which is not there", n.name,
				few(idsOf(g)), g.ResourceName, g.ContainerName, g.PodUID).about(g.ResourceName)
			if n.exhausted(g.ResourceName) {
				f = f.as(finding.Warning).because("no device of %s is free", g.ResourceName)
			}
			all = append(all, f)
		}
		return all
	})
}

// exhausted says whether the record has every healthy device of a resource with some container.
func (n *captured) exhausted(resource string) bool {
	held := map[string]bool{}
	for _, g := range n.record.Data.PodDeviceEntries {
		if g.ResourceName == resource {
			for _, id := range idsOf(g) {
				held[id] = true
			}
		}
	}
	return !slices.ContainsFunc(n.record.Data.RegisteredDevices[resource], func(id string) bool { return !held[id] })
}

// idsOf are the devices of an entry, each once: one that is on two NUMA nodes is there twice.
func idsOf(g capture.Given) []string {
	var all []string
	for _, ids := range g.DeviceIDs {
		all = append(all, ids...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// heldUnhealthy: kubelet offers healthy devices only.
func heldUnhealthy(w *World) []Finding {
	has := func(n *captured) bool { return n.hasHolders() && n.hasAllocatable() }
	return w.onNodes(has, func(n *captured) []Finding {
		var all []Finding
		for _, p := range n.pods.Pods {
			for _, c := range p.Containers {
				for _, d := range c.Devices {
					if !slices.Contains(n.allocatable.Devices, d) {
						all = append(all, n.found("container %s of pod %s/%s on node %s has %s of %s, "+
							"which is not among the healthy devices", c.Name,
							p.Namespace, p.Name, n.name, d.ID, d.Resource).about(d.Resource))
					}
				}
			}
		}
		return all
	})
}

// physical says whether an ID is a device's own, and no number of a share or of a counter.
func physical(id string) bool {
	return pciAddress(id) != "" || strings.HasPrefix(id, "GPU-") && !strings.Contains(id, "::")
}
