package explain

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/finding"
)

// allocated: the scheduler has chosen devices.
func (c *claim) allocated() Step {
	switch {
	case c.held():
		return yes("the claim has its devices").because(c.allotment()...)
	case c.object == nil && c.pod != nil && c.pod.NodeName() != "":
		return unknown("the ResourceClaims of the namespace", "the pod has a node, and the claim is not in the input").
			because(seen(c.pod.Spec.Get("nodeName"), "nodeName: %s", c.pod.NodeName()))
	case c.pod == nil && !c.View.Complete("Pod"):
		return c.unused()
	case c.pod == nil:
		return Step{Verdict: NotNeeded, Says: "no pod uses the claim, and a claim is allocated for a pod"}.
			because(Evidence{Text: "none of " + plural(int64(len(c.View.Pods())), "pod") + " names it"})
	case c.pod.NodeName() != "":
		return no("DRA005", "leave nodeName out, so that the scheduler allocates the claim", "the pod is on node %s past the scheduler, which "+
			"alone allocates claims", c.pod.NodeName()).because(seen(c.pod.Spec.Get("nodeName"), "nodeName: %s", c.pod.NodeName()))
	}
	nodes, known := c.together()
	if !known || c.devices().Verdict == Unknown {
		return unknown("the DeviceClasses and ResourceSlices of the cluster", "which nodes have devices for the claim is not known").
			because(c.sayings()...)
	}
	if len(nodes) == 0 && !c.View.Complete("Node") {
		return unknown("all nodes of the cluster", "no node of the input has free devices for all requests at once").
			because(c.sayings()...)
	}
	if len(nodes) == 0 {
		return no(c.waits(), "ask for less in one claim", "no node has free devices for all requests at once").
			because(Evidence{Text: plural(int64(len(c.requests)), "request") + ", each with free devices on some node"}).because(c.sayings()...)
	}
	if c.counted() {
		return unknown("the scheduler's message", "the devices share counters or capacity, of which it is not reckoned here what several "+
			"of them leave").
			because(c.sayings()...)
	}
	if mentions(c.sayings(), "cannot allocate all claims") {
		if s := c.fits(c.pod, nodes, "has free devices"); s.Verdict == No {
			return s
		}
		if c.spec.Get("devices", "constraints").Len() > 0 || len(c.requests) > 1 || c.pod.Spec.Get("resourceClaims").Len() > 1 {
			return no(c.waits(), "loosen the constraints of the claim, or ask for less at once",
				"free devices match each request, and not all requests and constraints together").because(c.sayings()...)
		}
	}
	return c.fits(c.pod, nodes, "has free devices")
}

// over says whether the pod has ended and the claim has no devices any more, or is gone itself: what there is
// now tells nothing of what the pod had.
func (c *claim) over() bool {
	return c.pod != nil && (c.pod.Phase() == "Succeeded" || c.pod.Phase() == "Failed") && !c.held()
}

func (c *claim) returned() Step {
	return Step{Verdict: NotNeeded, Says: "not asked: the pod has ended, and its claim has no device any more"}.
		because(seen(c.pod.Object.Get("status", "phase"), "the pod is %s", c.pod.Phase()))
}

// unused: what comes behind a pod is not known of a claim without one.
func (c *claim) unused() Step {
	tell := ""
	if !c.View.Complete("Pod") {
		tell = "the pods of the claim's namespace"
	}
	return unknown(tell, "no pod of the input uses the claim")
}

// counted says whether devices share what is not reckoned with here.
func (c *claim) counted() bool {
	for _, alternatives := range c.requests {
		for _, r := range alternatives {
			for _, d := range c.published(r).devices {
				if !c.reckoned(r, d) {
					return true
				}
			}
		}
	}
	return false
}

// together are the nodes of the input that have free devices for each request.
func (c *claim) together() (nodes []*check.Node, known bool) {
	var free []map[string]bool // of each request
	for _, alternatives := range c.requests {
		on := map[string]bool{}
		for _, r := range alternatives {
			s, names := c.available(r)
			if s.Verdict == Unknown {
				return nil, false
			}
			for _, name := range names {
				on[name] = true
			}
		}
		free = append(free, on)
	}
	for _, n := range c.View.Nodes() {
		// A device that is on no one node is within reach of all.
		if !slices.ContainsFunc(free, func(on map[string]bool) bool { return !on[n.Name] && !on[""] }) {
			nodes = append(nodes, n)
		}
	}
	return nodes, len(c.requests) > 0 && len(c.View.Nodes()) > 0
}

// reserved: the claim is the pod's to use, for which the pod has to be where the devices are.
func (c *claim) reserved() Step {
	if c.object == nil {
		return unknown("the ResourceClaims of the namespace", "the claim is not in the input")
	}
	at := c.object.Get("status", "reservedFor")
	pods := check.Reserved(c.object)
	if c.pod == nil {
		return c.unused()
	}
	if f, ok := c.namesake(); ok {
		return proven(f).because(c.sayings()...)
	}
	if slices.Contains(pods, c.pod.Object.Name) {
		return yes("the claim is reserved for the pod").because(seen(at, "reservedFor: %s", abridged(pods)))
	}
	const most = 256 // as many as the API takes
	if at.Len() >= most {
		return no("DRA005", "make a claim of its own for the pod", "the claim is reserved for %d pods, and takes no more", most).
			because(seen(at, "reservedFor has %d", at.Len()))
	}
	if !c.held() {
		return unknown("", "the claim has no devices yet")
	}
	who := "nobody"
	if len(pods) > 0 {
		who = abridged(pods)
	}
	return c.apart(append([]Evidence{seen(at, "reservedFor: %s", who)}, c.sayings()...))
}

// namesake is what a check says of the pod that the claim is reserved for, where that had the pod's name
// and has gone.
func (c *claim) namesake() (check.Finding, bool) {
	if phase := c.pod.Phase(); phase == "Succeeded" || phase == "Failed" {
		return check.Finding{}, false // it is this one that has ended
	}
	for _, f := range c.View.Findings(finding.ReservedForNobody().ID) {
		if f.Object == c.ref && strings.Contains(f.Message, c.pod.Ref().String()+", ") {
			return f, true
		}
	}
	return check.Finding{}, false
}

// apart: the pod cannot go where the devices of the claim are.
func (c *claim) apart(evidence []Evidence) Step {
	var nodes []*check.Node
	unseen := false
	for _, a := range c.View.Allotted() {
		if a.Claim != c.ref {
			continue
		}
		name, found := c.placed(a.DeviceName)
		if n := c.View.Node(name); n != nil && !slices.Contains(nodes, n) {
			nodes = append(nodes, n)
		}
		unseen = unseen || !found
	}
	for _, n := range nodes {
		if why, _ := c.hinders(c.pod, n); why.Text != "" && !unseen {
			return no("DRA005", "let the pod run where the claim's devices are, or make a claim of its own for it",
				"the claim's devices are on node %s, which does not take the pod", n.Name).because(append([]Evidence{why}, evidence...)...)
		}
	}
	if mentions(evidence, "resourceclaim not available on the node") {
		return no("DRA005", "let the pod run where the claim's devices are, or make a claim of its own for it",
			"the claim's devices are on a node that does not take the pod").because(evidence...)
	}
	return unknown("the pod's condition PodScheduled, and its events", "the claim is not reserved for the pod yet").because(evidence...)
}

// placed is the node that a device is on.
func (c *claim) placed(d check.DeviceName) (node string, found bool) {
	for _, p := range c.View.Published() {
		if p.DeviceName == d {
			return p.Node, p.Node != ""
		}
	}
	return "", false
}

// prepared: the driver has made the devices ready on the node.
func (c *claim) prepared() Step {
	if c.pod == nil {
		return c.unused()
	}
	if c.pod.NodeName() == "" {
		return unknown("", "the pod has no node yet")
	}
	if s := c.admitted(c.pod); s.Verdict == No {
		return s
	}
	if at, ok := begun(c.pod, c.asking); ok {
		return yes("a container has been made, which comes behind this").because(at)
	}
	if s, bad := c.misconfigured(); bad {
		return s
	}
	failed := c.events(c.pod.Ref(), "FailedPrepareDynamicResources")
	if len(failed) == 0 {
		if f, ok := c.driverless(); ok {
			return proven(f).because(c.allotment()...)
		}
		return unknown("the pod's events, and the log of the driver on node "+c.pod.NodeName(), "nobody says whether the devices are ready")
	}
	last := failed[len(failed)-1]
	if check.Unregistered(last.message) {
		return no("DRA001", "start the driver on the node: kubelet waits for its socket in plugins_registry",
			"the driver is not registered with the node's kubelet").because(last.evidence)
	}
	return no("DRA005", "look at the message, and at the driver's log on the node", "the driver could not make the devices ready").
		because(last.evidence)
}

// driverless is what a check says of the claim's driver on the pod's node, where there is none.
func (c *claim) driverless() (check.Finding, bool) {
	for _, f := range c.View.Findings(finding.DriverUnregistered().ID) {
		about := slices.ContainsFunc(f.Related, func(r check.Related) bool { return strings.HasPrefix(r.Text, c.ref.String()+" ") })
		if f.Object == c.pod.Ref() && about {
			return f, true
		}
	}
	return check.Finding{}, false
}

// misconfigured: the driver of this project has been given the claim, and prepares none with
// parameters that it does not know, of the claim itself or of a class.
func (c *claim) misconfigured() (Step, bool) {
	ours := slices.ContainsFunc(c.View.Allotted(), func(a check.Allotted) bool { return a.Claim == c.ref && a.Driver == draname.Driver })
	if !ours {
		return Step{}, false
	}
	objects := []check.Ref{c.ref}
	for _, alternatives := range c.requests {
		for _, r := range alternatives {
			objects = append(objects, check.Ref{Kind: "DeviceClass", Name: r.class})
		}
	}
	for _, f := range c.View.Findings(finding.ParametersRefused().ID) {
		if slices.Contains(objects, f.Object) {
			return no(f.ID, f.Help, "the driver does not take the parameters of %s", f.Object).
				because(Evidence{Text: f.Message, Source: f.Place.String()}).
				because(evidenceOf(c.events(c.pod.Ref(), "FailedPrepareDynamicResources"))...), true
		}
	}
	return Step{}, false
}

// evidenceOf is the last of some events.
func evidenceOf(all []heard) []Evidence {
	if len(all) == 0 {
		return nil
	}
	return []Evidence{all[len(all)-1].evidence}
}

// asking says whether a container uses the claim.
func (c *claim) asking(of check.Container) bool {
	if len(c.entries) == 0 {
		r := resource{name: c.extended}
		return r.asks(of)
	}
	for use := range of.Get("resources", "claims").Each() {
		if slices.Contains(c.entries, use.Get("name").Text()) {
			return true
		}
	}
	return false
}

func (c *claim) resolves() Step {
	if c.pod == nil {
		return c.unused()
	}
	if stray := c.stray(); len(stray) > 0 {
		k := finding.RequestMissing()
		return no(k.ID, k.Remedy, "a container uses a request that the claim does not have, for which it gets nothing").because(stray...)
	}
	if c.pod.NodeName() == "" {
		return unknown("", "the pod has no node yet")
	}
	s := c.resolved(c.pod, c.asking)
	if broken, ok := c.unresolved(c.names()); ok && s.Verdict != No {
		return broken.because(s.Evidence...)
	}
	return s
}

// stray are the uses of requests that the claim does not have. Nobody refuses such a pod.
func (c *claim) stray() []Evidence {
	var all []Evidence
	for _, of := range c.pod.Containers {
		for use := range of.Get("resources", "claims").Each() {
			name := use.Get("request")
			has := slices.ContainsFunc(c.requests, func(alternatives []request) bool {
				whole, _, _ := strings.Cut(alternatives[0].name, "/")
				return name.Text() == whole // alternatives are not told apart here
			})
			if slices.Contains(c.entries, use.Get("name").Text()) && name.Text() != "" && len(c.requests) > 0 && !has {
				all = append(all, seen(name, "container %s: request %s", of.Name, name.Text()))
			}
		}
	}
	return all
}

func (c *claim) seen() Step {
	if c.pod == nil {
		return c.unused()
	}
	return c.visible(c.pod, "claim:"+c.ref.Name)
}
