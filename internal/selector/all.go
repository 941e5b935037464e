package selector

import "kata-device-plugin/internal/manifest"

// Expression is a selector with where it stands.
type Expression struct {
	At manifest.Value
	Selector
}

// Refused is an expression that was not understood.
type Refused struct {
	At  manifest.Value
	Err error
}

// Error begins with the place.
func (r *Refused) Error() string { return r.At.Place().String() + ": " + r.Err.Error() }

// Unwrap returns what is wrong with it.
func (r *Refused) Unwrap() error { return r.Err }

// Reader compiles each text once: the claims of a cluster have few different ones.
type Reader struct{ known map[string]compiled }

type compiled struct {
	Selector
	err error
}

// NewReader returns a reader that has compiled nothing yet.
func NewReader() *Reader { return &Reader{map[string]compiled{}} }

// Read compiles the selectors of device classes and requests. The error is a *Refused, the first one.
func (r *Reader) Read(lists ...manifest.Value) ([]Expression, error) {
	var all []Expression
	for _, list := range lists {
		for item := range list.Each() {
			e, err := r.one(item)
			if err != nil {
				return nil, err
			}
			all = append(all, e)
		}
	}
	return all, nil
}

// Refused lists the selectors of a list that are not understood.
func (r *Reader) Refused(list manifest.Value) []*Refused {
	var all []*Refused
	for item := range list.Each() {
		if _, err := r.one(item); err != nil {
			all = append(all, err)
		}
	}
	return all
}

// one compiles a selector of a list.
func (r *Reader) one(item manifest.Value) (Expression, *Refused) {
	at := item.Get("cel", "expression")
	c, ok := r.known[at.Text()]
	if !ok {
		c.Selector, c.err = Compile(at.Text())
		r.known[at.Text()] = c
	}
	if c.err == nil {
		return Expression{at, c.Selector}, nil
	}
	if !at.Exists() {
		at = item
	}
	return Expression{}, &Refused{at, c.err}
}
