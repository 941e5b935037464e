package explain

import (
	"fmt"
	"slices"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
)

const snapshotTells = "a capture of the node: kubectl device snapshot there, and --root FILE here"

// offers says whether a node has a device of the resource that is healthy.
func (r *resource) offers() bool {
	return slices.ContainsFunc(r.View.Nodes(), func(n *check.Node) bool { return n.Allocatable[r.name] > 0 })
}

// plugin: whoever advertises the resource runs somewhere.
func (r *resource) plugin() Step {
	agents := r.View.Agents(r.name)
	agents = slices.DeleteFunc(agents, func(a *check.Agent) bool { return a.Object.Kind != "DaemonSet" })
	if len(agents) == 0 {
		tell := "the plugin's DaemonSet and its ConfigMap (--live -A)"
		if r.View.Complete("DaemonSet") && r.View.Complete("ConfigMap") {
			tell = "the node, where the plugin's socket is: kubectl device snapshot there"
		}
		return unknown(tell, "no DaemonSet of the input is known to advertise %q", r.name)
	}
	var doubts []Step
	for _, a := range agents {
		s := r.runs(a)
		if s.Verdict == Yes {
			return s
		}
		doubts = append(doubts, s)
	}
	if r.offers() {
		return unknown("", "%s; but a node offers the resource, so something advertises it", doubts[0].Says).because(doubts[0].Evidence...)
	}
	return doubts[0]
}

// runs says whether a DaemonSet has a pod that is ready.
func (r *resource) runs(a *check.Agent) Step {
	status := a.Object.Get("status")
	desired, ready := status.Get("desiredNumberScheduled"), status.Get("numberReady")
	switch {
	case desired.Text() == "0":
		s := no("DSP001", "correct its node selector or affinity, or label the nodes", "%s is to run on no node", a.Ref()).
			because(seen(desired, "desiredNumberScheduled: 0"))
		for _, n := range r.View.Nodes() {
			if why := n.RefusesDaemon(a.Spec); why != "" {
				s = s.because(seen(n.Object.Value, "node %s: %s", n.Name, why))
			}
		}
		s.Evidence = some(s.Evidence)
		return s
	case desired.Exists() && (ready.Text() == "0" || !ready.Exists()):
		return no("DSP005", "look at the log of its pods", "none of the %s pods of %s is ready", desired.Text(), a.Ref()).
			because(seen(desired, "desiredNumberScheduled: %s, numberReady: 0", desired.Text()))
	case desired.Exists():
		return yes("%s has %s of %s pods ready", a.Ref(), ready.Text(), desired.Text()).
			because(seen(ready, "numberReady: %s", ready.Text()))
	}
	if f, ok := r.View.Proven(finding.NoNodeWanted().ID, a.Ref(), ""); ok {
		return proven(f)
	}
	return unknown("the DaemonSet with its status, as the cluster has it", "%s is a manifest: whether it runs is not in the input", a.Ref())
}

// registered: kubelet keeps the key of a resource for ever once a plugin has registered it.
func (r *resource) registered() Step {
	var have, zero []Evidence
	dead := r.unserved()
	var left *check.Finding
	for _, n := range r.View.Nodes() {
		f, gone := dead[n.Name]
		switch {
		case n.Most(r.name) > 0 && gone:
			left = &f
		case n.Most(r.name) > 0:
			have = append(have, nodeNow(n, r.name))
		case n.Key(r.name).Exists():
			zero = append(zero, nodeNow(n, r.name))
		}
	}
	for _, n := range r.Nodes {
		if _, gone := dead[n.Name]; gone {
			continue
		}
		if e, ok := r.recorded(n); ok {
			have = append(have, e)
		}
	}
	switch {
	case len(have) > 0:
		return yes("kubelet knows the resource").because(some(have)...)
	case left != nil:
		return proven(*left)
	case len(zero) > 0:
		return unknown(snapshotTells, "a plugin has registered it once; 0 is what kubelet says of one that has gone, or that has no device").
			because(some(zero)...)
	case r.View.Complete("Node") && len(r.View.Nodes()) > 0 && r.unseen():
		return unknown(everyClass, "no node has the key %q, and a DeviceClass may stand for the name", r.name)
	case r.View.Complete("Node") && len(r.View.Nodes()) > 0:
		help := "look at the log of the plugin on a node that should have it"
		if len(r.View.Agents(r.name)) == 0 { // there is no log to look at
			help = "correct the name, or deploy the plugin that is to advertise it"
		}
		return no("NOD003", help, "no node has the key %q", r.name).
			because(Evidence{Text: plural(int64(len(r.View.Nodes())), "node") + ", and none has the key"})
	}
	return unknown("all nodes of the cluster", "no node of the input has the key")
}

// unserved are nodes where kubelet offers devices and no plugin serves any, by what a check says.
func (r *resource) unserved() map[string]check.Finding {
	all := map[string]check.Finding{}
	for _, f := range r.View.Findings(finding.Zombie().ID) {
		if f.Severity == finding.Error {
			all[f.Object.Name] = f
		}
	}
	return all
}

// recorded is what kubelet's record of a captured node says of the resource.
func (r *resource) recorded(n Node) (Evidence, bool) {
	if n.Capture == nil || n.Foreign {
		return Evidence{}, false
	}
	record, err := n.Capture.Checkpoint()
	if err != nil || len(record.Data.RegisteredDevices[r.name]) == 0 {
		return Evidence{}, false
	}
	ids := record.Data.RegisteredDevices[r.name]
	return n.evidence("kubelet's record has %s: %s", plural(int64(len(ids)), "healthy device"), abridged(ids)), true
}

// recordedAnywhere says whether the record of a captured node has the resource.
func (r *resource) recordedAnywhere() bool {
	return slices.ContainsFunc(r.Nodes, func(n Node) bool { _, is := r.recorded(n); return is })
}

// allocatable: a node has as many as are wanted, whoever has them now.
func (r *resource) allocatable() Step {
	var enough, most []Evidence
	var best, bestWhole int64
	offers, known := r.View.Offers(r.name)
	for _, n := range r.View.Nodes() {
		if n.Key(r.name).Exists() && !slices.ContainsFunc(offers, func(o check.Offer) bool { return o.Node == n }) {
			most = append(most, nodeNow(n, r.name)) // with 0
		}
	}
	for _, o := range offers {
		most = append(most, r.offered(o))
		if o.Has >= max(r.count, 1) {
			enough = append(enough, r.offered(o))
		}
		best, bestWhole = max(best, o.Has), max(bestWhole, o.Most)
	}
	if len(enough) > 0 {
		return yes("%s with %d or more", plural(int64(len(enough)), "node"), max(r.count, 1)).because(some(enough)...)
	}
	if !r.View.Complete("Node") || len(r.View.Nodes()) == 0 {
		return unknown("all nodes of the cluster", "no node of the input has %d", max(r.count, 1)).because(some(most)...)
	}
	switch {
	case !known:
		return unknown("", "no node has %d, but for what the class of the resource may have", max(r.count, 1)).because(some(most)...)
	case bestWhole == 0 && !r.recordedAnywhere() && r.unseen():
		return unknown(everyClass, "no node has any now, and a DeviceClass may stand for the name on other nodes").because(some(most)...)
	case len(most) == 0:
		// Only kubelet's record of a captured node got the question so far.
		return unknown("the Node objects and the capture anew", "a node's kubelet has the resource in its record, and no Node "+
			"has the key %q: one of the two is older", r.name)
	case bestWhole == 0:
		return no("NOD002", "look whether the plugin runs on the node, and which devices it finds",
			"nodes have the key %q with 0: the plugin has left, or has no device", r.name).because(some(most)...)
	case bestWhole < r.count && r.unseen():
		return unknown(everyClass, "no node has %d, and a DeviceClass may stand for the name on other nodes", r.count).because(some(most)...)
	case bestWhole < r.count:
		return no("POD013", "request fewer, or in several pods", "%d are requested, and no node has more than %d", r.count, bestWhole).
			because(some(most)...)
	}
	return no("NOD001", "look at the plugin on the node for why devices are not healthy",
		"no node has more than %d healthy of the %d that are requested", best, r.count).because(some(most)...)
}

// offered is what a node has.
func (r *resource) offered(o check.Offer) Evidence {
	if o.Class == nil {
		return nodeNow(o.Node, r.name)
	}
	return seen(o.At, "node %s: %s for claims of %s", o.Node.Name, plural(o.Has, "device"), r.View.RefOf(o.Class))
}

// everyClass is what would tell who else may have the resource.
const everyClass = "the DeviceClasses of the cluster"

// unseen says whether a class that the input lacks may have devices for the resource where no plugin has any.
func (r *resource) unseen() bool {
	_, is := r.mapped(r.pod, r.name)
	return !is && r.View.MayStand(r.pod, r.name)
}

// free: a node has as many left as are wanted.
func (r *resource) free() Step {
	var left, held []Evidence
	enough, whole := false, r.View.Complete("Pod")
	offers, known := r.View.Offers(r.name)
	for _, o := range offers {
		if o.Has < max(r.count, 1) {
			continue
		}
		enough = true
		if o.Free >= r.count {
			left = append(left, seen(o.At, "node %s: %d of %d free", o.Node.Name, o.Free, o.Has))
			whole = whole || o.Class != nil && r.View.Complete("ResourceClaim")
			continue
		}
		held = append(held, r.holding(o)...)
	}
	switch {
	case len(left) > 0 && !whole:
		return unknown("the pods of all namespaces (--live -A)", "by the pods of the input there are enough left").because(some(left)...)
	case len(left) > 0:
		return yes("%s with enough left", plural(int64(len(left)), "node")).because(some(left)...)
	case !r.View.Complete("Node") || len(r.View.Nodes()) == 0:
		return unknown("all nodes of the cluster", "no node of the input has enough left").because(some(held)...)
	case !known:
		return unknown("", "no node has enough left, but for what the class of the resource may have").because(some(held)...)
	case !enough:
		return unknown("", "no node is known to have %d", max(r.count, 1))
	case r.unseen():
		return unknown(everyClass, "no node of those has %d left, and a DeviceClass may stand for the name on other nodes", max(r.count, 1)).
			because(some(held)...)
	}
	return no("POD012", "wait, or end one of the pods that are named", "no node has %d left: pods have the others", max(r.count, 1)).
		because(some(held)...)
}

// holding are those who have what a node has.
func (r *resource) holding(o check.Offer) []Evidence {
	var all []Evidence
	for _, a := range o.Held {
		all = append(all, seen(a.At, "node %s: %s has %s", o.Node.Name, a.Claim, a.DeviceName))
	}
	if o.Class != nil {
		return all
	}
	for _, p := range r.View.PodsOn(o.Node.Name) {
		if want := p.Want(r.name); want != nil && want.Count > 0 && !p.ByClaim(r.name) {
			all = append(all, seen(want.At, "node %s: %s has %d", o.Node.Name, p.Ref(), want.Count).
				since(condition(p, "PodScheduled").Get("lastTransitionTime")))
		}
	}
	return all
}

// evidence is out of a capture, and as old as that is. That of a simulated node has the time 0, so
// that it is the same each time: it has no age.
func (n Node) evidence(format string, args ...any) Evidence {
	e := Evidence{Text: fmt.Sprintf(format, args...), Source: n.Source}
	if n.Capture != nil && n.Capture.Meta.Time.Unix() > 0 {
		e.At = n.Capture.Meta.Time
	}
	return e
}
