package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mostProblems is how many problems are kept: nobody mends more at once.
const mostProblems = 100

// Problem is one thing that is wrong with a file, or that cannot be rendered.
type Problem struct {
	// File and Line say where; Line is 0 when the file as a whole is meant.
	File string
	Line int
	// Object is the kind and name of the object, "" in a policy.
	Object string
	// Path names the field, Value is what stands there, quoted; both may be "".
	Path, Value string
	// What says what is wrong, Remedy what to do about it.
	What, Remedy string
	// Err is what a parser said, nil otherwise.
	Err error
}

// Error is the problem in one line.
func (p Problem) Error() string {
	place := p.File
	if p.Line > 0 {
		place = fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	parts := []string{place, p.Object, p.Path, strings.TrimSpace(p.Value + " " + p.What)}
	line := strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
	if p.Remedy != "" {
		line += "; " + p.Remedy
	}
	return line
}

// Unwrap returns the parser's error.
func (p Problem) Unwrap() error { return p.Err }

// Problems are everything that is wrong, in the order of the text.
type Problems []Problem

// Error has one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems one by one.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

func (ps *Problems) add(p Problem) {
	if len(*ps) < mostProblems {
		*ps = append(*ps, p)
	}
}

// sorted is by file, as they were given, and line.
func (ps Problems) sorted() Problems {
	order := map[string]int{}
	for _, p := range ps {
		if _, ok := order[p.File]; !ok {
			order[p.File] = len(order)
		}
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line))
	})
	return ps
}

// quoted shows a text in a problem: on one line, and of a readable length.
func quoted(s string) string {
	const most = 60
	n := 0
	for i := range s {
		if n++; n > most {
			return strconv.Quote(s[:i]) + "..."
		}
	}
	return strconv.Quote(s)
}
