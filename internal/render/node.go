package render

import (
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"
)

// The functions here read and edit YAML nodes. They take nil for a node that is not there, so that
// a path can be followed without asking at each step. Aliases are not followed: documents that
// have some are not edited.

// at returns the index of a key in a mapping, or -1.
func at(m *yaml.Node, key string) int {
	if m == nil || m.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if k := m.Content[i]; k.Kind == yaml.ScalarNode && k.Value == key {
			return i
		}
	}
	return -1
}

// get follows keys from a mapping.
func get(m *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		i := at(m, key)
		if i < 0 {
			return nil
		}
		m = m.Content[i+1]
	}
	return m
}

// text is the value of a scalar, "" where there is none.
func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return ""
	}
	return n.Value
}

// items are the elements of a list.
func items(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// pairs goes over the keys and values of a mapping.
func pairs(m *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if m == nil || m.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(m.Content); i += 2 {
			if !yield(m.Content[i], m.Content[i+1]) {
				return
			}
		}
	}
}

// doubled finds a key that stands twice in one mapping. The library does not mind when it reads nodes.
func doubled(n *yaml.Node) *yaml.Node {
	seen := map[string]bool{}
	for k := range pairs(n) {
		if seen[k.Value] && k.Kind == yaml.ScalarNode {
			return k
		}
		seen[k.Value] = true
	}
	for _, c := range n.Content {
		if k := doubled(c); k != nil {
			return k
		}
	}
	return nil
}

// empty says whether nothing is in a list or mapping.
func empty(n *yaml.Node) bool { return n == nil || len(n.Content) == 0 }

// insert puts a key into a mapping, as the pair with that number, or at the end.
func insert(m *yaml.Node, pair int, key, value *yaml.Node) {
	if pair >= 0 && pair <= len(m.Content)/2 {
		m.Content = slices.Insert(m.Content, 2*pair, key, value)
		return
	}
	m.Content = append(m.Content, key, value)
}

// put writes a key at the end of a mapping, or in its place.
func put(m *yaml.Node, key string, value *yaml.Node) {
	if i := at(m, key); i >= 0 {
		m.Content[i+1] = value
		return
	}
	insert(m, -1, str(key), value)
}

// remove takes a key out of a mapping, and says which pair it was.
func remove(m *yaml.Node, key string) (k, v *yaml.Node, pair int) {
	i := at(m, key)
	if i < 0 {
		return nil, nil, -1
	}
	k, v = m.Content[i], m.Content[i+1]
	m.Content = slices.Delete(m.Content, i, i+2)
	return k, v, i / 2
}

// str makes a string.
func str(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

// number makes a whole number.
func number(n int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(n)}
}

// list makes a list.
func list(content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: content}
}

// words makes a list of strings, on one line.
func words(all []string) *yaml.Node {
	n := list()
	n.Style = yaml.FlowStyle
	for _, s := range all {
		n.Content = append(n.Content, str(s))
	}
	return n
}

// field is a key with its value.
type field struct {
	key   string
	value *yaml.Node
}

// mapping makes a mapping, without the fields that have no value.
func mapping(fields ...field) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, f := range fields {
		if f.value != nil {
			n.Content = append(n.Content, str(f.key), f.value)
		}
	}
	return n
}

// texts are the strings of a list.
func texts(n *yaml.Node) []string {
	var all []string
	for _, item := range items(n) {
		all = append(all, text(item))
	}
	return all
}
