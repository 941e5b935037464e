package manifest

import (
	"iter"
	"strconv"
	"strings"
)

// Kind is the type of a value.
type Kind uint8

// The types. Missing is what navigation returns where there is nothing.
const (
	Missing Kind = iota
	Null
	Bool
	Number
	Text
	List
	Map
)

// node is a value of a tree. Of ten thousand pods there are millions: it is kept small.
type node struct {
	kind         Kind
	line, column int32
	// inner is the indentation of the text of a literal block scalar, plus one; 0 for
	// everything else. With it, places inside the text can be told.
	inner    int32
	text     string  // of scalars
	children []*node // of lists the elements, of maps keys and values in turn
}

// source is what all values of one text share.
type source struct {
	file string
	// at is set for a text within a text whose lines are not lines of the file. All its
	// values are at this place, and are told apart by their paths.
	at *Place
}

// Value is a value with its place. The zero Value is missing, and everything in it is.
type Value struct {
	n, key *node
	in     *source
	path   string
}

// Kind is the type of the value.
func (v Value) Kind() Kind {
	if v.n == nil {
		return Missing
	}
	return v.n.kind
}

// Exists says whether there is a value other than null.
func (v Value) Exists() bool { return v.n != nil && v.n.kind != Null }

// Text is a scalar as it is written, without quotes; "" for everything else.
func (v Value) Text() string {
	if v.n == nil {
		return ""
	}
	return v.n.text
}

// Key is the key under which the value stands, "" for elements of lists.
func (v Value) Key() string {
	if v.key == nil {
		return ""
	}
	return v.key.text
}

// Len counts the elements of a list, or the entries of a map.
func (v Value) Len() int {
	switch v.Kind() {
	case List:
		return len(v.n.children)
	case Map:
		return len(v.n.children) / 2
	}
	return 0
}

// Place is where the value begins.
func (v Value) Place() Place { return v.in.place(v.n) }

// KeyPlace is where the value's key begins, or the value, where there is no key.
func (v Value) KeyPlace() Place {
	if v.key == nil {
		return v.Place()
	}
	return v.in.place(v.key)
}

// Path leads to a value within a text that has no lines of its own, for example
// resourceList[0].resourceName. Elsewhere the place says it all, and the path is empty.
func (v Value) Path() string { return v.path }

func (s *source) place(n *node) Place {
	switch {
	case s == nil || n == nil:
		return Place{}
	case s.at != nil:
		return *s.at
	}
	return Place{s.file, int(n.line), int(n.column)}
}

// Get follows keys of maps. Of a key that stands twice the last one counts, as it does
// for Kubernetes.
func (v Value) Get(keys ...string) Value {
	for _, key := range keys {
		v = v.get(func(k string) bool { return k == key })
	}
	return v
}

// GetFold is Get for one key without regard to case, as Go's JSON decoder finds fields.
func (v Value) GetFold(key string) Value {
	return v.get(func(k string) bool { return strings.EqualFold(k, key) })
}

func (v Value) get(is func(string) bool) Value {
	if v.Kind() != Map {
		return Value{}
	}
	for i := len(v.n.children) - 2; i >= 0; i -= 2 {
		if key := v.n.children[i]; is(key.text) {
			return v.child(key, v.n.children[i+1], -1)
		}
	}
	return Value{}
}

func (v Value) child(key, n *node, index int) Value {
	c := Value{n: n, key: key, in: v.in}
	if v.in != nil && v.in.at != nil {
		switch {
		case key == nil:
			c.path = v.path + "[" + strconv.Itoa(index) + "]"
		case v.path == "":
			c.path = key.text
		default:
			c.path = v.path + "." + key.text
		}
	}
	return c
}

// Each goes through the elements of a list. Of anything else there are none.
func (v Value) Each() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != List {
			return
		}
		for i, n := range v.n.children {
			if !yield(v.child(nil, n, i)) {
				return
			}
		}
	}
}

// Entries goes through the values of a map in the order of the text. Each knows its key.
func (v Value) Entries() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != Map {
			return
		}
		for i := 0; i+1 < len(v.n.children); i += 2 {
			if !yield(v.child(v.n.children[i], v.n.children[i+1], -1)) {
				return
			}
		}
	}
}

// Texts lists the scalars of a list.
func (v Value) Texts() []string {
	var all []string
	for item := range v.Each() {
		all = append(all, item.Text())
	}
	return all
}

// Inside is a place within the text of a scalar, whose first line is 1. Where the text is no
// literal block, it is that of the scalar's key.
func (v Value) Inside(line, column int) Place {
	if v.Kind() != Text || v.n.inner == 0 || v.in.at != nil || line < 1 {
		return v.KeyPlace()
	}
	return Place{v.in.file, int(v.n.line) + line, int(v.n.inner) - 1 + max(column, 1)}
}
