package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// jsonReader reads JSON into a tree. encoding/json tells no columns, and its tokens take
// several times as long, which for a dump of a large cluster is a matter of a minute.
type jsonReader struct {
	data    []byte
	pos     int
	line    int32
	begin   int // the offset at which the line begins
	inner   int32
	b       *builder
	columns struct { // of the last place asked for, since lines can be long
		line   int32
		pos    int
		column int32
	}
}

// newJSON begins at a line and a column of the file: those of the text's own beginning.
func newJSON(data []byte, line, inner int32, b *builder) *jsonReader {
	return &jsonReader{data: data, line: line, inner: inner, b: b}
}

// next reads one value, and nil at the end of the text.
func (r *jsonReader) next() (*node, error) {
	if r.blank(); r.pos == len(r.data) {
		return nil, nil
	}
	return r.value(0)
}

func (r *jsonReader) blank() {
	for ; r.pos < len(r.data); r.pos++ {
		switch r.data[r.pos] {
		case '\n':
			r.line++
			r.begin = r.pos + 1
		case ' ', '\t', '\r':
		default:
			return
		}
	}
}

// column counts characters, not bytes.
func (r *jsonReader) column() int32 {
	from, count := r.begin, int32(1)
	if c := r.columns; c.line == r.line && c.pos >= r.begin && c.pos <= r.pos && c.column > 0 {
		from, count = c.pos, c.column
	}
	count += int32(utf8.RuneCount(r.data[from:r.pos]))
	r.columns.line, r.columns.pos, r.columns.column = r.line, r.pos, count
	return count + r.inner
}

func (r *jsonReader) wrong(what string) error {
	return Problem{Place: Place{r.b.file, int(r.line), int(r.column())}, What: "is not JSON: " + what}
}

func (r *jsonReader) value(depth int) (*node, error) {
	r.blank()
	if r.pos == len(r.data) {
		return nil, r.wrong("it ends too early")
	}
	n := &node{line: r.line, column: r.column()}
	if err := r.b.grown(n, depth); err != nil {
		return nil, err
	}
	switch c := r.data[r.pos]; {
	case c == '{':
		return n, r.object(n, depth)
	case c == '[':
		return n, r.list(n, depth)
	case c == '"':
		s, err := r.quoted()
		n.kind, n.text = Text, s
		return n, err
	default:
		return n, r.word(n)
	}
}

// word reads a number or one of the three words.
func (r *jsonReader) word(n *node) error {
	end := r.pos
	for end < len(r.data) && !bytes.ContainsRune([]byte(" \t\r\n,:]}[{\""), rune(r.data[end])) {
		end++
	}
	text := r.data[r.pos:end]
	if len(text) == 0 || !json.Valid(text) {
		return r.wrong(fmt.Sprintf("%.20q is no value", r.data[r.pos:max(end, min(r.pos+1, len(r.data)))]))
	}
	switch text[0] {
	case 'n':
		n.kind = Null
	case 't', 'f':
		n.kind, n.text = Bool, string(text)
	default:
		n.kind, n.text = Number, string(text)
	}
	r.pos = end
	return nil
}

// quoted reads a string.
func (r *jsonReader) quoted() (string, error) {
	end, plain := r.pos+1, true
	for ; end < len(r.data) && r.data[end] != '"'; end++ {
		switch c := r.data[end]; {
		case c == '\\':
			plain = false
			end++
		case c < ' ':
			r.pos = end
			return "", r.wrong("a string goes over the end of its line, or has a control character")
		}
	}
	if end >= len(r.data) {
		return "", r.wrong("a string does not end")
	}
	raw := r.data[r.pos : end+1]
	if plain && utf8.Valid(raw) {
		r.pos = end + 1
		return r.b.intern(raw[1 : len(raw)-1]), nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", r.wrong(err.Error())
	}
	r.pos = end + 1
	return s, nil
}

func (r *jsonReader) list(n *node, depth int) error {
	n.kind = List
	return r.between(']', func() error {
		item, err := r.value(depth + 1)
		n.children = append(n.children, item)
		return err
	})
}

func (r *jsonReader) object(n *node, depth int) error {
	n.kind = Map
	return r.between('}', func() error {
		if r.pos == len(r.data) || r.data[r.pos] != '"' {
			return r.wrong("a key in quotes is missing")
		}
		key := &node{kind: Text, line: r.line, column: r.column()}
		s, err := r.quoted()
		if err != nil {
			return err
		}
		key.text = s
		if r.blank(); r.pos == len(r.data) || r.data[r.pos] != ':' {
			return r.wrong("a colon is missing behind a key")
		}
		r.pos++
		v, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		if !forgotten(s) {
			n.children = append(n.children, key, v)
		}
		return nil
	})
}

// between reads what stands between brackets, with commas between the elements.
func (r *jsonReader) between(end byte, element func() error) error {
	r.pos++
	for first := true; ; first = false {
		if r.blank(); r.pos == len(r.data) {
			return r.wrong("a bracket is not closed")
		}
		if r.data[r.pos] == end && first {
			break
		}
		if err := element(); err != nil {
			return err
		}
		if r.blank(); r.pos == len(r.data) {
			return r.wrong("a bracket is not closed")
		}
		if r.data[r.pos] == end {
			break
		}
		if r.data[r.pos] != ',' {
			return r.wrong("a comma is missing")
		}
		r.pos++
		r.blank()
	}
	r.pos++
	return nil
}
