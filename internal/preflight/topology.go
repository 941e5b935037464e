package preflight

import (
	"fmt"
	"slices"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
)

// topologyPolicy has what kubelet is told, beside what checks say. It is about device plugins alone: the
// manager of claims gives the topology manager no hints (pkg/kubelet/cm/container_manager_linux.go of
// 1.37), and claims are aligned by their own constraints.
func topologyPolicy(s *survey, w Way, v *verdict) {
	checks("TOP001", "TOP002", "TOP003", "TOP005", "TOP007")(s, w, v)
	s.eachKubelet(v, func(n *captured) {
		k := n.kubelet
		where := fmt.Sprintf("%s of node %s", k.File, n.name)
		refused := func(setting, value, words string) {
			v.no(n.found(finding.SettingsUnreadable(), "%s: %s is %q: write %s, kubelet does not start with it",
				where, setting, value, words))
		}
		nodes := n.numaNodes()
		switch {
		case !slices.Contains([]string{"none", "best-effort", "restricted", "single-numa-node"}, k.Policy):
			refused("topologyManagerPolicy", k.Policy, "none, best-effort, restricted or single-numa-node")
		case k.Scope != "container" && k.Scope != "pod":
			refused("topologyManagerScope", k.Scope, "container or pod")
		case k.Policy != "none":
			v.yes(fmt.Sprintf("%s: the policy is %s, for each %s, and for up to %d NUMA nodes",
				where, k.Policy, k.Scope, k.MaxNUMANodes))
		case nodes == 0:
			v.open(fmt.Sprintf("on how many NUMA nodes node %s has hardware: by %s its kubelet aligns nothing", n.name, k.File))
		case nodes == 1:
			v.yes(fmt.Sprintf("%s: the policy is none, and all hardware is on one NUMA node", where))
		default:
			v.no(n.found(finding.NotAligned(),
				"%s: the policy of the topology manager is none, and there is hardware on %d NUMA nodes", where, nodes))
		}
	})
}

// numaNodes is on how many NUMA nodes there are PCI functions, 0 where the capture does not tell of all.
func (n *captured) numaNodes() int {
	snapshot, on := n.c.Tree().Source().Look(nil), map[host.Node]bool{}
	for i := range snapshot.Functions {
		on[snapshot.Functions[i].NUMA] = true
	}
	if len(snapshot.Unread) > 0 || on[host.NoNode] {
		return 0
	}
	return len(on)
}
