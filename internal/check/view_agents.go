package check

import (
	"slices"

	"kata-device-plugin/internal/manifest"
)

// DeviceAgent is a container of a workload that offers devices to kubelet.
type DeviceAgent struct {
	Ref    Ref
	Object *manifest.Object
	// Image is the image's name without registry and tag.
	Image string
	// Spec is that of the pods, Container what runs in them.
	Spec, Container manifest.Value
}

// Flag is the value of a flag of the agent, "" where it is not given.
func (a DeviceAgent) Flag(name string) (string, manifest.Value) { return flag(a.Container, name) }

// DeviceAgents are the workloads with a device plugin or a DRA driver, or what looks at devices.
func (v *View) DeviceAgents() []DeviceAgent {
	var all []DeviceAgent
	for _, a := range v.deviceAgents() {
		all = append(all, DeviceAgent{Ref: a.ref(), Object: a.Object, Image: imageName(a.Agent.Container.Get("image").Text()),
			Spec: a.Spec, Container: a.Agent.Container})
	}
	return all
}

// Workloads are the pods of the input, and what pods are made from.
func (v *View) Workloads() []*Workload { return slices.Clone(v.workloads) }

// AllObjects are the objects of the input, without what was loaded twice.
func (v *View) AllObjects() []*manifest.Object { return slices.Clone(v.World.objects) }

// Accepted says who accepts a finding about an object of the input, "" when nobody does.
func (v *View) Accepted(f Finding) string { return v.ignored(f) }

// Address is the PCI address that an ID of a device is, "" where it is none.
func Address(id string) string { return pciAddress(id) }

// Minor is the minor version of Kubernetes 1, such as 34 of v1.34.4, and false for what is none.
func Minor(version string) (int, bool) { return minorOf(version) }

// Untolerated is the taint that keeps pods of a DaemonSet from a node that its selectors choose, ""
// for none.
func (n *Node) Untolerated(spec manifest.Value) string {
	t, tainted := n.daemonTaint(spec)
	if !tainted || n.deselected(spec) != "" {
		return ""
	}
	return t.String()
}

// Selects says whether a selector of labels chooses an object with labels. An empty one chooses all.
func Selects(selector, labels manifest.Value) bool {
	for want := range selector.Get("matchLabels").Entries() {
		if have := labels.Get(want.Key()); !have.Exists() || have.Text() != want.Text() {
			return false
		}
	}
	for e := range selector.Get("matchExpressions").Each() {
		if !satisfies(e.Get("operator").Text(), e.Get("values").Texts(), labels.Get(e.Get("key").Text())) {
			return false
		}
	}
	return true
}

// Few is a list for people, not longer than they want to read.
func Few(names []string) string { return few(names) }
