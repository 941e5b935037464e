package explain

import (
	"fmt"
	"slices"
	"strconv"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// request is what a claim asks for of one class.
type request struct {
	name  string
	at    manifest.Value
	class string
	count int64 // 0 stands for all of a node
	admin bool
}

// requests are those of a claim's spec, each with its alternatives.
func requests(spec manifest.Value) [][]request {
	var all [][]request
	before := ""
	for _, r := range check.Requests(spec) {
		one := requestOf(r.Name, r.At)
		if r.Of != "" && r.Of == before {
			all[len(all)-1] = append(all[len(all)-1], one)
		} else {
			all = append(all, []request{one})
		}
		before = r.Of
	}
	return all
}

func requestOf(name string, at manifest.Value) request {
	r := request{name: name, at: at, class: at.Get("deviceClassName").Text(), count: 1, admin: at.Get("adminAccess").Text() == "true"}
	if n, err := strconv.ParseInt(at.Get("count").Text(), 10, 64); err == nil {
		r.count = n
	}
	if at.Get("allocationMode").Text() == "All" {
		r.count = 0
	}
	return r
}

// classOf is a DeviceClass, nil where the input does not have it.
func (e *explainer) classOf(name string) *manifest.Object {
	return e.View.Object(check.Ref{Kind: "DeviceClass", Name: name})
}

// implicit begins the name of the extended resource that every class has.
const implicit = "deviceclass.resource.kubernetes.io/"

// mapped is the class that serves an extended resource of a pod, and false where device plugins do: the
// scheduler asks a node's status first. The class is "" where the scheduler has made a claim for the pod, and
// the input has neither it nor the class.
func (e *explainer) mapped(p *check.Workload, resource string) (class string, is bool) {
	if p.ByClaim(resource) {
		return e.classGiven(p, resource), true
	}
	served := slices.ContainsFunc(e.View.Nodes(), func(n *check.Node) bool {
		return n.Allocatable[resource] > 0 && (p.NodeName() == "" || p.NodeName() == n.Name)
	})
	if served {
		return "", false
	}
	return e.classFor(resource)
}

// classFor is a class that stands for an extended resource.
func (e *explainer) classFor(resource string) (class string, is bool) {
	for _, c := range e.View.Objects("DeviceClass") {
		if c.Get("spec", "extendedResourceName").Text() == resource || implicit+c.Name == resource {
			return c.Name, true
		}
	}
	return "", false
}

// classGiven is the class of what the scheduler has claimed for an extended resource of a pod.
func (e *explainer) classGiven(p *check.Workload, resource string) string {
	status := p.Object.Get("status", "extendedResourceClaimStatus")
	made := e.View.Object(check.Ref{Kind: "ResourceClaim", Namespace: p.Namespace, Name: status.Get("resourceClaimName").Text()})
	if made == nil {
		class, _ := e.classFor(resource)
		return class
	}
	for m := range status.Get("requestMappings").Each() {
		for _, r := range check.Requests(made.Get("spec")) {
			if m.Get("resourceName").Text() == resource && m.Get("requestName").Text() == r.Name {
				return r.At.Get("deviceClassName").Text()
			}
		}
	}
	return ""
}

// matched is what is published for a request.
type matched struct {
	devices []check.Published // that all selectors of the class and of the request take
	ofClass int               // how many the class alone takes
	// half is about a pool that lacks slices and has devices that match: the scheduler takes none of it.
	half *check.Finding
	// unread is why nothing can be said: a class that is not in the input, or an expression of
	// another version of Kubernetes. failed is a selector that a device made fail.
	unread, failed error
}

// published is asked for more than once, and evaluates an expression for each device of a cluster.
func (c *claim) published(r request) matched {
	if m, ok := c.memo[r.name]; ok {
		return m
	}
	if c.memo == nil {
		c.memo = map[string]matched{}
	}
	m := c.match(r)
	c.memo[r.name] = m
	return m
}

func (e *explainer) match(r request) matched {
	class := e.classOf(r.class)
	if class == nil {
		return matched{unread: fmt.Errorf("DeviceClass %s is not in the input", r.class)}
	}
	general := class.Get("spec", "selectors")
	ofClass, err := e.View.Matching(general)
	if err != nil {
		return matched{unread: err}
	}
	both, err := e.View.Matching(general, r.at.Get("selectors"))
	if err != nil {
		return matched{unread: err}
	}
	m := matched{}
	half := e.halves()
	for d := range both.Taken() {
		if f, lacks := half[pool{d.Driver, d.Pool}]; lacks {
			m.half = &f
			continue
		}
		m.devices = append(m.devices, d)
	}
	m.failed = both.Failed()
	for range ofClass.Taken() {
		m.ofClass++
	}
	return m
}

// pool names one of a driver.
type pool struct{ driver, name string }

// halves are the pools that a check says the scheduler does not use. A note is about what is left of an
// older generation.
func (e *explainer) halves() map[pool]check.Finding {
	all := map[pool]check.Finding{}
	for _, f := range e.View.Findings(finding.PoolIncomplete().ID) {
		if o := e.View.Object(f.Object); o != nil && f.Severity > finding.Note {
			all[pool{o.Get("spec", "driver").Text(), o.Get("spec", "pool", "name").Text()}] = f
		}
	}
	return all
}

// taint is a taint of a device that a request does not tolerate, "" for none. Rules of the cluster
// taint devices, too.
func (e *explainer) taint(c check.Published, r request) string {
	for _, t := range c.Taints {
		if !check.Tolerates(r.at, t) {
			return t.String()
		}
	}
	for _, rule := range e.View.Objects("DeviceTaintRule") {
		by, t := rule.Get("spec", "deviceSelector"), rule.Get("spec", "taint")
		of := check.Taint{Key: t.Get("key").Text(), Value: t.Get("value").Text(), Effect: t.Get("effect").Text()}
		selects := selected(by.Get("driver"), c.Driver) && selected(by.Get("pool"), c.Pool) && selected(by.Get("device"), c.DeviceName.Device)
		if by.Len() > 0 && selects && (of.Effect == "NoSchedule" || of.Effect == "NoExecute") && !check.Tolerates(r.at, of) {
			return of.String() + " of DeviceTaintRule " + rule.Name
		}
	}
	return ""
}

func selected(by manifest.Value, have string) bool { return !by.Exists() || by.Text() == have }

// holders are the claims that keep others from a device, by its name.
func (e *explainer) holders() map[check.DeviceName]check.Allotted {
	all := map[check.DeviceName]check.Allotted{}
	for _, a := range e.View.Allotted() {
		if !a.Shared {
			all[a.DeviceName] = a
		}
	}
	return all
}
