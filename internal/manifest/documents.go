package manifest

import (
	"bytes"
	"iter"
	"path/filepath"
	"slices"
	"strings"
)

// text reads all documents of an input.
func (l *loader) text(data []byte, input *Input) []error {
	if looksLikeJSON(input.Name, data) {
		return l.json(data, input)
	}
	var errs []error
	for line, doc := range documents(data) {
		if err := l.document(doc, line, input); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// looksLikeJSON: what begins with a brace is, but for a template's. YAML's flow style does so
// too; such a file does not have the extension of JSON, and no quotes behind the brace.
func looksLikeJSON(name string, data []byte) bool {
	begin := bytes.TrimLeft(data, " \t\r\n")
	if strings.EqualFold(filepath.Ext(name), ".json") {
		return len(begin) > 0
	}
	if len(begin) == 0 || begin[0] != '{' {
		return false
	}
	inside := bytes.TrimLeft(begin[1:], " \t\r\n")
	return len(inside) > 0 && inside[0] == '"'
}

func (l *loader) json(data []byte, input *Input) []error {
	r := newJSON(data, 1, 0, &l.build)
	for {
		n, err := r.next()
		if err != nil {
			return []error{err}
		}
		if n == nil {
			return nil
		}
		l.add(n, "", "", input)
	}
}

// documents cuts a YAML text where a line begins with three hyphens, each part with the
// number of lines before it. Kubernetes cuts there too.
func documents(data []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		begin, first, line := 0, 0, 0
		for at := 0; at < len(data); line++ {
			end := bytes.IndexByte(data[at:], '\n') + 1
			if end == 0 {
				end = len(data) - at
			}
			if text := data[at : at+end]; at > begin && isSeparator(text) {
				if !yield(first, data[begin:at]) {
					return
				}
				begin, first = at, line
			}
			at += end
		}
		yield(first, data[begin:])
	}
}

func isSeparator(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

func (l *loader) document(data []byte, line int, input *Input) error {
	if isEmpty(data) {
		return nil
	}
	if items, footer, ok := kubectlList(data); ok {
		return l.itemByItem(items, footer, line, input)
	}
	n, template, err := l.yaml(data, line)
	switch {
	case err != nil && bytes.Contains(data, []byte("{{")):
		l.isTemplate(input, Place{input.Name, line + 1, 1})
		return nil
	case err != nil:
		return err
	case n == nil:
		return nil
	case template && !(Value{n: n}).fromCluster():
		l.isTemplate(input, Place{input.Name, int(n.line), int(n.column)})
		return nil
	}
	l.add(n, "", "", input)
	return nil
}

func (l *loader) yaml(data []byte, line int) (*node, bool, error) {
	r := &yamlReader{b: &l.build, data: data, line: int32(line)}
	n, err := r.read()
	return n, r.template, err
}

// isTemplate notes the first place of an input that is the source of a template.
func (l *loader) isTemplate(input *Input, at Place) {
	if input.Template == nil {
		input.Template = &at
	}
}

func (v Value) fromCluster() bool {
	o, ok := asObject(v, "", "")
	return ok && o.FromCluster
}

// add adds the objects of a tree, but for those that are sources of templates.
func (l *loader) add(n *node, apiVersion, kind string, input *Input) {
	for _, o := range l.objects(Value{n: n, in: &source{file: input.Name, at: input.at()}}, apiVersion, kind) {
		if input.unplaced {
			o.in = &source{file: input.Name, at: &Place{File: o.String()}}
		}
		if !o.FromCluster && bracesIn(o.Value) {
			l.isTemplate(input, o.Place())
			continue
		}
		l.set.Objects = append(l.set.Objects, o)
	}
}

// bracesIn looks for a template's braces in quotes. Where programs are given templates of
// their own, such as arguments and data, they are meant.
func bracesIn(v Value) bool {
	switch v.Kind() {
	case Text:
		return v.n.inner == 0 && strings.Contains(v.n.text, "{{") && strings.Contains(v.n.text, "}}")
	case List:
		for item := range v.Each() {
			if bracesIn(item) {
				return true
			}
		}
	case Map:
		for e := range v.Entries() {
			if !slices.Contains([]string{"args", "command", "env", "data", "stringData", "groups", "config", "description"},
				e.Key()) && bracesIn(e) {
				return true
			}
		}
	}
	return false
}

// isEmpty: nothing but comments, directives and the line that separates documents.
func isEmpty(data []byte) bool {
	for line := range bytes.Lines(data) {
		text := bytes.TrimSpace(line)
		if len(text) > 0 && text[0] != '#' && text[0] != '%' && !bytes.Equal(text, []byte("---")) && !bytes.Equal(text,
			[]byte("...")) {
			return false
		}
	}
	return true
}
