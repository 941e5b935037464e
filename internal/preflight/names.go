package preflight

import (
	"fmt"
	"slices"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/nodestate"
	"kata-device-plugin/internal/nodeview"
)

// specs: beside what checks say of the files, each device that kubelet offers has to have a name in them. A
// claim has a spec of its own, which is written for its pod.
func specs(s *survey, w Way, v *verdict) {
	captureChecks("the CDI specs", "CDI001", "CDI002", "CDI004", "CDI005", "CDI006", "CDI008", "CDI009", "CDI011",
		"CDI012")(s, w, v)
	if w != DevicePlugin {
		return
	}
	for _, n := range s.captured {
		n.names(v)
	}
}

// names asks the join of which inventory shows the column CDI.
func (n *captured) names(v *verdict) {
	all, err := n.c.Allocatable()
	if err != nil {
		v.open(fmt.Sprintf("a new capture of node %s, with kubelet's answer which devices it offers", n.name))
		return
	}
	state, offered, resolved := n.joined(all), 0, 0
	missing, stale, unknown := []string{}, []string{}, []string{}
	for _, d := range all.Devices {
		if !slices.ContainsFunc(declare.Passthrough().Names(), func(name declare.Name) bool { return name.Resource == d.Resource }) {
			continue // its plugin may do without CDI
		}
		offered++
		switch name := d.Resource + "=" + d.ID; nameOf(state, d.Resource, d.ID) {
		case nodestate.CDIResolvable:
			resolved++
		case nodestate.CDIMissing:
			missing = append(missing, name)
		case nodestate.CDIStale:
			stale = append(stale, name)
		case "":
			unknown = append(unknown, name)
		}
	}
	no := func(names []string, why string) {
		if len(names) > 0 {
			v.no(n.found(finding.OfferedUnresolved(), "kubelet of node %s offers %s, %s", n.name, check.Few(names), why))
		}
	}
	no(missing, "which no CDI spec of the node defines")
	no(stale, "and the CDI spec that defines it has other device nodes than the device")
	switch {
	case len(unknown) > 0:
		v.open(fmt.Sprintf("a new capture of node %s, with its hardware and CDI specs: whether %s has a CDI name", n.name,
			check.Few(unknown)))
	case offered > 0 && resolved == offered:
		v.yes(fmt.Sprintf("the CDI specs of node %s define %s that kubelet offers", n.name, counted(offered, "device")))
	}
}

// joined is what the capture has of the node, put together.
func (n *captured) joined(offered *capture.Allocatable) *nodestate.State {
	kubelet := nodeview.Kubelet{Allocatable: offered.Devices}
	if pods, err := n.c.Pods(); err != nil {
		kubelet.PodsErr = err
	} else {
		kubelet.Pods = pods.Pods
	}
	return nodeview.Join(nodeview.Sources{Hardware: n.c.Tree().Source().Look(nil), Files: n.c.FS(), Dev: n.c.Dev(), Kubelet: kubelet})
}

// nameOf is what a device's CDI name comes to, "" where that is not known.
func nameOf(s *nodestate.State, resource, id string) nodestate.CDIState {
	for i := range s.Units {
		if u := &s.Units[i]; u.Resource == resource && u.ID == id {
			return u.CDI
		}
	}
	return ""
}
