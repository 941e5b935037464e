package preflight

import (
	"fmt"
	"slices"
	"strconv"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
)

// nodesReady: the scheduler puts no pod on a node that is not.
func nodesReady(s *survey, _ Way, v *verdict) {
	all, ready := s.hosts(), 0
	for _, h := range all {
		if h.object == nil {
			v.open("the object of node " + h.name)
			continue
		}
		said := false
		for c := range h.object.Object.Get("status", "conditions").Each() {
			if c.Get("type").Text() != "Ready" {
				continue
			}
			said = true
			if status := c.Get("status"); status.Text() != "True" {
				v.no(found(finding.NodeNotReady(), nodeRef(h.object), status, "node %s is not ready: its condition Ready is %s",
					h.name, status.Text()))
			} else {
				ready++
			}
		}
		if !said {
			v.open("the status of node " + h.name + ": whether it is ready")
		}
	}
	switch {
	case len(all) == 0:
		v.open("nodes with status")
	case ready > 0:
		v.yes(counted(ready, "node") + " that say so of themselves")
	}
}

// about says whether a finding is about an agent of a way, or about a pod of one.
func (s *survey) about(w Way) func(check.Finding) bool {
	is := func(a check.DeviceAgent) bool {
		_, own := ours(w)[a.Image]
		return own || w == DevicePlugin && a.Image != driverImage
	}
	return func(f check.Finding) bool {
		return slices.ContainsFunc(s.agents, func(a check.DeviceAgent) bool {
			return is(a) && (a.Ref == f.Object || s.owns(a.Ref, f.Object))
		})
	}
}

// owns says whether a pod is one of a DaemonSet.
func (s *survey) owns(of, pod check.Ref) bool {
	p := s.View.Pod(pod.Namespace, pod.Name)
	if pod.Kind != "Pod" || p == nil || of.Namespace != pod.Namespace {
		return false
	}
	for owner := range p.Meta.Get("ownerReferences").Each() {
		if owner.Get("kind").Text() == of.Kind && owner.Get("name").Text() == of.Name {
			return true
		}
	}
	return false
}

// outfit: the checks are made wherever there is an agent.
func outfit(s *survey, w Way, v *verdict) {
	s.eachAgent(w, v, func(check.DeviceAgent) {})
	s.whenMade(v, s.about(w), "DSP003", "DSP004", "DSP006", "DSP008", "DSP009", "DSP010", "DSP011")
}

// running: checks speak of plugins. What they do not say of one is asked of each agent.
func running(s *survey, w Way, v *verdict) {
	if w == DevicePlugin {
		s.whenMade(v, s.about(w), "DSP001", "DSP002", "DSP005")
	}
	said := slices.Clone(v.findings)
	s.eachAgent(w, v, func(a check.DeviceAgent) {
		if !slices.ContainsFunc(said, func(f check.Finding) bool { return f.Object == a.Ref }) {
			s.runs(a, v)
		}
	})
}

// runs compares an agent with the nodes of the input, and with what the cluster says of its pods.
func (s *survey) runs(a check.DeviceAgent, v *verdict) {
	nodes := s.linux()
	if len(nodes) == 0 {
		v.open("nodes with status")
		return
	}
	before, chosen := len(v.findings), 0
	for _, n := range nodes {
		taint := n.Untolerated(a.Spec)
		if taint != "" && hasDevices(s, n) {
			v.no(found(finding.AgentKeptAway(), a.Ref, a.Spec, "%s does not run on node %s, which has devices and the taint %s",
				a.Ref, n.Name, taint))
		}
		if taint != "" || n.RefusesDaemon(a.Spec) == "" {
			chosen++
		}
	}
	status := a.Object.Get("status")
	desired, ready := status.Get("desiredNumberScheduled"), count(status.Get("numberReady").Text())
	switch {
	case desired.Exists() && count(desired.Text()) > ready:
		v.no(found(finding.AgentNotRunning(), a.Ref, desired, "%d of the %s pods of %s are ready", ready, desired.Text(), a.Ref))
	case chosen == 0 && s.View.Complete("Node"):
		v.no(found(finding.AgentNotRunning(), a.Ref, a.Spec, "%s chooses no node of the input: node %s: %s", a.Ref, nodes[0].Name,
			nodes[0].RefusesDaemon(a.Spec)))
	case chosen == 0:
		v.open(fmt.Sprintf("nodes that %s chooses", a.Ref))
	case len(v.findings) == before:
		v.yes(fmt.Sprintf("%s chooses %s, and tolerates the taints there", a.Ref, counted(chosen, "node")))
	}
}

// count is a number of pods, 0 where a status does not have it: it leaves out what is 0.
func count(text string) int {
	n, _ := strconv.Atoi(text) // no number is no pod
	return n
}

// hasDevices: others may be tainted for whatever reason, as the control plane's are.
func hasDevices(s *survey, n *check.Node) bool {
	return len(n.Capacity) > 0 ||
		slices.ContainsFunc(s.View.Published(), func(d check.Published) bool { return d.Node == n.Name })
}
