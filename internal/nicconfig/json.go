package nicconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// json builds the tree of a JSON text. The decoder's tokens are used, since they come
// in order, with their offsets, and with doubled keys; values decoded into maps or
// structures have lost all three.
func (r *reader) json(data []byte) *node {
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		at := place{}
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			offset := int(syntax.Offset) - 1 // it counts the byte that is wrong
			if offset == len(data)-1 && syntax.Error() == "unexpected end of JSON input" {
				offset = len(bytes.TrimRight(data, " \t\r\n"))
			}
			at = newCursor(data).place(offset)
		}
		r.text(at, fmt.Sprintf("is not JSON: %v", err), "look for a comma or a quote too many or too few here, or just before", err)
		return nil
	}
	b := jsonBuilder{r: r, data: data, d: json.NewDecoder(bytes.NewReader(data)), at: newCursor(data)}
	b.d.UseNumber()
	root, err := b.value(0)
	if err != nil {
		if !errors.Is(err, errTooLarge) {
			r.text(b.at.at, fmt.Sprintf("is not JSON: %v", err), "", err)
		}
		return nil
	}
	return root
}

// errTooLarge ends the building of a tree; the problem has been reported.
var errTooLarge = errors.New("too many values")

type jsonBuilder struct {
	r    *reader
	data []byte
	d    *json.Decoder
	at   *cursor
}

// next reads a token and says where it begins: between the end of the token before it,
// which is all that the decoder tells, and it there are blanks and punctuation.
func (b *jsonBuilder) next() (json.Token, place, error) {
	offset := int(b.d.InputOffset())
	for offset < len(b.data) && bytes.IndexByte([]byte(" \t\r\n,:"), b.data[offset]) >= 0 {
		offset++
	}
	token, err := b.d.Token()
	if err != nil {
		return nil, place{}, fmt.Errorf("read token: %w", err)
	}
	return token, b.at.place(offset), nil
}

func (b *jsonBuilder) value(depth int) (*node, error) {
	token, at, err := b.next()
	if err != nil {
		return nil, err
	}
	return b.from(token, at, depth)
}

// from builds the value that begins with a token.
func (b *jsonBuilder) from(token json.Token, at place, depth int) (*node, error) {
	if !b.r.grown(at, depth) {
		return nil, errTooLarge
	}
	switch t := token.(type) {
	case bool:
		return &node{kind: boolean, at: at, text: fmt.Sprint(t)}, nil
	case json.Number:
		return &node{kind: number, at: at, text: t.String()}, nil
	case string:
		return &node{kind: text, at: at, text: t}, nil
	case json.Delim:
		if t == '{' {
			return b.object(at, depth)
		}
		return b.list(at, depth)
	}
	return &node{kind: null, at: at}, nil
}

func (b *jsonBuilder) list(at place, depth int) (*node, error) {
	n := &node{kind: list, at: at}
	for b.d.More() {
		item, err := b.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
	}
	_, _, err := b.next() // the closing bracket
	return n, err
}

func (b *jsonBuilder) object(at place, depth int) (*node, error) {
	n := &node{kind: object, at: at}
	for b.d.More() {
		key, err := b.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v, err := b.value(depth + 1)
		if err != nil {
			return nil, err
		}
		n.entries = append(n.entries, entry{key, v})
	}
	_, _, err := b.next()
	return n, err
}
