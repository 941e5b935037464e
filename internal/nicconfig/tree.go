package nicconfig

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// What a file may cost. One that names each of 2,048 VFs, with information about each,
// has 11,000 values; a ConfigMap may have a mebibyte, all of it hostile or broken, and
// must not cost the plugin more than some thirty mebibytes.
const (
	maxBytes  = 256 << 10
	maxDepth  = 16 // the deepest value of a proper file is at 6
	maxValues = 20_000
)

// kind is the type of a value.
type kind uint8

const (
	wrong kind = iota // a value whose problem has been reported
	null
	boolean
	number
	text
	list
	object
)

// String names the type in problems.
func (k kind) String() string {
	return [...]string{"nothing", "null", "true or false", "a number", "a string", "a list", "an object"}[k]
}

// place is a position in the file, counted from 1.
type place struct{ line, column int }

// String is the place as other problems refer to it.
func (p place) String() string { return fmt.Sprintf("line %d", p.line) }

// node is a value with its place.
type node struct {
	kind    kind
	at      place
	text    string  // of scalars: numbers as they are written, strings without quotes
	items   []*node // of lists
	entries []entry // of objects, in the order of the file, doubled keys included
}

type entry struct{ key, value *node }

// show renders a value for a problem.
func (n *node) show() string {
	switch n.kind {
	case wrong:
		return ""
	case null:
		return "null"
	case text:
		return quoted(n.text)
	case list:
		return "[...]"
	case object:
		return "{...}"
	}
	return cut(n.text, mostShown)
}

// tree reads the text into values. It returns nil when there is nothing to be read:
// the file is empty, or it is so broken that a problem says all there is to say.
//
// What begins with a bracket is read as JSON, never as YAML's flow style: that would
// take a trailing comma or a missing quote for something that is meant, and refuse
// tabs. Everything else is YAML.
func (r *reader) tree(data []byte) *node {
	if len(data) > maxBytes {
		r.text(place{}, fmt.Sprintf("has %d bytes", len(data)), fmt.Sprintf("a configuration has %d bytes at most", maxBytes), nil)
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if at, what := unreadable(data); what != "" {
		r.text(at, what, "save the file as plain text in UTF-8", nil)
		return nil
	}
	begin := bytes.TrimLeft(data, " \t\r\n")
	switch {
	case len(begin) == 0:
		return nil
	case begin[0] == '{' || begin[0] == '[':
		return r.json(data)
	}
	return r.yaml(data)
}

// text reports a problem of the text as such.
func (r *reader) text(at place, what, remedy string, err error) {
	r.add(Problem{File: r.file, Line: at.line, Column: at.column, What: what, Remedy: remedy, Err: err})
}

// unreadable finds the first thing that is not text.
func unreadable(data []byte) (place, string) {
	c := newCursor(data)
	for i := 0; i < len(data); {
		char, size := utf8.DecodeRune(data[i:])
		switch {
		case char == utf8.RuneError && size == 1:
			return c.place(i), fmt.Sprintf("byte 0x%02x is not UTF-8", data[i])
		case unicode.IsControl(char) && char != '\t' && char != '\n' && char != '\r':
			return c.place(i), fmt.Sprintf("control character %U", char)
		}
		i += size
	}
	return place{}, ""
}

// cursor turns offsets into places, without going back.
type cursor struct {
	data   []byte
	offset int
	at     place
}

func newCursor(data []byte) *cursor { return &cursor{data: data, at: place{1, 1}} }

func (c *cursor) place(offset int) place {
	for c.offset < min(offset, len(c.data)) {
		char, size := utf8.DecodeRune(c.data[c.offset:])
		c.offset += size
		if char == '\n' {
			c.at = place{c.at.line + 1, 1}
		} else {
			c.at.column++
		}
	}
	return c.at
}

// grown counts one more value and says whether the tree may still grow; if not, the
// problem is reported. Whoever builds a tree then stops.
func (r *reader) grown(at place, depth int) bool {
	r.values++
	switch {
	case r.values > maxValues:
		r.text(at, fmt.Sprintf("has more than %d values", maxValues), "shorten the file: devices can be selected by ranges and by vendor", nil)
	case depth > maxDepth:
		r.text(at, fmt.Sprintf("is nested more than %d deep", maxDepth), "remove a level: no field is that deep", nil)
	default:
		return true
	}
	return false
}
