package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"
)

// mostBytes is how long a file may be. Dumps of whole clusters are not what is rendered.
const mostBytes = 16 << 20

// source is a file as its documents.
type source struct {
	docs []*document
}

// document is one document of a stream. What is not edited is written as it was read.
type document struct {
	file string
	line int    // of the first line of its body
	head []byte // the line --- that begins it; empty for the first document of a stream that has none
	body []byte
	root *yaml.Node // nil when nothing but comments is there
	json bool
	// aliased documents have anchors or aliases. To edit one place would edit another one too.
	aliased bool

	// before are written before it, in documents of their own.
	before           []*yaml.Node
	changed, removed bool
}

// split cuts a stream at its lines ---, which in YAML and between JSON texts can be nothing else.
func split(data []byte) []*document {
	docs := []*document{{line: 1}}
	line := 0
	for text := range bytes.Lines(data) {
		line++
		last := docs[len(docs)-1]
		rest, ok := bytes.CutPrefix(text, []byte("---"))
		if !ok || len(rest) > 0 && !bytes.ContainsRune([]byte(" \t\r\n"), rune(rest[0])) {
			last.body = append(last.body, text...)
			continue
		}
		d := &document{line: line, head: text}
		if trimmed := bytes.TrimSpace(rest); len(trimmed) > 0 && trimmed[0] != '#' {
			d.head, d.body = text[:3], bytes.Clone(rest) // content behind the dashes
		} else {
			d.line++
		}
		if line == 1 {
			docs = docs[:0]
		}
		docs = append(docs, d)
	}
	return docs
}

// read takes a file into the set.
func (s *set) read(f File) {
	src := &source{}
	s.sources = append(s.sources, src)
	if len(f.Data) > mostBytes {
		s.problems.add(Problem{File: f.Name, What: fmt.Sprintf("has %d bytes", len(f.Data)),
			Remedy: fmt.Sprintf("a file has %d bytes at most", mostBytes)})
		return
	}
	src.docs = split(f.Data)
	for _, d := range src.docs {
		d.file = f.Name
		if err := d.parse(); err != nil {
			s.problems.add(notYAML(f.Name, d.line, err))
			continue
		}
		if d.root != nil {
			s.take(d, nil, d.root.Content[0])
		}
	}
}

// parse reads the body.
func (d *document) parse() error {
	body := d.body
	begin := bytes.TrimLeft(body, " \t\r\n\ufeff")
	if !hasContent(body) {
		return nil // a directive of YAML, or comments
	}
	if len(begin) > 0 && begin[0] == '{' && json.Valid(begin) {
		d.json = true
		body = bytes.ReplaceAll(body, []byte("\t"), []byte(" ")) // JSON has tabs only where blanks may be
	}
	root, err := load(body)
	if err != nil || root == nil {
		return err
	}
	d.root = root
	d.aliased = aliased(root)
	return nil
}

// hasContent says whether a text has more than blank lines, comments and directives.
func hasContent(body []byte) bool {
	for line := range bytes.Lines(body) {
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return true
		}
	}
	return false
}

// aliased says whether a tree has anchors, aliases or merge keys.
func aliased(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Tag == "!!merge" {
		return true
	}
	return slices.ContainsFunc(n.Content, aliased)
}

// write puts the documents of a file together.
func write(src *source) ([]byte, error) {
	var out []byte
	first := false // the next document begins the stream, as one did that has gone
	add := func(head, body []byte) {
		if first && len(out) == 0 {
			head = nil
		}
		first = false
		out = append(append(out, head...), body...)
	}
	for _, d := range src.docs {
		head := d.head
		for _, n := range d.before {
			text, err := d.dump(n)
			if err != nil {
				return nil, err
			}
			if len(head) == 0 {
				add(nil, text)
				head = d.separator()
			} else {
				add(d.separator(), text)
			}
		}
		if d.removed {
			first = first || len(out) == 0 && len(head) == 0
			continue
		}
		body := d.body
		if d.changed {
			var err error
			if body, err = d.edited(); err != nil {
				return nil, err
			}
			if len(head) == 3 {
				head = d.separator()
			}
		}
		add(head, body)
	}
	return out, nil
}

// separator is a line between documents, as the file ends its lines.
func (d *document) separator() []byte {
	if bytes.Contains(d.body, []byte("\r\n")) {
		return []byte("---\r\n")
	}
	return []byte("---\n")
}
