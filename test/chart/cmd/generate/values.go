package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// value is a key of values.yaml with what its comment says.
type value struct {
	key      string
	path     string // with those above it
	line     int
	words    string   // for people
	fallback any      // the default
	children []*value // of a group
	// At most one of these; none for what its default says.
	kind    string // @type: a name in kinds()
	pattern string // @pattern: of a string
	enum    []string
	flags   []string // @flags: which the program takes; with = behind it one has a value
}

// parse reads values.yaml. A comment right above a key is about that key.
func parse(text []byte) ([]*value, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("line 1: there is no mapping: write values as key: value")
	}
	return mapping(document.Content[0], "")
}

// mapping reads the keys of a group.
func mapping(node *yaml.Node, above string) ([]*value, error) {
	var all []*value
	for i := 0; i+1 < len(node.Content); i += 2 {
		v, err := read(node.Content[i], node.Content[i+1], above)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// read reads a key and what is below it.
func read(key, node *yaml.Node, above string) (*value, error) {
	v := &value{key: key.Value, path: strings.TrimPrefix(above+"."+key.Value, "."), line: key.Line}
	if err := node.Decode(&v.fallback); err != nil {
		return nil, fmt.Errorf("line %d: read %s: %w", v.line, v.path, err)
	}
	if err := v.comment(key.HeadComment); err != nil {
		return nil, fmt.Errorf("line %d: %s: %w", v.line, v.path, err)
	}
	group := node.Kind == yaml.MappingNode && v.kind == ""
	switch {
	case group && len(node.Content) == 0:
		return nil, fmt.Errorf("line %d: %s is empty: say by @type what may be in it", v.line, v.path)
	case node.Kind == yaml.SequenceNode && v.kind == "" && v.flags == nil:
		return nil, fmt.Errorf("line %d: %s is a list: say by @type or @flags of what", v.line, v.path)
	case !group && v.words == "":
		return nil, fmt.Errorf("line %d: %s has no description: write a comment above it", v.line, v.path)
	case group:
		var err error
		v.children, err = mapping(node, v.path)
		return v, err
	}
	return v, nil
}

// comment reads the comment above a key. Only the block next to it counts.
func (v *value) comment(text string) error {
	blocks := strings.Split(text, "\n\n")
	var words []string
	for line := range strings.SplitSeq(blocks[len(blocks)-1], "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(line, "#"))
		name, rest, _ := strings.Cut(line, " ")
		switch name {
		case "@type":
			v.kind = rest
		case "@pattern":
			v.pattern = rest
		case "@enum":
			v.enum = strings.Fields(rest)
		case "@flags":
			v.flags = strings.Fields(rest)
		default:
			if strings.HasPrefix(name, "@") {
				return fmt.Errorf("%s is not known: there are @type, @pattern, @enum and @flags", name)
			}
			words = append(words, line)
		}
	}
	v.words = strings.TrimSpace(strings.Join(words, " "))
	said := slices.DeleteFunc([]bool{v.kind != "", v.pattern != "", v.enum != nil, v.flags != nil}, func(b bool) bool { return !b })
	if len(said) > 1 {
		return errors.New("more than one of @type, @pattern, @enum and @flags: keep one")
	}
	return nil
}

// defaultText is the default as JSON, in one line.
func (v *value) defaultText() (string, error) {
	text, err := json.Marshal(v.fallback)
	if err != nil {
		return "", fmt.Errorf("write the default of %s: %w", v.path, err)
	}
	return string(text), nil
}
