package render

import (
	"errors"

	"go.yaml.in/yaml/v4"
)

// What a list of resources is, in the specification of KRM functions.
const (
	resourceListAPI  = "config.kubernetes.io/v1"
	resourceListKind = "ResourceList"
)

// Function is Render as a function of kustomize or kpt: a ResourceList whose functionConfig is the policy
// becomes a ResourceList with the rendered items, and with results that say what was refused or is worth
// knowing. Where something was refused the items are as they were, and there is an error as well, so that the
// program ends with a code: that is how such tools see that a function has failed.
//
// Without a functionConfig the policy is base; where that is nil as well, nobody has said which way to take.
func Function(data []byte, base *Policy) ([]byte, error) {
	const name = "stdin"
	d := &document{file: name, line: 1, body: data, changed: true}
	if err := d.parse(); err != nil {
		return nil, Problems{notYAML(name, 1, err)}
	}
	var root *yaml.Node
	if d.root != nil {
		root = d.root.Content[0]
	}
	if text(get(root, "apiVersion")) != resourceListAPI || text(get(root, "kind")) != resourceListKind {
		return nil, Problems{{File: name, Line: 1, What: "is no ResourceList",
			Remedy: "begin with apiVersion: " + resourceListAPI + " and kind: " + resourceListKind}}
	}
	policy := base
	if config := get(root, "functionConfig"); config != nil && config.ShortTag() != "!!null" {
		var err error
		if policy, err = policyOf("functionConfig", config); err != nil {
			return nil, err
		}
	}
	if policy == nil {
		return nil, Problems{{File: name, Line: 1, What: "does not say which way to take",
			Remedy: "give a " + policyKind + " as its functionConfig"}}
	}
	s := &set{policy: policy}
	in := get(root, "items")
	for _, item := range items(in) {
		s.take(d, in, item)
	}
	s.render()
	var failed error
	if len(s.problems) > 0 {
		s.problems = s.problems.sorted()
		failed = s.problems
		if err := d.parse(); err != nil { // what was refused is half edited
			return nil, errors.Join(failed, err)
		}
		root = d.root.Content[0]
	}
	s.results(root)
	out, err := d.edited()
	return out, errors.Join(failed, err)
}

// results adds problems and notes to the results that earlier functions have left.
func (s *set) results(root *yaml.Node) {
	if len(s.problems)+len(s.notes) == 0 {
		return
	}
	all := get(root, "results")
	if all == nil || all.Kind != yaml.SequenceNode {
		remove(root, "results")
		all = list()
		put(root, "results", all)
	}
	all.Style &^= yaml.FlowStyle
	for _, p := range s.problems {
		p.File, p.Line = "", 0 // lines of the list are nobody's
		all.Content = append(all.Content, mapping(field{"message", str(p.Error())}, field{"severity", str("error")}))
	}
	for _, n := range s.notes {
		all.Content = append(all.Content, mapping(field{"message", str(n.Object + ": " + n.What)}, field{"severity", str("info")}))
	}
}
