package check

import (
	"strings"

	"kata-device-plugin/internal/manifest"
)

// Workload is a pod, or what pods are made from.
type Workload struct {
	Object     *manifest.Object
	Meta, Spec manifest.Value
	Namespace  string
	// Live: a pod that a cluster has had. What was to be added to it has been.
	Live bool
	// Template: pods are made from it, and may be changed when they are created.
	Template bool
	// VM: KubeVirt makes the pod, and its requests.
	VM         bool
	Containers []Container
	// Attachments are the networks that its annotations ask for, Malformed what cannot be read.
	Attachments []Attachment
	Malformed   []manifest.Problem

	wants map[string]*Want // by name
	order []string
}

// Container is one container of a workload.
type Container struct {
	manifest.Value
	Name     string
	Init     bool // it ends before the others begin
	Requests []Amount
	Limits   []Amount
}

// Amount is an entry of requests or limits that is about a device.
type Amount struct {
	manifest.Value
	Name string
	quantity
}

// Want is what a workload asks for of one name.
type Want struct {
	Name string
	// At is the first entry with the name.
	At manifest.Value
	// Count is what its containers have together. Of containers that run one after another
	// the largest number counts.
	Count int64
	// InitOnly: no container that stays asks for it.
	InitOnly bool

	stay int64 // what the containers so far that stay have together
}

// Wants lists what the workload asks for, in the order of the text.
func (w *Workload) Wants() []*Want {
	var all []*Want
	for _, name := range w.order {
		all = append(all, w.wants[name])
	}
	return all
}

// ByClaim says whether the scheduler has given a pod what it wants of a name by a claim that it made: no
// device plugin is asked for it, and no node's status counts it.
func (w *Workload) ByClaim(name string) bool {
	for m := range w.Object.Get("status", "extendedResourceClaimStatus", "requestMappings").Each() {
		if m.Get("resourceName").Text() == name {
			return true
		}
	}
	return false
}

// want is what it asks for of a name, or nil.
func (w *Workload) want(name string) *Want { return w.wants[name] }

// Ref is the workload's object.
func (w *Workload) ref() Ref { return Ref{w.Object.Kind, w.Namespace, w.Object.Name} }

// Phase is the phase of a pod.
func (w *Workload) phase() string { return w.Object.Get("status", "phase").Text() }

// holds says whether a pod may have devices: one that has ended has given them back.
func (w *Workload) holds() bool {
	return w.Live && w.phase() != "Succeeded" && w.phase() != "Failed"
}

func (w *Workload) node() string { return w.Spec.Get("nodeName").Text() }

// pending says whether a pod waits for the scheduler.
func (w *Workload) pending() bool { return w.holds() && w.node() == "" }

// workloads finds the pods and templates of an object.
func workloads(o *manifest.Object, namespace string) []*Workload {
	if o.Namespace != "" {
		namespace = o.Namespace
	}
	base := Workload{Object: o, Namespace: namespace}
	switch o.Kind {
	case "Pod":
		base.Meta, base.Spec, base.Live = o.Get("metadata"), o.Get("spec"), o.FromCluster
		return []*Workload{base.read()}
	case "VirtualMachine":
		base.Meta, base.Spec, base.VM = o.Get("spec", "template", "metadata"), o.Get("spec", "template", "spec"), true
		return []*Workload{base.readVM()}
	case "VirtualMachineInstance":
		base.Meta, base.Spec, base.VM = o.Get("metadata"), o.Get("spec"), true
		return []*Workload{base.readVM()}
	case "ConfigMap", "Node", "Event", "CustomResourceDefinition", networkKind:
		return nil
	case "ControllerRevision":
		return nil // what a DaemonSet or a StatefulSet has been, too
	case "ReplicaSet":
		if o.FromCluster && o.Get("spec", "replicas").Text() == "0" && o.Get("metadata", "ownerReferences").Len() > 0 {
			return nil // what a Deployment has been
		}
	case "Job":
		if ended(o) {
			return nil // its pods were made, and there will be no more
		}
	}
	var all []*Workload
	base.Template = true
	templates(o.Value, 0, func(t manifest.Value) {
		one := base
		one.Meta, one.Spec = t.Get("metadata"), t.Get("spec")
		all = append(all, one.read())
	})
	return all
}

// ended says whether a Job has come to its end.
func ended(job *manifest.Object) bool {
	for c := range job.Get("status", "conditions").Each() {
		if kind := c.Get("type").Text(); (kind == "Complete" || kind == "Failed") && c.Get("status").Text() == "True" {
			return true
		}
	}
	return false
}

// templates finds templates of pods wherever a kind has them: CronJob, JobSet and the kinds of
// training operators each have a place of their own.
func templates(v manifest.Value, depth int, found func(manifest.Value)) {
	const deepest = 8
	if depth > deepest {
		return
	}
	for e := range v.Entries() {
		switch {
		case e.Key() == "status" || e.Key() == "metadata":
		case e.Kind() == manifest.Map && e.Get("spec", "containers").Kind() == manifest.List:
			found(e)
		case e.Kind() == manifest.Map:
			templates(e, depth+1, found)
		case e.Kind() == manifest.List:
			for item := range e.Each() {
				templates(item, depth+1, found)
			}
		}
	}
}

func (w Workload) read() *Workload {
	w.wants = map[string]*Want{}
	for c := range w.Spec.Get("initContainers").Each() {
		w.container(c, c.Get("restartPolicy").Text() != "Always")
	}
	for c := range w.Spec.Get("containers").Each() {
		w.container(c, false)
	}
	w.networks()
	return &w
}

func (w *Workload) container(v manifest.Value, init bool) {
	c := Container{Value: v, Name: v.Get("name").Text(), Init: init}
	resources := v.Get("resources")
	c.Requests, c.Limits = amounts(resources.Get("requests")), amounts(resources.Get("limits"))
	w.Containers = append(w.Containers, c)
	seen := map[string]bool{}
	for _, list := range [][]Amount{c.Limits, c.Requests} {
		for _, a := range list {
			if !seen[a.Name] {
				seen[a.Name] = true
				n, _ := a.whole()
				w.add(a.Name, a.Value, n, init)
			}
		}
	}
}

// add reckons as the scheduler does. A container that ends has its devices beside those that have begun
// before it and stay, which are the init containers that are restarted.
func (w *Workload) add(name string, at manifest.Value, count int64, init bool) {
	have := w.wants[name]
	if have == nil {
		have = &Want{Name: name, At: at, InitOnly: true}
		w.wants[name] = have
		w.order = append(w.order, name)
	}
	have.InitOnly = have.InitOnly && init
	if !init {
		have.stay += count
		count = 0
	}
	have.Count = max(have.Count, have.stay+count)
}

func amounts(v manifest.Value) []Amount {
	var all []Amount
	for e := range v.Entries() {
		if isDevice(e.Key()) {
			all = append(all, Amount{e, e.Key(), parseQuantity(e.Text())})
		}
	}
	return all
}

// readVM reads what KubeVirt will request for a virtual machine.
func (w Workload) readVM() *Workload {
	w.wants = map[string]*Want{}
	devices := w.Spec.Get("domain", "devices")
	for _, list := range []string{"hostDevices", "gpus"} {
		for d := range devices.Get(list).Each() {
			if name := d.Get("deviceName"); name.Text() != "" {
				w.add(name.Text(), name, 1, false)
			}
		}
	}
	for n := range w.Spec.Get("networks").Each() {
		if name := n.Get("multus", "networkName"); name.Text() != "" {
			namespace, bare := w.Namespace, name.Text()
			if ns, rest, ok := strings.Cut(bare, "/"); ok {
				namespace, bare = ns, rest
			}
			w.Attachments = append(w.Attachments, Attachment{Namespace: namespace, Name: bare, At: name})
		}
	}
	return &w
}
