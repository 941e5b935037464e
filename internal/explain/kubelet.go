package explain

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/podresources"
)

// What the kubelets of captured nodes say.

// kubelets are the captured nodes whose kubelets speak of objects of the view.
func (e *explainer) kubelets() []Node {
	return slices.DeleteFunc(slices.Clone(e.Nodes), func(n Node) bool { return n.Capture == nil || n.Foreign })
}

// entry is one of the record of a node's kubelet.
type entry struct {
	capture.Given
	on Node
}

// given are the entries of kubelet's record for a pod and, unless it is "", a resource.
func (e *explainer) given(p *check.Workload, resource string) []entry {
	uid := p.Meta.Get("uid").Text()
	var all []entry
	for _, n := range e.kubelets() {
		record, err := n.Capture.Checkpoint()
		if err != nil || uid == "" {
			continue
		}
		for _, g := range record.Data.PodDeviceEntries {
			if g.PodUID == uid && (resource == "" || g.ResourceName == resource) {
				all = append(all, entry{g, n})
			}
		}
	}
	return all
}

// ids are the devices of an entry, each once.
func (g entry) ids() []string {
	var all []string
	for _, of := range g.DeviceIDs {
		all = append(all, of...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// names are the CDI names of an entry: those that the plugin answered with, and those that its devices have
// where its answer is not known.
func (g entry) names() []string {
	var all []string
	if g.Answer == nil {
		for _, id := range g.ids() {
			all = append(all, g.ResourceName+"="+id)
		}
		return all
	}
	all = append(all, g.Answer.CDI...)
	for _, key := range slices.Sorted(maps.Keys(g.Answer.Annotations)) {
		all = append(all, strings.Split(g.Answer.Annotations[key], ",")...)
	}
	return all
}

// words are entries as evidence.
func words(all []entry) []Evidence {
	var evidence []Evidence
	for _, g := range all {
		text := "kubelet's record: container " + g.ContainerName + " has " + abridged(g.ids())
		if g.Answer != nil && len(g.Answer.CDI) > 0 {
			text += " as " + abridged(g.Answer.CDI)
		}
		evidence = append(evidence, g.on.evidence("%s", text))
	}
	return evidence
}

// allocated: the plugin answered, and what it answered resolves. The checks of the node judge that.
func (r *resource) allocated() Step {
	s := r.resolved(r.pod, r.asks)
	if s.Verdict == No {
		return s
	}
	if f, ok := r.View.Proven(finding.DeviceMissing().ID, r.pod.Ref(), r.name); ok {
		return proven(f).because(s.Evidence...)
	}
	if broken, ok := r.unresolved(r.names()); ok {
		return broken.because(s.Evidence...)
	}
	if given := r.given(r.pod, r.name); len(given) > 0 {
		return yes("kubelet has an answer for the pod").because(append(words(given), s.Evidence...)...)
	}
	return s
}

// cdiName is one that a pod was given on a node.
type cdiName struct{ node, name string }

// unresolved is what the checks of captured nodes say of names that a pod was given there.
func (e *explainer) unresolved(names []cdiName) (Step, bool) {
	for _, of := range names {
		for _, f := range e.View.Unresolved(of.node, of.name) {
			return proven(f).because(Evidence{Text: "the pod has been given " + of.name}), true
		}
	}
	return Step{}, false
}

// names are the CDI names that the pod was given for the resource, by kubelet's record and word.
func (r *resource) names() []cdiName {
	var all []cdiName
	for _, g := range r.given(r.pod, r.name) {
		for _, name := range g.names() {
			all = append(all, cdiName{g.on.Name, name})
		}
	}
	for n, c := range r.told(r.pod) {
		for _, d := range c.Devices {
			if d.Resource == r.name {
				all = append(all, cdiName{n.Name, d.Resource + "=" + d.ID})
			}
		}
	}
	return all
}

// names are the CDI names that the pod has of the claim, by kubelet's word.
func (c *claim) names() []cdiName {
	var all []cdiName
	for n, of := range c.told(c.pod) {
		for _, has := range of.Claims {
			if has.Name != c.ref.Name {
				continue
			}
			for _, d := range has.Devices {
				for _, name := range d.CDI {
					all = append(all, cdiName{n.Name, name})
				}
			}
		}
	}
	return all
}

// told goes through the containers of a pod that kubelets of captured nodes name.
func (e *explainer) told(p *check.Workload) iter.Seq2[Node, podresources.Container] {
	return func(yield func(Node, podresources.Container) bool) {
		for _, n := range e.kubelets() {
			answer, err := n.Capture.Pods()
			if err != nil {
				continue
			}
			for _, of := range answer.Pods {
				if of.Namespace != p.Namespace || of.Name != p.Object.Name {
					continue
				}
				for _, c := range of.Containers {
					if !yield(n, c) {
						return
					}
				}
			}
		}
	}
}

// holds is what kubelet's PodResources of captured nodes says that a pod has.
func (e *explainer) holds(p *check.Workload) []Evidence {
	var all []Evidence
	for n, c := range e.told(p) {
		for _, d := range c.Devices {
			all = append(all, n.evidence("PodResources: container %s has %s of %s", c.Name, d.ID, d.Resource))
		}
		for _, claim := range c.Claims {
			for _, d := range claim.Devices {
				all = append(all, n.evidence("PodResources: container %s has %s of claim %s", c.Name, d.Device, claim.Name))
			}
		}
	}
	return all
}
