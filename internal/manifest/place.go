package manifest

import "fmt"

// Place is a position in an input, counted from 1. A place without a line is the file as such.
type Place struct {
	File         string
	Line, Column int
}

// String is the place as compilers write it.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Problem is an input that cannot be used.
type Problem struct {
	Place
	// What says what is wrong, or what was being done when Err came.
	What string
	Err  error
}

// Error is the problem in one line, its place first.
func (p Problem) Error() string {
	s := p.Place.String() + ": " + p.What
	if p.Err != nil {
		s += ": " + p.Err.Error()
	}
	return s
}

// Unwrap returns what the operating system or a parser said.
func (p Problem) Unwrap() error { return p.Err }
