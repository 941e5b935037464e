package manifest

import (
	"bytes"
	"errors"
	"strings"
)

// Embedded reads the text of a scalar as a value of its own, as plugins do with the
// configuration in a ConfigMap. Places point into the file where the text is a literal
// block; otherwise they are that of the scalar's key, and paths tell values apart. Where the
// scalar itself has only a path, theirs go on from it.
//
// What begins with a bracket is JSON, never YAML's flow style, which would take a comma too
// many or a quote too few for something that is meant.
func (v Value) Embedded() (Value, error) {
	if v.Kind() != Text {
		return Value{}, Problem{Place: v.KeyPlace(), What: "is no text"}
	}
	s := *v.in
	b := &builder{file: s.file}
	line, inner := int32(0), int32(0)
	if v.n.inner > 0 && s.at == nil {
		line, inner = v.n.line, v.n.inner-1
	} else {
		at := v.KeyPlace()
		s.at = &at
	}
	root, err := embedded([]byte(v.n.text), line, inner, b)
	if p, ok := errors.AsType[Problem](err); ok && s.at != nil {
		p.Place = *s.at
		err = p
	}
	return Value{n: root, key: v.key, in: &s, path: v.path}, err
}

func embedded(data []byte, line, inner int32, b *builder) (*node, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	text := strings.TrimLeft(string(data), " \t\r\n")
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		r := &yamlReader{b: b, data: data, line: line, inner: inner}
		return r.read()
	}
	r := newJSON(data, line+1, inner, b)
	n, err := r.next()
	if err != nil {
		return nil, err
	}
	if r.blank(); r.pos < len(r.data) {
		return nil, r.wrong("there is something behind the end")
	}
	return n, nil
}
