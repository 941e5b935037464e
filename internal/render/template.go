package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// The annotations of what was rendered.
const (
	// renderedKey is on objects that were written here, with the value wholeObject, and on classes that
	// were given a field, with its name. It says what may be removed again.
	renderedKey = "katacontainers.io/rendered"
	wholeObject = "object"
	// fromKey is on pods whose limits were spelt in another way than they would come back.
	fromKey = "katacontainers.io/rendered-from"
)

// template finds or writes the template of a plan, for pods of a namespace, and returns its name. Equal
// plans share one. The name has a sum of what is in it: a template cannot be changed, so another plan
// needs another name.
func (s *set) template(p *pod, pl *plan) string {
	spec := pl.node(s.policy.Kubernetes)
	name := pl.title() + "-" + digest(spec)
	key := p.namespace + "/" + name
	if s.templates[key] != nil {
		return name
	}
	n := mapping(
		field{"apiVersion", str(s.policy.Kubernetes.resourceAPI())},
		field{"kind", str("ResourceClaimTemplate")},
		field{"metadata", metadata(name, p.namespace)},
		field{"spec", mapping(field{"spec", spec})},
	)
	s.before(p.object, n)
	s.templates[key] = &object{doc: p.doc, node: n, kind: "ResourceClaimTemplate", namespace: p.namespace, name: name}
	return name
}

// metadata is that of an object that is written here.
func metadata(name, namespace string) *yaml.Node {
	m := mapping(field{"name", str(name)})
	if namespace != "" {
		put(m, "namespace", str(namespace))
	}
	put(m, "annotations", mapping(field{renderedKey, str(wholeObject)}))
	return m
}

// node is the plan as the spec of a claim.
func (pl *plan) node(v Version) *yaml.Node {
	requests := list()
	for _, r := range pl.requests {
		body := []field{{"deviceClassName", str(r.flavour.Class)}}
		if len(r.flavour.Selectors) > 0 {
			body = append(body, field{"selectors", selectors(r.flavour.Selectors)})
		}
		if r.count != 1 {
			body = append(body, field{"count", number(r.count)})
		}
		n := mapping(field{"name", str(r.name)})
		if v.resourceAPI() == "resource.k8s.io/v1beta1" {
			n = mapping(append([]field{{"name", str(r.name)}}, body...)...)
		} else {
			put(n, "exactly", mapping(body...))
		}
		requests.Content = append(requests.Content, n)
	}
	devices := mapping(field{"requests", requests})
	if len(pl.constraints) > 0 {
		all := list()
		for _, c := range pl.constraints {
			all.Content = append(all.Content, mapping(field{"requests", words(c.requests)}, field{"matchAttribute", str(c.attribute)}))
		}
		put(devices, "constraints", all)
	}
	return mapping(field{"devices", devices})
}

// selectors are expressions as classes and requests have them.
func selectors(expressions []string) *yaml.Node {
	l := list()
	for _, e := range expressions {
		l.Content = append(l.Content, mapping(field{"cel", mapping(field{"expression", str(e)})}))
	}
	return l
}

// digest is a short sum of what a node says.
func digest(n *yaml.Node) string {
	var b strings.Builder
	var say func(n *yaml.Node)
	say = func(n *yaml.Node) {
		fmt.Fprintf(&b, "%d %q(", n.Kind, n.Value)
		for _, c := range n.Content {
			say(c)
		}
		b.WriteString(")")
	}
	say(n)
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:5])
}

// rendered is what the annotation of an object says.
func (o *object) rendered() string {
	return text(get(o.node, "metadata", "annotations", renderedKey))
}

// annotate writes an annotation, and makes the maps that it needs.
func annotate(holder *yaml.Node, key, value string) {
	meta := get(holder, "metadata")
	if meta == nil || meta.Kind != yaml.MappingNode {
		remove(holder, "metadata")
		meta = mapping()
		insert(holder, min(metadataPair(holder), len(holder.Content)/2), str("metadata"), meta)
	}
	all := get(meta, "annotations")
	if all == nil || all.Kind != yaml.MappingNode {
		remove(meta, "annotations")
		all = mapping()
		put(meta, "annotations", all)
	}
	put(all, key, str(value))
}

// metadataPair is where metadata stands by custom: behind apiVersion and kind, where there are any.
func metadataPair(holder *yaml.Node) int {
	n := 0
	for k := range pairs(holder) {
		if k.Value != "apiVersion" && k.Value != "kind" {
			break
		}
		n++
	}
	return n
}

// unannotate removes an annotation, and the maps that hold nothing else.
func unannotate(holder *yaml.Node, key string) {
	meta := get(holder, "metadata")
	all := get(meta, "annotations")
	if _, _, pair := remove(all, key); pair < 0 || !empty(all) {
		return
	}
	if remove(meta, "annotations"); empty(meta) {
		remove(holder, "metadata")
	}
}
