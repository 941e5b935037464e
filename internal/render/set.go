package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// set is what is rendered together.
type set struct {
	policy   *Policy
	sources  []*source
	objects  []*object
	problems Problems
	notes    []Note

	// templates and classes are those of the documents, and those that were written for them. They are
	// looked up, never ranged over.
	templates map[string]*object // by namespace/name
	classes   map[string]*object // by name
	mapped    map[string]*object // classes by the name of the extended resource

	// left are templates that a pod has no claim of any more.
	left map[*object]bool
}

// object is one Kubernetes object.
type object struct {
	doc  *document
	list *yaml.Node // the list that it is an element of, nil when it is a document
	node *yaml.Node

	api, kind, namespace, name string
	removed                    bool
}

// String names the object in problems.
func (o *object) String() string {
	name := o.name
	if o.namespace != "" {
		name = o.namespace + "/" + name
	}
	return strings.TrimSpace(o.kind + " " + name)
}

// take adds an object, or the elements of a List.
func (s *set) take(d *document, in, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		return
	}
	meta := get(n, "metadata")
	o := &object{doc: d, list: in, node: n, api: text(get(n, "apiVersion")), kind: text(get(n, "kind")),
		namespace: text(get(meta, "namespace")), name: text(get(meta, "name"))}
	if o.name == "" {
		o.name = text(get(meta, "generateName"))
	}
	if o.kind == "List" && o.api == "v1" && in == nil {
		in := get(n, "items")
		for _, item := range items(in) {
			s.take(d, in, item)
		}
		return
	}
	s.objects = append(s.objects, o)
}

// index finds the objects that others refer to.
func (s *set) index() {
	s.templates, s.classes, s.mapped, s.left = map[string]*object{}, map[string]*object{}, map[string]*object{}, map[*object]bool{}
	for _, o := range s.objects {
		if !strings.HasPrefix(o.api, "resource.k8s.io/") {
			continue
		}
		switch o.kind {
		case "ResourceClaimTemplate":
			s.templates[o.namespace+"/"+o.name] = o
		case "DeviceClass":
			s.classes[o.name] = o
			name := text(get(o.node, "spec", "extendedResourceName"))
			if name == "" {
				continue
			}
			if other := s.mapped[name]; other != nil {
				// The newer of two wins, and when one of them goes the scheduler of 1.37.2 forgets the name:
				// kubernetes/kubernetes#141103.
				s.refuse(o, get(o.node, "spec", "extendedResourceName"), "spec.extendedResourceName",
					"is that of "+other.String()+" too", "keep it in one class, ever: two get in each other's way")
			}
			s.mapped[name] = o
		}
	}
}

// refuse reports why an object cannot be rendered.
func (s *set) refuse(o *object, n *yaml.Node, path, what, remedy string) {
	p := Problem{File: o.doc.file, Line: o.line(n), Object: o.String(), Path: path, What: what, Remedy: remedy}
	if n != nil && n.Kind == yaml.ScalarNode {
		p.Value = quoted(n.Value)
	}
	s.problems.add(p)
}

// note tells the reader of the result something.
func (s *set) note(o *object, n *yaml.Node, format string, args ...any) {
	s.notes = append(s.notes, Note{File: o.doc.file, Line: o.line(n), Object: o.String(), What: fmt.Sprintf(format, args...)})
}

// line is where a node is in the file, or else where the object begins. What was made here has no line.
func (o *object) line(n *yaml.Node) int {
	if n == nil || n.Line == 0 {
		n = o.node
	}
	return o.doc.line + max(n.Line, 1) - 1
}

// before adds an object before another one: in a document of its own, or in the same list.
func (s *set) before(o *object, n *yaml.Node) {
	if o.list == nil {
		o.doc.before = append(o.doc.before, n)
		return
	}
	o.list.Content = slices.Insert(o.list.Content, max(slices.Index(o.list.Content, o.node), 0), n)
	o.doc.changed = true
}

// drop removes an object.
func (s *set) drop(o *object) {
	o.removed = true
	if o.list == nil {
		o.doc.removed = true
		return
	}
	o.list.Content = slices.DeleteFunc(o.list.Content, func(n *yaml.Node) bool { return n == o.node })
	o.doc.changed = true
}

// mentions says whether the text of an object's document has a word.
func (o *object) mentions(word string) bool { return bytes.Contains(o.doc.body, []byte(word)) }
