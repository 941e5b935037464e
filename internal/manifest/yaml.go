package manifest

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

// mostAliased is how many values the aliases of a document may stand for. Each can stand for
// others, so that a few lines can be more than any computer holds.
const mostAliased = 1_000_000

// anchored is a value that aliases stand for, with the size of its tree.
type anchored struct {
	n    *node
	size int
}

// yamlReader reads one YAML document into a tree.
type yamlReader struct {
	b           *builder
	data        []byte
	line, inner int32 // what is added to the library's lines and columns
	offsets     []int // of the lines, when something asked for them
	anchors     map[*yaml.Node]anchored
	// size is how many values there would be if every alias were written out. Whoever walks
	// through the tree sees as many. Of these, aliased came by aliases.
	size, aliased int
	template      bool // something looks like a template's braces
}

// read returns nil for a document without a value.
func (r *yamlReader) read() (*node, error) {
	loader, err := yaml.NewLoader(bytes.NewReader(r.data),
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(2*maxDepth))))
	if err != nil {
		return nil, r.wrong(err)
	}
	var doc yaml.Node
	if err := loader.Load(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, r.wrong(err)
	}
	if err := loader.Load(&yaml.Node{}); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, r.wrong(err)
		}
		return nil, Problem{Place: r.place(doc.Line, doc.Column),
			What: "is not YAML: there is more behind the document, without a line of three hyphens"}
	}
	if len(doc.Content) != 1 {
		return nil, nil
	}
	r.anchors = map[*yaml.Node]anchored{}
	return r.convert(doc.Content[0], 0)
}

func (r *yamlReader) place(line, column int) Place {
	return Place{r.b.file, line + int(r.line), column + int(r.inner)}
}

// wrong is what the library found, in one printable line.
func (r *yamlReader) wrong(err error) error {
	at, what := r.place(1, 1), err.Error()
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		at, what = r.place(max(e.Mark.Line, 1), max(e.Mark.Column, 1)), e.Message
	}
	what = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '?'
	}, what)
	if len(what) > 300 {
		what = strings.ToValidUTF8(what[:300], "") + "..."
	}
	return Problem{Place: at, What: "is not YAML: " + what}
}

func (r *yamlReader) convert(y *yaml.Node, depth int) (*node, error) {
	if y.Kind == yaml.AliasNode {
		return r.alias(y)
	}
	before := r.size
	r.size++
	n := &node{line: int32(y.Line) + r.line, column: int32(y.Column) + r.inner}
	if err := r.b.grown(n, depth); err != nil {
		return nil, err
	}
	switch y.Kind {
	case yaml.SequenceNode:
		n.kind = List
		for _, c := range y.Content {
			item, err := r.convert(c, depth+1)
			if err != nil {
				return nil, err
			}
			n.children = append(n.children, item)
		}
	case yaml.MappingNode:
		n.kind = Map
		if err := r.entries(n, y, depth); err != nil {
			return nil, err
		}
	default:
		r.scalar(n, y)
	}
	if y.Anchor != "" {
		r.anchors[y] = anchored{n, r.size - before}
	}
	return n, nil
}

func (r *yamlReader) alias(y *yaml.Node) (*node, error) {
	a := r.anchors[y.Alias]
	if a.n == nil {
		return nil, Problem{Place: r.place(y.Line, y.Column),
			What: "is not YAML that ends: an alias stands for something that it is in"}
	}
	r.size += a.size
	if r.aliased += a.size; r.aliased > mostAliased {
		return nil, Problem{Place: r.place(y.Line, y.Column),
			What: fmt.Sprintf("is too large: its aliases stand for more than %d values", mostAliased)}
	}
	return a.n, nil
}

func (r *yamlReader) entries(n *node, y *yaml.Node, depth int) error {
	var merged []*node
	for i := 0; i+1 < len(y.Content); i += 2 {
		k := y.Content[i]
		if k.Kind != yaml.ScalarNode { // {{ .Values.name }} is a map as a key to YAML
			r.template = r.template || k.Kind == yaml.MappingNode
			continue
		}
		if forgotten(k.Value) {
			continue
		}
		v, err := r.convert(y.Content[i+1], depth+1)
		if err != nil {
			return err
		}
		if k.Tag == "!!merge" {
			merged = append(merged, v)
			continue
		}
		r.template = r.template || strings.Contains(k.Value, "{{")
		key := &node{kind: Text, line: int32(k.Line) + r.line, column: int32(k.Column) + r.inner,
			text: r.b.intern([]byte(k.Value))}
		n.children = append(n.children, key, v)
	}
	// Merged entries come first: of a key that stands twice the last one counts.
	for _, m := range merged {
		for _, from := range mergedMaps(m) {
			if r.b.values += len(from.children); r.b.values > maxValues {
				return r.b.grown(n, depth)
			}
			n.children = append(append([]*node{}, from.children...), n.children...)
		}
	}
	return nil
}

// mergedMaps are the maps of a merge key: one, or a list of which the first has priority.
func mergedMaps(n *node) []*node {
	if n.kind == Map {
		return []*node{n}
	}
	var all []*node
	for _, item := range n.children {
		if n.kind == List && item.kind == Map {
			all = append(all, item)
		}
	}
	return all
}

func (r *yamlReader) scalar(n *node, y *yaml.Node) {
	n.kind, n.text = Text, y.Value
	switch y.Tag {
	case "!!null":
		n.kind, n.text = Null, ""
	case "!!bool":
		n.kind = Bool
	case "!!int", "!!float":
		n.kind = Number
	}
	switch {
	case y.Style&yaml.LiteralStyle != 0:
		n.inner = r.indentation(y)
	case y.Style&yaml.FoldedStyle == 0 && strings.Contains(y.Value,
		"{{") && y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0:
		r.template = true
	}
	if len(n.text) <= 64 {
		n.text = r.b.intern([]byte(n.text))
	}
}

// indentation is that of the text of a literal block, plus one. It is 0 where it is given
// by a digit, which counts from the parent's: nobody writes that for JSON.
func (r *yamlReader) indentation(y *yaml.Node) int32 {
	if r.offsets == nil {
		r.offsets = []int{0}
		for i, c := range r.data {
			if c == '\n' {
				r.offsets = append(r.offsets, i+1)
			}
		}
	}
	header := r.lineOf(y.Line)
	if at := bytes.LastIndexByte(header, '|'); at < 0 || bytes.ContainsAny(header[at:min(at+3, len(header))], "123456789") {
		return 0
	}
	for l := y.Line + 1; l <= len(r.offsets); l++ {
		line := r.lineOf(l)
		if text := bytes.TrimLeft(line, " "); len(bytes.TrimSpace(text)) > 0 {
			return int32(len(line)-len(text)) + 1 + r.inner
		}
	}
	return 0
}

func (r *yamlReader) lineOf(line int) []byte {
	if line < 1 || line > len(r.offsets) {
		return nil
	}
	text, _, _ := bytes.Cut(r.data[r.offsets[line-1]:], []byte("\n"))
	return text
}
