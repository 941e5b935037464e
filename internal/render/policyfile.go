package render

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// What a policy file begins with.
const (
	policyVersion = "katacontainers.io/v1alpha1"
	policyKind    = "RenderPolicy"
)

// ParsePolicy reads a policy file, in YAML or JSON. Every field must be known. An error is of type
// Problems and has all of them, with their lines.
func ParsePolicy(name string, data []byte) (*Policy, error) {
	doc, err := load(data)
	if err != nil {
		return nil, Problems{notYAML(name, 1, err)}
	}
	if doc == nil {
		return nil, Problems{{File: name, What: "is empty", Remedy: "write apiVersion: " + policyVersion + " and kind: " + policyKind}}
	}
	return policyOf(name, doc.Content[0])
}

// policyOf reads a policy from its node.
func policyOf(name string, n *yaml.Node) (*Policy, error) {
	r := &policyReader{strict: strict{file: name}, p: &Policy{Kubernetes: newestVersion}, via: DevicePlugin}
	r.root(n)
	if len(r.problems) == 0 {
		r.check(n)
		r.checkQueue(n)
	}
	if len(r.problems) > 0 {
		return nil, r.problems.sorted()
	}
	return r.p, nil
}

// policyReader reads one policy.
type policyReader struct {
	strict
	p   *Policy
	via Via // for flavours that do not say
}

func (r *policyReader) root(n *yaml.Node) {
	var version, kind string
	var flavours, alignment *yaml.Node
	r.fields("", n, readers{
		"apiVersion":   r.string(&version, oneOf(policyVersion)),
		"kind":         r.string(&kind, oneOf(policyKind)),
		"metadata":     func(string, *yaml.Node) {}, // a name, and what tools that run functions add
		"kubernetes":   r.kubernetes,
		"featureGates": r.strings(&r.p.FeatureGates, oneOf(gateNames()...)),
		"via":          r.readVia(&r.via),
		"flavours":     func(_ string, n *yaml.Node) { flavours = n },
		"alignment":    func(_ string, n *yaml.Node) { alignment = n },
		"kueue":        r.queue,
	})
	if n.Kind != yaml.MappingNode {
		return
	}
	for _, f := range []struct{ key, value, want string }{{"apiVersion", version, policyVersion}, {"kind", kind, policyKind}} {
		if at(n, f.key) < 0 {
			r.fault(f.key, n, "is missing", "write "+f.key+": "+f.want)
		}
	}
	if flavours == nil {
		r.p.Flavours = Default().Flavours
		for i := range r.p.Flavours {
			r.p.Flavours[i].Via = r.via
		}
	} else {
		r.each("flavours", flavours, r.flavour)
	}
	if alignment != nil {
		r.each("alignment", alignment, r.alignment)
	}
}

func (r *policyReader) kubernetes(path string, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!float" {
		r.fault(path, n, "is a number, and 1.40 would be 1.4", "put it in quotes")
		return
	}
	var s string
	r.string(&s, func(s string) (string, string) {
		v, err := ParseVersion(s)
		switch {
		case err != nil:
			return "is no version of Kubernetes", fmt.Sprintf("write %q, for example", newestVersion)
		case v < oldestVersion:
			return "has no version of resource.k8s.io that is known here", fmt.Sprintf("write %s or later", oldestVersion)
		}
		r.p.Kubernetes = v
		return "", ""
	})(path, n)
}

func (r *policyReader) readVia(to *Via) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		var s string
		r.string(&s, oneOf(string(DevicePlugin), string(DRA), string(ExtendedResource)))(path, n)
		if s != "" {
			*to = Via(s)
		}
	}
}

func (r *policyReader) flavour(path string, n *yaml.Node) {
	f := Flavour{Via: r.via}
	r.fields(path, n, readers{
		"resource":       r.string(&f.Resource, resourceName),
		"deviceClass":    r.string(&f.Class, subdomain),
		"request":        r.string(&f.Request, requestName),
		"selectors":      r.strings(&f.Selectors, expression),
		"classSelectors": r.strings(&f.ClassSelectors, expression),
		"via":            r.readVia(&f.Via),
	})
	for _, key := range []string{"resource", "deviceClass"} {
		if n.Kind == yaml.MappingNode && at(n, key) < 0 {
			r.fault(below(path, key), n, "is missing", "a flavour is a name in limits and a DeviceClass")
		}
	}
	if f.Request == "" {
		f.Request = defaultRequest(f.Resource)
	}
	if f.ClassSelectors == nil {
		f.ClassSelectors = knownClass(f.Class)
	}
	r.p.Flavours = append(r.p.Flavours, f)
}

// defaultRequest is the last part of the resource's name, as far as requests may be called so.
func defaultRequest(resource string) string {
	_, name, _ := strings.Cut(resource, "/")
	name = strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(name), "-"), "-")
	return strings.Trim(name[:min(len(name), mostRequestName)], "-")
}

func (r *policyReader) alignment(path string, n *yaml.Node) {
	var a Alignment
	mode := "Pairs"
	r.fields(path, n, readers{
		"resources":      r.strings(&a.Resources, resourceName),
		"matchAttribute": r.string(&a.Attribute, attributeName),
		"mode":           r.string(&mode, oneOf("Pairs", "Together")),
	})
	for _, key := range []string{"resources", "matchAttribute"} {
		if n.Kind == yaml.MappingNode && at(n, key) < 0 {
			r.fault(below(path, key), n, "is missing", "an alignment names resources and an attribute that they are to share")
		}
	}
	a.Together = mode == "Together"
	r.p.Alignments = append(r.p.Alignments, a)
}

// check holds the parts of the policy against each other.
func (r *policyReader) check(n *yaml.Node) {
	flavours, alignment := items(get(n, "flavours")), items(get(n, "alignment"))
	for i, node := range flavours {
		r.checkFlavour(fmt.Sprintf("flavours[%d]", i), node, i)
	}
	if at(n, "flavours") >= 0 && len(flavours) == 0 {
		r.fault("flavours", get(n, "flavours"), "is empty", "name one, or remove the field for those that are built in")
	}
	for i, a := range r.p.Alignments {
		path := fmt.Sprintf("alignment[%d].resources", i)
		names := get(alignment[i], "resources")
		if len(a.Resources) < 2 {
			r.fault(path, names, "has fewer than two resources", "name those that are to share "+a.Attribute)
		}
		for j, name := range a.Resources {
			if r.p.flavour(name) == nil {
				r.fault(fmt.Sprintf("%s[%d]", path, j), names.Content[j], "is not a flavour", "name the resource of one of the flavours")
			}
		}
	}
}

// checkFlavour holds a flavour against those before it.
func (r *policyReader) checkFlavour(path string, n *yaml.Node, i int) {
	f := r.p.Flavours[i]
	for _, other := range r.p.Flavours[:i] {
		switch {
		case other.Resource == f.Resource:
			r.fault(path+".resource", get(n, "resource"), "is a flavour already", "remove one of the two")
		case other.Request == f.Request:
			r.fault(path+".request", n, quoted(f.Request)+" is what requests of "+other.Resource+" are called", "write another request")
		case other.Class == f.Class && slices.Equal(other.Selectors, f.Selectors):
			r.fault(path+".deviceClass", get(n, "deviceClass"), "is the class of "+other.Resource+" too, with the same selectors",
				"give one of them a class or selectors of its own, or a claim is of both")
		}
	}
	if f.Via != ExtendedResource {
		return
	}
	if len(f.Selectors) > 0 {
		r.fault(path+".selectors", get(n, "selectors"), "narrow a claim, and with via: extended-resource there is none to narrow",
			"make a class of its own with them in classSelectors")
	}
	if len(f.ClassSelectors) == 0 {
		r.fault(path+".classSelectors", n, "is missing, and with via: extended-resource the class has to be written",
			"say in CEL which devices are of the class")
	}
}
