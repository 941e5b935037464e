package check

import (
	"fmt"
	"slices"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// reason is a fragment of what kubelet says when it refuses a pod, and what it means.
type reason struct{ fragment, meaning string }

// reasons are in the order in which kubelet tests.
func reasons() []reason {
	return []reason{
		{"changed request for resource", "the pod's request is not the one that was recorded for it"},
		{"cannot allocate unregistered device", "no plugin has registered the resource since kubelet has kept its " +
			"record: the pod came before the plugin did"},
		{"no healthy devices present", "the plugin is registered and none of its devices is healthy, or it has just left"},
		{"previously allocated devices are no longer healthy",
			"a device that the pod had is gone or has another ID now: after a reboot or a restart of kubelet pods are " +
				"admitted anew"},
		{"requested number of devices unavailable",
			"other pods have the devices: the scheduler and kubelet disagreed, or the pod passed the scheduler by"},
		{"unknown Device Plugin", "the plugin left while the pod was being admitted"},
		{"no containers return in allocation response", "the plugin answered without a container: it is a fault of the plugin"},
		{"GetPreferredAllocation rpc failed", "the plugin offers to choose devices, and that call did not work"},
		{"Resources cannot be allocated with Topology locality",
			"no NUMA node has enough free devices for the node's topology policy"},
		{"Allocate failed due to", "the plugin itself refused, with the words that follow"},
	}
}

// Refused says whether the reason and the message of a pod that has failed are those of kubelet's admission.
func Refused(reason, message string) bool {
	return strings.HasPrefix(reason, "OutOf") || strings.HasPrefix(message, "Pod was rejected") ||
		slices.Contains([]string{"UnexpectedAdmissionError", "TopologyAffinityError"}, reason)
}

func rejected(w *World) []Finding {
	var all []Finding
	for _, p := range w.workloads {
		status := p.Object.Get("status")
		why := status.Get("reason")
		if !p.Live || p.phase() != "Failed" || !Refused(why.Text(), status.Get("message").Text()) {
			continue
		}
		message := status.Get("message").Text()
		f := found(p.ref(), why, "%s was refused by kubelet: %s", p.ref(), why.Text())
		for _, r := range reasons() {
			if strings.Contains(message, r.fragment) {
				f.Message += ": " + r.meaning
				break
			}
		}
		if message != "" {
			f = f.because("its message is %q", message)
		}
		all = append(all, f)
	}
	return all
}

func unhealthyInPod(w *World) []Finding {
	var all []Finding
	for _, p := range w.workloads {
		if !p.holds() {
			continue
		}
		for c := range p.Object.Get("status", "containerStatuses").Each() {
			for r := range c.Get("allocatedResourcesStatus").Each() {
				for d := range r.Get("resources").Each() {
					if health := d.Get("health"); health.Text() == "Unhealthy" {
						all = append(all, found(p.ref(), health,
							"container %s of %s has the device %s of %s, which is Unhealthy",
							c.Get("name").Text(), p.ref(), d.Get("resourceID").Text(),
							r.Get("name").Text()).about(r.Get("name").Text()))
					}
				}
			}
		}
	}
	return all
}

// waitsForScheduler repeats what the scheduler says, which is about numbers of nodes, with
// their names as far as the input has them.
func waitsForScheduler(w *World) []Finding {
	var all []Finding
	for _, p := range w.workloads {
		if !p.pending() || len(p.Wants()) == 0 {
			continue
		}
		message := w.unschedulable(p)
		if message.Text() == "" {
			continue
		}
		f := found(p.ref(), message, "%s waits for the scheduler: %s", p.ref(), oneLine(message))
		for _, want := range p.Wants() {
			if len(w.nodes) > 0 {
				f = f.because("%s: %s", want.Name, w.whereIs(want))
			}
		}
		all = append(all, f)
	}
	return all
}

// unschedulable is the scheduler's message about a pod: in its status, or else in an event.
func (w *World) unschedulable(p *Workload) manifest.Value {
	for c := range p.Object.Get("status", "conditions").Each() {
		if c.Get("type").Text() == "PodScheduled" && c.Get("status").Text() == "False" && c.Get("message").Text() != "" {
			return c.Get("message")
		}
	}
	return w.saying(p, "FailedScheduling")
}

// whereIs says on which nodes a pod would find what it wants.
func (w *World) whereIs(want *Want) string {
	const shown = 3
	var parts []string
	s := w.supplyOf(want.Name)
	for _, n := range s.nodes {
		if len(parts) == shown {
			parts = append(parts, fmt.Sprintf("and %d more", len(s.nodes)-shown))
			break
		}
		if c := s.claims[n.Name]; c != nil {
			parts = append(parts, fmt.Sprintf("%s has %d for claims of %s, %d without one", n.Name, c.most, w.ref(s.class), c.free))
			continue
		}
		parts = append(parts, fmt.Sprintf("%s has %d allocatable, %d requested", n.Name, n.Allocatable[want.Name],
			w.requested(n, want.Name)))
	}
	zeros := w.names.zeros[want.Name]
	switch {
	case len(parts) == 0 && len(zeros) > 0:
		return fmt.Sprintf("%s has the key with 0: it was advertised there, and is not now", zeros[0].Name)
	case len(parts) == 0:
		return "no node of the input has it"
	}
	return strings.Join(parts, "; ")
}

// requested is what the live pods of a node have of a name from a plugin.
func (w *World) requested(n *Node, name string) int64 {
	var sum int64
	for _, p := range w.podsOn[n.Name] {
		if want := p.want(name); want != nil && !p.ByClaim(name) {
			sum += want.Count
		}
	}
	return sum
}

// unscheduled goes through what waits for a node: pods that are pending, and templates. Pods
// of a DaemonSet are each bound to a node of their own.
func (w *World) unscheduled(do func(*Workload, *Want, *supply)) {
	for _, p := range w.workloads {
		given := p.Object.Get("status", "extendedResourceClaimStatus").Exists()
		if p.VM || given || p.Live && !p.pending() || p.Object.Kind == "DaemonSet" || p.node() != "" {
			continue
		}
		for _, want := range p.Wants() {
			if s := w.supplyOf(want.Name); len(s.nodes) > 0 && s.known && want.Count > 0 {
				do(p, want, s)
			}
		}
	}
}

// nodesExcluded: the scheduler's message has numbers of nodes for each reason, and does not say
// that the ones with the device are among the excluded.
func nodesExcluded(w *World) []Finding {
	var all []Finding
	w.unscheduled(func(p *Workload, want *Want, s *supply) {
		f := foundKey(p.ref(), want.At, "%s may not run on any node that has %q", p.ref(), want.Name).about(want.Name)
		for i, n := range s.nodes {
			why := n.refuses(p.Spec)
			if why == "" {
				return
			}
			if i < 3 {
				f = f.because("node %s: %s", n.Name, why)
			}
		}
		if len(s.nodes) > 3 {
			f = f.because("and %d more nodes", len(s.nodes)-3)
		}
		all = append(all, w.ifAllSupply(f, p, s))
	})
	return append(all, w.claimsExcluded()...)
}

// ifAllSupply: of nodes that are not in the input nothing is known, nor of what drivers have published and
// the input lacks.
func (w *World) ifAllSupply(f Finding, p *Workload, s *supply) Finding {
	if !w.complete("Node") {
		f = f.as(finding.Note).because("the input does not have all nodes of the cluster")
	}
	switch {
	case s.class != nil:
		return w.unless(f, "ResourceSlice")
	case w.mayStand(p, s.name) && w.complete("Node"):
		return f.as(finding.Note).because("the input may not have every DeviceClass of the cluster, and one may stand for the name on other nodes")
	}
	return f
}

func moreThanANode(w *World) []Finding {
	var all []Finding
	w.unscheduled(func(p *Workload, want *Want, s *supply) {
		n := s.fullest
		if want.Count <= s.most(n) {
			return
		}
		f := foundKey(p.ref(), want.At, "%s requests %d of %q, and no node has more than %d",
			p.ref(), want.Count, want.Name, s.most(n)).about(want.Name)
		all = append(all, w.ifAllSupply(f.with(s.at(n), "node %s has the most", n.Name), p, s))
	})
	return all
}

func allInUse(w *World) []Finding {
	var all []Finding
	known := map[string]usage{}
	w.unscheduled(func(p *Workload, want *Want, s *supply) {
		if !p.Live || s.class != nil && !w.complete("ResourceSlice") {
			return
		}
		u, ok := known[want.Name]
		if !ok {
			u = w.usageOf(s)
			known[want.Name] = u
		}
		// What no pod has is no pod's fault, and what no node has is said by another check.
		if !u.held || want.Count <= u.free || want.Count > u.most {
			return
		}
		f := foundKey(p.ref(), want.At, "%s waits for %q, and pods have all that the nodes of the input have",
			p.ref(), want.Name)
		if u.free > 0 {
			f = foundKey(p.ref(), want.At, "%s waits for %d of %q, and no node has more than %d left: pods have the others",
				p.ref(), want.Count, want.Name, u.free)
		}
		f = f.about(want.Name)
		all = append(all, s.claimants(w.holders(f, s.nodes, want.Name)))
	})
	return all
}

// claimants names a few of the claims that have devices of the class.
func (s *supply) claimants(f Finding) Finding {
	const most = 5
	shown := 0
	for _, n := range s.nodes {
		if c := s.claims[n.Name]; c != nil {
			for _, a := range c.held {
				if shown++; shown <= most {
					f = f.with(a.At.Place(), "%s has %s", a.Claim, a.DeviceName)
				}
			}
		}
	}
	return f
}

// usage is what pods have of a resource: whether any has one, and the most that a node has and has left.
type usage struct {
	held       bool
	most, free int64
}

func (w *World) usageOf(s *supply) usage {
	var u usage
	for _, o := range w.offers(s) {
		u.held = u.held || o.Free < o.Has
		u.most, u.free = max(u.most, o.Has), max(u.free, o.Free)
	}
	return u
}

// holders names a few of the pods that have a resource from a plugin.
func (w *World) holders(f Finding, nodes []*Node, name string) Finding {
	shown := 0
	for _, n := range nodes {
		for _, p := range w.podsOn[n.Name] {
			want := p.want(name)
			if want == nil || want.Count == 0 || p.ByClaim(name) {
				continue
			}
			if shown++; shown > 5 {
				return f.because("and others")
			}
			f = f.with(want.At.KeyPlace(), "%s on node %s has %d", p.ref(), n.Name, want.Count)
		}
	}
	return f
}
