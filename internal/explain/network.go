package explain

import (
	"slices"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// networkStatus is where Multus says what a pod got.
const networkStatus = "k8s.v1.cni.cncf.io/network-status"

// networked: the network plugin was told of the device.
func (r *resource) networked() Step {
	if f, ok := r.unattachable(); ok {
		return proven(f)
	}
	if len(r.networks) == 0 {
		for _, f := range r.View.Findings(finding.NetworkMissing().ID) { // a note: the network may be outside of the input
			if f.Object == r.pod.Ref() {
				return unknown("the NetworkAttachmentDefinitions of the cluster", "a network of the pod is not in the input").
					because(Evidence{Text: f.Message, Source: f.Place.String()})
			}
		}
		return Step{Verdict: NotNeeded, Says: "no network of the pod is tied to the resource"}
	}
	status := r.pod.Meta.Get("annotations", networkStatus)
	list, err := status.Embedded()
	if status.Text() == "" || err != nil {
		return r.attaching()
	}
	for _, n := range r.networks {
		name := n.Namespace + "/" + n.Name
		made := slices.ContainsFunc(slices.Collect(list.Each()), func(v manifest.Value) bool { return v.Get("name").Text() == name })
		if !made {
			return unknown("the pod as the cluster has it now", "the pod's network status does not have %s", name).
				because(seen(status, "%s", networkStatus))
		}
	}
	return yes("the pod has the interface").because(seen(status, "%s has it", networkStatus))
}

// attaching is what the events of a sandbox that is not made tell.
func (r *resource) attaching() Step {
	for _, h := range slices.Backward(r.events(r.pod.Ref(), "FailedCreatePodSandBox", "NoNetworkFound")) {
		if kind, help, known := r.View.Unattached(r.pod, h.message); known {
			return no(kind.ID, help, "the network could not be attached").because(h.evidence)
		}
	}
	return unknown("the pod's annotation "+networkStatus+", and its events", "nobody says whether the interface was made")
}

// unattachable is an error of a check about the list of networks of the pod, or about one that it attaches.
// For any of them the pod's sandbox is not made, or is made without the interface.
func (r *resource) unattachable() (check.Finding, bool) {
	objects := []check.Ref{r.pod.Ref()}
	for _, a := range r.pod.Attachments {
		objects = append(objects, check.Ref{Kind: "NetworkAttachmentDefinition", Namespace: a.Namespace, Name: a.Name})
	}
	kinds := []finding.Kind{finding.NetworksMalformed(), finding.NetworkMissing(), finding.NetworkConfigUnusable(),
		finding.NetworkWithoutResource()}
	if !compiled(r.name) {
		kinds = append(kinds, finding.AnnotationMisplaced()) // which the other devices of the pod do without
	}
	for _, k := range kinds {
		for _, f := range r.View.Findings(k.ID) {
			if f.Severity == finding.Error && slices.Contains(objects, f.Object) {
				return f, true
			}
		}
	}
	return check.Finding{}, false
}
