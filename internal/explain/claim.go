package explain

import (
	"fmt"
	"slices"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/manifest"
)

// claim is the way of one claim: to devices, and to the pod that uses it.
type claim struct {
	*explainer
	pod *check.Workload // nil where no pod of the input uses the claim
	ref check.Ref
	// object is the claim, and spec what it asks for: of a template, or of a class, where there is
	// no claim yet. Both may be missing.
	object   *manifest.Object
	spec     manifest.Value
	requests [][]request
	exists   func() Step
	// entries are the pod's names for the claim; extended is the resource that it stands for.
	entries  []string
	extended string
	memo     map[string]matched // by the name of the request
	shared   *counters
}

// claimExists is the question whose answer stays when the pod has ended.
const claimExists = "claim exists"

func (c *claim) walk(about string) Chain {
	now := func(name string, ask func() Step) question {
		return question{name, func() Step {
			if c.over() && (name != claimExists || c.object == nil) {
				return c.returned()
			}
			return ask()
		}}
	}
	return walk(about, []question{
		now(claimExists, c.exists), now("class exists", c.classes), now("devices published on nodes that match", c.devices),
		now("free", c.free), now("allocated", c.allocated), now("reserved", c.reserved), {"prepared", c.prepared},
		{"CDI resolved", c.resolves}, {"visible in the container", c.seen},
	})
}

// Claim explains a claim. The error is a NotFound.
func Claim(in Input, namespace, name string) (*Report, error) {
	e := &explainer{in}
	ref := check.Ref{Kind: "ResourceClaim", Namespace: namespace, Name: name}
	o := in.View.Object(ref)
	if o == nil {
		return nil, e.notFound(ref)
	}
	c := &claim{explainer: e, ref: ref, pod: e.user(o), object: o, spec: o.Get("spec")}
	c.requests = requests(c.spec)
	c.exists = func() Step { return yes("the claim is in the input").because(e.age(o)) }
	state := "not allocated"
	if o.Get("status", "allocation").Exists() {
		state = "allocated"
	}
	if pods := check.Reserved(o); len(pods) > 0 {
		state += ", reserved for pod " + abridged(pods)
	}
	if o.Get("metadata", "deletionTimestamp").Exists() {
		state += ", being deleted"
	}
	about := "claim " + namespace + "/" + name
	if c.pod != nil {
		c.entries = names(c.pod, name)
		about += ", for " + c.pod.Ref().String()
	}
	return &Report{Subject: ref, State: state, Chains: []Chain{c.walk(about)}}, nil
}

// age is a manifest's object as evidence.
func (e *explainer) age(o *manifest.Object) Evidence {
	return seen(o.Value, "%s", e.View.RefOf(o)).since(o.Get("metadata", "creationTimestamp"))
}

// user is a pod that a claim is for: one that it is reserved for, else one that waits, else the first.
func (e *explainer) user(o *manifest.Object) *check.Workload {
	var users []*check.Workload
	reserved := check.Reserved(o)
	for _, p := range e.View.Pods() {
		if p.Namespace != e.View.RefOf(o).Namespace {
			continue
		}
		if len(names(p, o.Name)) > 0 || p.Object.Get("status", "extendedResourceClaimStatus", "resourceClaimName").Text() == o.Name {
			users = append(users, p)
		}
	}
	for _, p := range users {
		if slices.Contains(reserved, p.Object.Name) {
			return p
		}
	}
	for _, p := range users {
		if p.NodeName() == "" {
			return p
		}
	}
	if len(users) > 0 {
		return users[0]
	}
	return nil
}

// names are what a pod calls a claim.
func names(p *check.Workload, claim string) []string {
	var all []string
	for entry := range p.Spec.Get("resourceClaims").Each() {
		name := entry.Get("name").Text()
		if entry.Get("resourceClaimName").Text() == claim || generated(p, name) == claim {
			all = append(all, name)
		}
	}
	return all
}

// generated is the name of the claim that was made for a pod from a template, "" before it was made.
func generated(p *check.Workload, entry string) string {
	for s := range p.Object.Get("status", "resourceClaimStatuses").Each() {
		if s.Get("name").Text() == entry {
			return s.Get("resourceClaimName").Text()
		}
	}
	return ""
}

// byClaim is the chain of an entry of a pod's resourceClaims.
func (e *explainer) byClaim(p *check.Workload, entry manifest.Value) Chain {
	name, template := entry.Get("resourceClaimName"), entry.Get("resourceClaimTemplateName")
	c := &claim{explainer: e, pod: p, entries: []string{entry.Get("name").Text()}}
	if name.Exists() {
		return c.named(entry, name)
	}
	return c.templated(entry, template)
}

func (c *claim) take(name string) {
	c.ref = check.Ref{Kind: "ResourceClaim", Namespace: c.pod.Namespace, Name: name}
	if c.object = c.View.Object(c.ref); c.object != nil {
		c.spec = c.object.Get("spec")
		c.requests = requests(c.spec)
	}
}

// named is a claim that somebody made.
func (c *claim) named(entry, name manifest.Value) Chain {
	c.take(name.Text())
	c.exists = func() Step {
		if c.object != nil {
			return c.usable()
		}
		says := c.says(c.pod)
		if !c.whole("ResourceClaim", c.pod.Namespace) && !mentions(says, fmt.Sprintf("resourceclaim %q not found", name.Text())) {
			return unknown("the ResourceClaims of the namespace", "%s is not in the input", c.ref)
		}
		s := no("DRA012", "create the claim in the pod's namespace, or correct its name", "there is no %s", c.ref)
		for _, near := range c.notFound(c.ref).Near {
			s.Help = "claims serve pods of their own namespace: make one there, or move the pod"
			s = s.because(Evidence{Text: "there is " + near})
		}
		return s.because(seen(name, "the pod names it here")).because(says...)
	}
	return c.walk(fmt.Sprintf("claim %s (%s)", entry.Get("name").Text(), name.Text()))
}

// usable: a claim that goes, or that another pod's template made, is of no use.
func (c *claim) usable() Step {
	if at := c.object.Get("metadata", "deletionTimestamp"); at.Exists() {
		return no("DRA005", "wait until the pods that use it have ended, and create it anew", "the claim is being deleted").
			because(seen(at, "deletionTimestamp").since(at))
	}
	return yes("the claim is there").because(c.age(c.object))
}

// templated is a claim that Kubernetes makes for the pod.
func (c *claim) templated(entry, template manifest.Value) Chain {
	name := entry.Get("name").Text()
	if made := generated(c.pod, name); made != "" {
		c.take(made)
	}
	of := check.Ref{Kind: "ResourceClaimTemplate", Namespace: c.pod.Namespace, Name: template.Text()}
	from := c.View.Object(of)
	if c.object == nil && from != nil {
		c.spec = from.Get("spec", "spec")
		c.requests = requests(c.spec)
	}
	c.exists = func() Step {
		if c.object != nil {
			return c.usable()
		}
		var tried []Evidence
		for _, h := range c.events(c.pod.Ref(), "FailedResourceClaimCreation") {
			tried = append(tried, h.evidence)
		}
		switch {
		case c.ref.Name != "":
			return unknown("the ResourceClaims of the namespace", "%s was made for the pod, and is not in the input", c.ref)
		case from == nil && (c.whole("ResourceClaimTemplate", c.pod.Namespace) || mentions(tried, "not found")):
			return no("DRA012", "create the template in the pod's namespace, or correct its name", "there is no %s", of).
				because(seen(template, "the pod names it here")).because(tried...)
		case from == nil:
			return unknown("the ResourceClaimTemplates and ResourceClaims of the namespace", "%s is not in the input", of)
		case len(tried) > 0:
			return no("DRA005", "look at what the message names: a quota, a policy, or the template", "the claim could not be made").
				because(tried[len(tried)-1])
		}
		return unknown("the pod's status and events, and the ResourceClaims of the namespace",
			"the template is there, and no claim that was made from it").because(c.age(from))
	}
	return c.walk(fmt.Sprintf("claim %s (template %s)", name, template.Text()))
}

// waits is the check that says that the pod waits: the scheduler makes the claim of an extended resource
// last, so there is none to name before.
func (c *claim) waits() string {
	if c.extended != "" {
		return "POD010"
	}
	return "DRA005"
}

// byClass is the chain of an extended resource that a class serves: the scheduler makes the claim
// when it has found the devices.
func (e *explainer) byClass(p *check.Workload, resource, class string) Chain {
	want := p.Want(resource)
	c := &claim{explainer: e, pod: p, extended: resource}
	made := p.Object.Get("status", "extendedResourceClaimStatus", "resourceClaimName").Text()
	if made != "" {
		c.take(made)
	}
	count, wants := int64(0), "0"
	if want != nil {
		count, wants = want.Count, amount(p, want)
	}
	if made == "" {
		c.requests = [][]request{{{name: resource, class: class, count: count}}}
	}
	c.exists = func() Step {
		switch {
		case c.object != nil:
			return c.usable()
		case made != "":
			return unknown("the ResourceClaims of the namespace", "%s was made for the pod, and is not in the input", c.ref)
		}
		return Step{Verdict: NotNeeded, Says: "the scheduler makes the claim once it has found the devices"}
	}
	by := "a claim"
	if class != "" {
		by = "device class " + class
	}
	return c.walk(fmt.Sprintf("resource %s, %s requested, by %s", resource, wants, by))
}

// mentions says whether evidence has some words.
func mentions(all []Evidence, words string) bool {
	return slices.ContainsFunc(all, func(e Evidence) bool { return strings.Contains(e.Text, words) })
}
