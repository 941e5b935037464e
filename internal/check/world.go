package check

import (
	"slices"

	"kata-device-plugin/internal/manifest"
)

// World is the loaded set with what all checks look things up in.
type World struct {
	set *manifest.Set
	o   Options

	objects    []*manifest.Object // without what was loaded twice
	kinds      map[string][]*manifest.Object
	workloads  []*Workload
	networks   map[string]*Network // by namespace/name
	ordered    []*Network
	configs    []*Config
	agents     []*Agent
	nodes      []*Node
	nodeOf     map[string]*Node
	podsOn     map[string][]*Workload // live pods that have not ended, by node
	owned      map[Ref][]*Workload    // those that an object made
	events     map[Ref][]*manifest.Object
	injector   *Injector
	operator   operator
	names      *Names
	supplies   map[string]*supply // of names, made when somebody asks
	slices     []*slice
	slicePools []*slicePool
	poolOf     map[poolKey]*slicePool
	published  []Published // of the newest generations
	matcher    *matcher
	podOf      map[Ref]*Workload
	claimOf    map[Ref]*manifest.Object // claims and templates
	captured   []*captured
	outdated   []*captured     // those that a newer capture takes the place of
	uses       []use           // of names, by pods, machines and networks
	agreed     map[string]bool // names that a pod and a network have alike
	accepted   map[Ref][]string
	lacksNodes bool // the list of nodes is not of all of them
}

func newWorld(set *manifest.Set, o Options) *World {
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	w := &World{
		set: set, o: o, kinds: map[string][]*manifest.Object{}, networks: map[string]*Network{},
		nodeOf: map[string]*Node{}, podsOn: map[string][]*Workload{}, owned: map[Ref][]*Workload{},
		events: map[Ref][]*manifest.Object{}, podOf: map[Ref]*Workload{}, claimOf: map[Ref]*manifest.Object{},
		supplies: map[string]*supply{},
	}
	w.sortObjects()
	w.injector, w.operator = w.findInjector(), w.findOperator()
	for _, object := range w.objects {
		if n := w.networkOf(object); n != nil {
			w.addNetwork(n)
		}
		if !w.isMade(object) {
			w.workloads = append(w.workloads, workloads(object, o.Namespace)...)
		}
	}
	for _, object := range w.kinds["Node"] {
		n := newNode(object)
		w.nodes = append(w.nodes, n)
		w.nodeOf[n.Name] = n
	}
	for _, object := range w.kinds["ResourceSlice"] {
		w.slices = append(w.slices, newSlice(object))
	}
	w.lacksNodes = w.findLacking()
	w.slicePools, w.poolOf = findPools(w.slices)
	w.published = w.findPublished()
	w.claims(func(o *manifest.Object) { w.claimOf[w.ref(o)] = o })
	w.matchCaptured(findCaptured(o.Nodes))
	w.indexPods()
	w.indexEvents()
	w.agents = w.findAgents()
	w.configs = w.findConfigs()
	for _, n := range w.captured {
		n.nics = w.nicRules(n)
	}
	w.names = w.resolve()
	w.uses = w.findUses()
	w.agreed = agreement(w.uses)
	w.accepted = w.findAccepted()
	return w
}

// sortObjects sorts the objects by kind. What comes from a cluster is there once: a must-gather
// has pods in lists and in files of their own.
func (w *World) sortObjects() {
	seen := map[[2]any]bool{}
	for _, o := range w.set.Objects {
		key := [2]any{o.Group(), w.ref(o)}
		if o.FromCluster && seen[key] {
			continue
		}
		seen[key] = seen[key] || o.FromCluster
		w.objects = append(w.objects, o)
		w.kinds[o.Kind] = append(w.kinds[o.Kind], o)
	}
}

// indexPods sorts the live pods by their nodes and their owners.
func (w *World) indexPods() {
	for _, p := range w.workloads {
		if p.Live {
			w.podOf[p.ref()] = p
		}
		if !p.holds() {
			continue
		}
		if node := p.node(); node != "" {
			w.podsOn[node] = append(w.podsOn[node], p)
		}
		for owner := range p.Meta.Get("ownerReferences").Each() {
			ref := Ref{owner.Get("kind").Text(), p.Namespace, owner.Get("name").Text()}
			w.owned[ref] = append(w.owned[ref], p)
		}
	}
}

// addNetwork keeps one network of a name: what a person wrote before what an operator will make.
func (w *World) addNetwork(n *Network) {
	key := n.Namespace + "/" + n.Name
	if have := w.networks[key]; have != nil && n.Generated {
		return
	}
	if n.Resource != "" || !n.Generated {
		w.ordered = append(w.ordered, n)
	}
	w.networks[key] = n
}

// isMade says whether an object is made from another one of the input, which has the same
// templates. Pods are looked at all the same: they show what became of the template.
func (w *World) isMade(o *manifest.Object) bool {
	if o.Kind != "ReplicaSet" && o.Kind != "Job" {
		return false
	}
	for owner := range o.Get("metadata", "ownerReferences").Each() {
		for _, other := range w.kinds[owner.Get("kind").Text()] {
			if other.Name == owner.Get("name").Text() && w.namespace(other) == w.namespace(o) {
				return true
			}
		}
	}
	return false
}

// clusterWide are kinds without a namespace.
func clusterWide(kind string) bool {
	return slices.Contains([]string{
		"Node", "DeviceClass", "ResourceSlice", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "Namespace",
		"ClusterPolicy", "NicClusterPolicy", "KubeSchedulerConfiguration", "HostDeviceNetwork", "MacvlanNetwork",
		"IPoIBNetwork", "ClusterRole", "ClusterRoleBinding", "DeviceTaintRule", "RuntimeClass", "ValidatingAdmissionPolicy",
		"ValidatingAdmissionPolicyBinding", "ConstraintTemplate", "ClusterQueue", "ResourceFlavor", "Cohort",
	}, kind)
}

// TakesNamespace says whether an object is in a namespace and names none. What a cluster has printed, which has
// given it a UID, names its namespace if it has one, whatever kind it is.
func TakesNamespace(o *manifest.Object) bool {
	return o.Namespace == "" && !clusterWide(o.Kind) && o.Get("metadata", "uid").Text() == ""
}

// namespace is that of an object, the default one when it names none.
func (w *World) namespace(o *manifest.Object) string {
	if TakesNamespace(o) {
		return w.o.Namespace
	}
	return o.Namespace
}

func (w *World) ref(o *manifest.Object) Ref { return Ref{o.Kind, w.namespace(o), o.Name} }

// closed says whether nothing that may advertise a name is outside of the input. Otherwise a
// name that is not seen may still be there.
func (w *World) closed() bool { return w.complete("Node") && w.complete("ConfigMap") }
