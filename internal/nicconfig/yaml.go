package nicconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// maxYAMLMarks bounds what the YAML library is given. It takes up to a kilobyte for a
// line, and four times that for an element between brackets, before it hands out the
// first value: a text that is far below maxBytes could take a hundred mebibytes.
const (
	maxYAMLMarks = 20_000
	flowWeight   = 4
)

// yaml builds the tree of a YAML text.
func (r *reader) yaml(data []byte) *node {
	marks := bytes.Count(data, []byte("\n"))
	for _, c := range []string{",", "[", "{"} {
		marks += flowWeight * bytes.Count(data, []byte(c))
	}
	if marks > maxYAMLMarks {
		r.text(place{}, "has too many lines, or lists in brackets, for YAML", "write it as JSON, which costs less to read", nil)
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(4*maxDepth))))
	if err != nil {
		r.text(place{}, fmt.Sprintf("cannot be read as YAML: %v", err), "", err)
		return nil
	}
	var doc, second yaml.Node
	if err := loader.Load(&doc); err != nil {
		if !errors.Is(err, io.EOF) { // nothing but comments
			r.notYAML(err)
		}
		return nil
	}
	if err := loader.Load(&second); err == nil {
		r.text(place{second.Line, second.Column}, "has a second document", "keep one document: nothing after a line --- would be read", nil)
		return nil
	} else if !errors.Is(err, io.EOF) {
		r.notYAML(err)
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		r.text(place{doc.Line, doc.Column}, "is not YAML: it has no value", "write resourceList, configList or both", nil)
		return nil
	}
	root, ok := r.fromYAML(doc.Content[0], 0)
	if !ok || root.kind == null {
		return nil
	}
	return root
}

// notYAML reports what the library found.
func (r *reader) notYAML(err error) {
	at, what := place{}, err.Error()
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		at, what = place{e.Mark.Line, e.Mark.Column}, e.Message
		if e.ContextMsg != "" {
			what = fmt.Sprintf("%s, %s that begins in line %d", what, e.ContextMsg, e.ContextMark.Line)
		}
	}
	what = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '?' // it may quote the text
	}, what)
	r.text(at, "is not YAML: "+cut(what, 300), "look at the indentation and the quotes here, or just before; a tab is no indentation", err)
}

// fromYAML builds a value. It returns false when the tree became too large, which has
// been reported. What JSON does not know is a problem of its value alone: nothing that
// is read here needs it, and an alias can stand for a tree without end.
func (r *reader) fromYAML(y *yaml.Node, depth int) (*node, bool) {
	at := place{y.Line, y.Column}
	if !r.grown(at, depth) {
		return nil, false
	}
	n := &node{at: at}
	switch y.Kind {
	case yaml.SequenceNode:
		n.kind = list
		for _, c := range y.Content {
			item, ok := r.fromYAML(c, depth+1)
			if !ok {
				return nil, false
			}
			n.items = append(n.items, item)
		}
	case yaml.MappingNode:
		n.kind = object
		for i := 0; i+1 < len(y.Content); i += 2 {
			key, ok := r.yamlKey(y.Content[i], depth+1)
			if !ok {
				return nil, false
			}
			v, ok := r.fromYAML(y.Content[i+1], depth+1)
			if !ok {
				return nil, false
			}
			n.entries = append(n.entries, entry{key, v})
		}
	case yaml.AliasNode:
		r.text(at, quoted("*"+y.Value)+" is an alias", "write out what it stands for", nil)
	default:
		if n.kind = scalar(y); n.kind != null {
			n.text = y.Value
		}
	}
	if y.Kind != yaml.AliasNode && (y.Style&yaml.TaggedStyle != 0 || n.kind == wrong) {
		r.text(at, quoted(y.Tag)+" is a tag", "remove it, and quote the value if it is a string", nil)
		n.kind = wrong
	}
	return n, true
}

// yamlKey builds a key. In JSON it would be a string.
func (r *reader) yamlKey(y *yaml.Node, depth int) (*node, bool) {
	if y.Kind == yaml.ScalarNode && y.Tag == "!!merge" {
		y.Tag = "!!str" // an unknown key like any other
	}
	n, ok := r.fromYAML(y, depth)
	if ok && n.kind != text && n.kind != wrong {
		r.text(n.at, n.show()+" is not a string, but a key", "quote it", nil)
		n.kind = wrong
	}
	return n, ok
}

// scalar is the type of a scalar without a tag, as YAML resolves it. What only YAML 1.1
// took for something else, such as yes or 2001-01-01, is a string.
func scalar(y *yaml.Node) kind {
	switch y.Tag {
	case "!!null":
		return null
	case "!!bool":
		return boolean
	case "!!int", "!!float":
		return number
	case "!!str", "!!timestamp":
		return text
	}
	return wrong
}
