package check

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"kata-device-plugin/internal/manifest"
)

// supply is where pods get devices of a name: from a plugin on nodes that have some allocatable, and
// elsewhere from claims of the device class that stands for the name. The scheduler decides node by
// node, and never mixes the two.
type supply struct {
	name  string
	nodes []*Node
	// class is the device class that stands for the name, nil for none.
	class *manifest.Object
	// claims are the devices that claims of the class may have, by the name of their node.
	claims map[string]*onNode
	// fullest is the node that has the most, nil where none has any.
	fullest *Node
	// known is false where it is not known which devices the class has, or where they are: then of nothing
	// that it lacks anything can be said.
	known bool
	// unasked: that is so since there are too many selectors.
	unasked bool
	offers  []Offer
}

// onNode is what a device class has on a node.
type onNode struct {
	slice      *manifest.Object
	most, free int64
	held       []Allotted
}

// supplyOf is made once for a name: many pods ask for it.
func (w *World) supplyOf(name string) *supply {
	s := w.supplies[name]
	if s == nil {
		s = w.findSupply(name)
		w.supplies[name] = s
	}
	if s.unasked {
		w.evaluator().gaveUp = true // whoever asks is to hear of it
	}
	return s
}

func (w *World) findSupply(name string) *supply {
	s := &supply{name: name, nodes: slices.Clone(w.names.nodes[name]), claims: map[string]*onNode{}, known: true}
	if classes, sure := w.classesOf(name); len(classes) > 0 {
		s.class, s.known = classes[0], sure || len(classes) == 1
		w.addClaims(s)
	}
	for _, n := range s.nodes {
		if s.fullest == nil || s.most(n) > s.most(s.fullest) {
			s.fullest = n
		}
	}
	return s
}

// addClaims adds the devices that the class has.
func (w *World) addClaims(s *supply) {
	m, err := w.Matching(s.class.Get("spec", "selectors"))
	if err != nil {
		s.known, s.unasked = false, errors.Is(err, errTooMany)
		return
	}
	held := map[DeviceName][]Allotted{}
	for _, a := range w.allotted() {
		held[a.DeviceName] = append(held[a.DeviceName], a)
	}
	for p := range m.Taken() {
		node := w.nodeOf[p.Node]
		if p.Node == "" || p.Device.Get("allowMultipleAllocations").Text() == "true" {
			s.known = false // how many it stands for on which node is the scheduler's to reckon
			continue
		}
		if node != nil && node.Allocatable[s.name] == 0 {
			s.add(p, node, held[p.DeviceName])
		}
	}
}

// add counts a device of a claim. One with a taint is counted as well: what it keeps away is no pod's fault.
func (s *supply) add(p Published, node *Node, held []Allotted) {
	on := s.claims[p.Node]
	if on == nil {
		on = &onNode{slice: p.Slice}
		s.claims[p.Node] = on
		if !slices.Contains(s.nodes, node) {
			s.nodes = append(s.nodes, node)
		}
	}
	on.most++
	for _, a := range held {
		if !a.Shared {
			on.held = append(on.held, a)
			return
		}
	}
	on.free++
}

// most is how many devices of the name a node has when all are healthy.
func (s *supply) most(n *Node) int64 {
	if c := s.claims[n.Name]; c != nil {
		return max(c.most, n.most(s.name))
	}
	return n.most(s.name)
}

// at is where a node's number stands.
func (s *supply) at(n *Node) manifest.Place {
	if c := s.claims[n.Name]; c != nil && c.most >= n.most(s.name) {
		return c.slice.Get("spec").Place()
	}
	return n.key(s.name).KeyPlace()
}

// classesOf are the device classes that stand for a name, the one that is used first. They are sure to
// be in that order when it is known when each was made.
func (w *World) classesOf(name string) (classes []*manifest.Object, sure bool) {
	if of, ok := strings.CutPrefix(name, implicitClass); ok {
		if c := w.class(of); c != nil {
			classes = append(classes, c)
		}
		return classes, true
	}
	for _, o := range w.kinds["DeviceClass"] {
		if o.Get("spec", "extendedResourceName").Text() == name && name != "" {
			classes = append(classes, o)
		}
	}
	made := func(o *manifest.Object) string { return o.Get("metadata", "creationTimestamp").Text() }
	slices.SortFunc(classes, func(a, b *manifest.Object) int {
		return cmp.Or(strings.Compare(made(b), made(a)), strings.Compare(a.Name, b.Name))
	})
	return classes, !slices.ContainsFunc(classes, func(o *manifest.Object) bool { return made(o) == "" })
}

// mayStand says whether a device class that the input lacks may stand for a name that a pod asks for. Before 1.34
// none does, and on a node with a plugin that has some it does not matter. The scheduler finds a resource insufficient where no class stands for it, or on nodes on which none
// matters (pkg/scheduler/framework/plugins/noderesources/fit.go, shouldDelegateResourceToDRA).
func (w *World) mayStand(p *Workload, name string) bool {
	const since = 34
	says := w.unschedulable(p).Text()
	if insufficient(says, name) && !strings.Contains(says, "cannot allocate all claims") {
		return false
	}
	return !w.complete("DeviceClass") && (len(w.nodes) == 0 || slices.ContainsFunc(w.nodes, func(n *Node) bool {
		minor, known := minorOf(n.Object.Get("status", "nodeInfo", "kubeletVersion").Text())
		return n.Allocatable[name] == 0 && (!known || minor >= since)
	}))
}

// claimed says whether the scheduler has looked for claims for a pod that lists none: then a device class that the
// input lacks stands for a name that the pod wants, and perhaps for this one.
func (w *World) claimed(p *Workload, name string) bool {
	says := w.unschedulable(p).Text()
	return strings.Contains(says, "cannot allocate all claims") && !insufficient(says, name) &&
		p.Spec.Get("resourceClaims").Len() == 0 && !w.complete("DeviceClass")
}

// insufficient says whether a message of the scheduler has too little of a resource for a reason, and not of another
// one whose name begins as that does.
func insufficient(message, name string) bool {
	for _, reason := range strings.Split(message, "Insufficient ")[1:] {
		if rest, is := strings.CutPrefix(reason, name); is && (rest == "" || rest == "." || rest[0] == ',' || strings.HasPrefix(rest, ". ")) {
			return true
		}
	}
	return false
}

// classNames are the extended resources that device classes stand for, sorted.
func (w *World) classNames() []string {
	all := map[string]bool{}
	for _, o := range w.kinds["DeviceClass"] {
		if name := o.Get("spec", "extendedResourceName").Text(); name != "" {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
