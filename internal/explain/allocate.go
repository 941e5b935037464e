package explain

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
)

// classes: each class that the claim names is there.
func (c *claim) classes() Step {
	if len(c.requests) == 0 {
		return unknown("the ResourceClaims and ResourceClaimTemplates of the namespace", "what the claim asks for is not in the input")
	}
	var have []Evidence
	for _, alternatives := range c.requests {
		for _, r := range alternatives {
			if o := c.classOf(r.class); o != nil {
				have = append(have, c.age(o))
				continue
			}
			says := c.sayings()
			if !c.View.Complete("DeviceClass") && !mentions(says, "device class "+r.class+" does not exist") {
				return unknown("the DeviceClasses of the cluster", "DeviceClass %s is not in the input", r.class)
			}
			return no("DRA003", "correct the name, or install the driver that brings the class", "there is no DeviceClass %s", r.class).
				because(seen(r.at.Get("deviceClassName"), "request %s names it here", r.name)).because(says...)
		}
	}
	return yes("each class is there").because(some(have)...)
}

// sayings is what the scheduler says of the pod.
func (c *claim) sayings() []Evidence {
	if c.pod == nil {
		return nil
	}
	return c.says(c.pod)
}

// held says whether the claim has devices: what had to be there before, was.
func (c *claim) held() bool { return c.object != nil && c.object.Get("status", "allocation").Exists() }

// devices: somewhere that the pod may run, a driver has published devices that match.
func (c *claim) devices() Step {
	if c.held() {
		return yes("the claim is allocated, which comes behind this").because(c.allotment()...)
	}
	if len(c.requests) == 0 {
		return unknown("the claim, or its template", "what the claim asks for is not in the input")
	}
	if len(c.View.Published()) == 0 {
		if !c.View.Complete("ResourceSlice") {
			return unknown("the ResourceSlices of the cluster", "the input has no published device")
		}
		return no(c.waits(), "look whether the driver runs on the nodes, and at its log", "no driver has published a device").
			because(Evidence{Text: "the cluster has no device in a ResourceSlice"}).because(c.sayings()...)
	}
	var have []Evidence
	for _, alternatives := range c.requests {
		s := c.either(alternatives, c.matching)
		if s.Verdict != Yes {
			return s
		}
		have = append(have, s.Evidence...)
	}
	return yes("there are devices that match").because(some(have)...)
}

// either is the first yes for one of several alternatives, else the last answer. Where one is not
// known the others prove nothing.
func (c *claim) either(alternatives []request, ask func(request) Step) Step {
	var last Step
	for _, r := range alternatives {
		s := ask(r)
		if s.Verdict == Yes {
			return s
		}
		if last.Verdict != Unknown {
			last = s
		}
	}
	return last
}

// matching: devices of the class that the selectors take, on nodes that take the pod.
func (c *claim) matching(r request) Step {
	m := c.published(r)
	found := m.devices
	if m.unread != nil {
		return unknown("the DeviceClasses of the cluster, and a program as new as it", "which devices match request %s is not known", r.name).
			because(Evidence{Text: oneLine(m.unread.Error())})
	}
	// The scheduler may find enough before it comes to the device that makes a selector fail.
	if m.failed != nil && (len(found) == 0 || mentions(c.sayings(), "CEL")) {
		return no("DRA004", "correct the expression: a name that a device may lack needs a question first, as in "+
			"has(device.attributes[\"DOMAIN\"].NAME)", "a selector cannot be evaluated").
			because(Evidence{Text: oneLine(m.failed.Error())}).because(c.sayings()...)
	}
	if m.half != nil && len(found) == 0 {
		if m.half.Severity == finding.Error {
			return proven(*m.half).because(c.sayings()...)
		}
		return unknown("the ResourceSlices of the cluster", "the input does not have all slices of the pool with devices for request %s", r.name).
			because(Evidence{Text: m.half.Message, Source: m.half.Place.String()})
	}
	if !c.View.Complete("ResourceSlice") && len(found) == 0 {
		return unknown("the ResourceSlices of the cluster", "no device of the input matches request %s", r.name)
	}
	if len(found) == 0 {
		s := no("DRA004", "correct the selectors of the request, or ask for what there is", "no published device matches request %s", r.name)
		return s.because(Evidence{Text: fmt.Sprintf("%s published; class %s takes %d of them, the request's selectors none",
			plural(int64(len(c.View.Published())), "device"), r.class, m.ofClass)}).because(c.sayings()...)
	}
	var against []Evidence
	counts := map[string]int64{}
	for _, d := range found {
		counts[d.Node]++
	}
	for node, n := range counts {
		if why := c.refused(node); why.Text != "" {
			against = append(against, why)
			counts[node] = 0
		} else {
			counts[node] = n
		}
	}
	slices.SortFunc(against, func(a, b Evidence) int { return strings.Compare(a.Text, b.Text) })
	maps.DeleteFunc(counts, func(_ string, n int64) bool { return n == 0 })
	if len(counts) == 0 {
		return c.ofAll(no(finding.NodesExcluded().ID, "change the selector, the affinity or the tolerations of the pod",
			"no node that has matching devices takes the pod").because(some(against)...))
	}
	if most := slices.Max(slices.Collect(maps.Values(counts))); most < r.count {
		return c.ofAll(no(c.waits(), "request fewer, or in several claims",
			"request %s wants %d devices, and no node that takes the pod has more than %d", r.name, r.count, most).
			because(c.most(counts)...).because(c.sayings()...))
	}
	return yes("").because(Evidence{Text: fmt.Sprintf("request %s: %s on %s", r.name, plural(int64(len(found)), "device"),
		abridged(slices.Sorted(maps.Keys(counts)))), Source: found[0].Slice.Place().String()})
}

// ofAll takes back a no that holds of the devices of the input, where the cluster may have others.
// The scheduler knows all: where it says of the one request that there is that nothing can be
// allocated, what the input shows is the reason.
func (c *claim) ofAll(s Step) Step {
	single := c.pod != nil && c.pod.Spec.Get("resourceClaims").Len() == 1 && len(c.requests) == 1 && len(c.requests[0]) == 1 &&
		c.spec.Get("devices", "constraints").Len() == 0
	if c.View.Complete("ResourceSlice") || single && mentions(c.sayings(), "cannot allocate all claims") {
		return s
	}
	return unknown("the ResourceSlices of the cluster", "by the devices of the input %s", s.Says).because(s.Evidence...)
}

// most are the numbers of matching devices, by node.
func (c *claim) most(counts map[string]int64) []Evidence {
	var all []Evidence
	for _, node := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, Evidence{Text: fmt.Sprintf("node %s: %s", node, plural(counts[node], "device"))})
	}
	return some(all)
}

// refused says why the pod is kept from a node by its spec; nothing, where no pod or node is known.
func (c *claim) refused(node string) Evidence {
	n := c.View.Node(node)
	if c.pod == nil || n == nil {
		return Evidence{}
	}
	if why := n.Refuses(c.pod.Spec); why != "" {
		return seen(n.Object.Get("spec"), "node %s: %s", node, why)
	}
	return Evidence{}
}

// free: of the devices that match, enough are well and in no claim.
func (c *claim) free() Step {
	if c.held() {
		return yes("the claim is allocated, which comes behind this").because(c.allotment()...)
	}
	if len(c.requests) == 0 {
		return unknown("the claim, or its template", "what the claim asks for is not in the input")
	}
	if s := c.devices(); s.Verdict == Unknown { // of devices that are not known none can be shown to be in use
		return unknown(s.Tell, "which devices match is not known").because(s.Evidence...)
	}
	var have []Evidence
	for _, alternatives := range c.requests {
		s := c.either(alternatives, func(r request) Step {
			s, _ := c.available(r)
			return s
		})
		if s.Verdict != Yes {
			return s
		}
		have = append(have, s.Evidence...)
	}
	if !c.View.Complete("ResourceClaim") {
		return unknown("the ResourceClaims of all namespaces (--live -A)", "by the claims of the input there are enough left").because(some(have)...)
	}
	return yes("enough are free").because(some(have)...)
}

// available says whether enough devices for a request are free on one node, and on which.
func (c *claim) available(r request) (Step, []string) {
	m := c.published(r)
	found := m.devices
	if m.unread != nil {
		return unknown("the DeviceClasses of the cluster", "which devices match is not known").
			because(Evidence{Text: oneLine(m.unread.Error())}), nil
	}
	holders := c.holders()
	left, all := map[string]int64{}, map[string]int64{}
	var tainted, taken []Evidence
	for _, d := range found {
		if c.refused(d.Node).Text != "" {
			continue
		}
		all[d.Node]++
		if why := c.taint(d, r); why != "" && !r.admin {
			tainted = append(tainted, seen(d.Device.Get("taints"), "%s is tainted: %s", d.DeviceName, why))
			continue
		}
		if a, ok := holders[d.DeviceName]; ok && !r.admin && d.Device.Get("allowMultipleAllocations").Text() != "true" {
			taken = append(taken, c.taken(a))
			continue
		}
		if why, is := c.spent(d); is && !r.admin {
			taken = append(taken, why)
			continue
		}
		left[d.Node]++
	}
	var nodes []string
	for node, n := range left {
		want := r.count
		if want == 0 {
			want = all[node] // all that there are
		}
		if n >= want {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	switch {
	case len(nodes) > 0:
		text := fmt.Sprintf("request %s: %d of %d free on %s", r.name, left[nodes[0]], all[nodes[0]], nodes[0])
		return yes("").because(Evidence{Text: text}), nodes
	case len(taken) == 0 && len(tainted) > 0:
		return c.ofAll(no(c.waits(), "look at the driver for why it taints the devices, or tolerate the taint in the request",
			"all devices that match request %s are tainted", r.name).because(some(tainted)...)), nil
	}
	best := int64(0)
	for _, n := range left {
		best = max(best, n)
	}
	wants := "all"
	if r.count > 0 {
		wants = strconv.FormatInt(r.count, 10)
	}
	return c.ofAll(no(c.waits(), "wait, or end one of the pods that are named",
		"request %s wants %s, and no node has more than %d free: claims have the others", r.name, wants, best).
		because(some(append(taken, tainted...))...)), nil
}

// taken is who has a device.
func (c *claim) taken(a check.Allotted) Evidence {
	text := fmt.Sprintf("%s: %s", a.DeviceName, a.Claim)
	if o := c.View.Object(a.Claim); o != nil {
		if pods := check.Reserved(o); len(pods) > 0 {
			text += " for pod " + abridged(pods)
		} else {
			text += ", which no pod has reserved"
		}
	}
	return seen(a.At, "%s", text)
}

// allotment is what the claim has, as evidence.
func (c *claim) allotment() []Evidence {
	var all []Evidence
	address := map[check.DeviceName]string{}
	for _, p := range c.View.Published() {
		address[p.DeviceName] = p.Address
	}
	at := c.object.Get("status", "allocation", "allocationTimestamp")
	for _, a := range c.View.Allotted() {
		if a.Claim != c.ref {
			continue
		}
		text := fmt.Sprintf("request %s has %s", a.Request, a.DeviceName)
		if where := address[a.DeviceName]; where != "" {
			text += " at " + where
		}
		all = append(all, seen(a.At, "%s", text).since(at))
	}
	return some(all)
}
