package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// edited is the text of a document whose nodes were changed: with its comments and its blank lines, in
// its own layout, and ending as it ended.
func (d *document) edited() ([]byte, error) {
	want := clone(d.root)
	text, err := d.dump(d.root)
	if err != nil {
		return nil, err
	}
	// What is written is read again: a library that writes something else must not go unnoticed.
	if !says(text, want) {
		return nil, fmt.Errorf("write the document in line %d: the text would not say what was meant", d.line)
	}
	end := d.body[len(bytes.TrimRight(d.body, " \t\r\n")):]
	text = append(bytes.TrimRight(text, " \t\r\n"), end...)
	if d.json {
		return text, nil
	}
	was, err := load(d.body)
	if err != nil || was == nil {
		return text, err
	}
	base, err := d.dump(was)
	if err != nil {
		return nil, err
	}
	base = append(bytes.TrimRight(base, " \t\r\n"), end...)
	lines := func(b []byte) [][]byte { return slices.Collect(bytes.Lines(b)) }
	merged, ok := merge(lines(d.body), lines(base), lines(text))
	if !ok {
		return text, nil
	}
	// That the lines went to the right places is not left to the comparison.
	whole := bytes.Join(merged, nil)
	if !says(whole, want) {
		return text, nil
	}
	return whole, nil
}

// says tells whether a text means what a tree does.
func says(text []byte, want *yaml.Node) bool {
	got, err := load(text)
	return err == nil && got != nil && equal(got, want)
}

// clone copies a tree. The library takes tags from what it writes.
func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = nil
	for _, child := range n.Content {
		c.Content = append(c.Content, clone(child))
	}
	return &c
}

// equal says whether two nodes mean the same.
func equal(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.Value != b.Value || a.ShortTag() != b.ShortTag() || len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if !equal(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}

// dump writes a node in the layout of the document that it is written to, or before.
func (d *document) dump(n *yaml.Node) ([]byte, error) {
	if d.json {
		return d.dumpJSON(n)
	}
	l := layoutOf(d.root)
	options := []yaml.Option{yaml.WithIndent(l.indent), yaml.WithCompactSeqIndent(l.compact), yaml.WithLineWidth(-1)}
	if bytes.Contains(d.body, []byte("\r\n")) {
		options = append(options, yaml.WithLineBreak(yaml.LineBreakCRLN))
	}
	text, err := yaml.Dump(n, options...)
	if err != nil {
		return nil, fmt.Errorf("write the document in line %d as YAML: %w", d.line, err)
	}
	return text, nil
}

// layout is how a document is indented.
type layout struct {
	indent  int
	compact bool // the dash of a list stands below the first letter of its key
}

// layoutOf takes the layout from the first places that show it.
func layoutOf(n *yaml.Node) layout {
	l := layout{indent: 2, compact: true}
	var indented, listed bool
	var look func(n *yaml.Node)
	look = func(n *yaml.Node) {
		if n.Style&yaml.FlowStyle != 0 || indented && listed {
			return
		}
		for k, v := range pairs(n) {
			by := v.Column - k.Column
			switch {
			case v.Style&yaml.FlowStyle != 0 || v.Line <= k.Line:
			case v.Kind == yaml.MappingNode && !indented && by >= 2 && by <= 9:
				l.indent, indented = by, true
			case v.Kind == yaml.SequenceNode && !listed:
				l.compact, listed = by == 0, true
			}
		}
		for _, c := range n.Content {
			look(c)
		}
	}
	if n != nil {
		look(n)
	}
	return l
}

// dumpJSON writes a node as JSON: the order of keys stays, and so does the indentation.
func (d *document) dumpJSON(n *yaml.Node) ([]byte, error) {
	var compact bytes.Buffer
	if err := writeJSON(&compact, n); err != nil {
		return nil, fmt.Errorf("write the document in line %d as JSON: %w", d.line, err)
	}
	begin := bytes.Trim(d.body, " \t\r\n\ufeff")
	_, second, lines := bytes.Cut(begin, []byte("\n"))
	if !lines {
		return append(compact.Bytes(), '\n'), nil
	}
	indent := second[:len(second)-len(bytes.TrimLeft(second, " \t"))]
	var out bytes.Buffer
	if err := json.Indent(&out, compact.Bytes(), "", string(indent)); err != nil {
		return nil, fmt.Errorf("indent the document in line %d: %w", d.line, err)
	}
	return append(out.Bytes(), '\n'), nil
}

func writeJSON(b *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.DocumentNode:
		return writeJSON(b, n.Content[0])
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := quoteJSON(b, n.Content[i].Value); err != nil {
				return err
			}
			b.WriteByte(':')
			if err := writeJSON(b, n.Content[i+1]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, c); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	default:
		if n.ShortTag() == "!!str" || n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			return quoteJSON(b, n.Value)
		}
		b.WriteString(n.Value) // numbers as they were spelt
	}
	return nil
}

func quoteJSON(b *bytes.Buffer, s string) error {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return fmt.Errorf("quote %s: %w", quoted(s), err)
	}
	b.WriteString(strings.TrimSuffix(text.String(), "\n"))
	return nil
}
