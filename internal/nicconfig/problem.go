package nicconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxProblems is how many problems of a file are kept. Nobody mends more at once, and a
// hostile file could have one in every few bytes.
const maxProblems = 100

// Problem is one thing that is wrong with a file.
type Problem struct {
	// File is the name of the file, "" when the command line is wrong.
	File string
	// Line and Column count from 1, columns in characters. They are 0 when the problem
	// has no place.
	Line, Column int
	// Path names the field, for example resourceList[1].selectors[0].vendors[2]. It is
	// "" when the text as such is wrong.
	Path string
	// Value is what stands there, quoted and cut to a readable length; "" for what is
	// missing.
	Value string
	// What says what is wrong, Remedy what to do about it.
	What, Remedy string
	// Err is what a parser said, nil otherwise.
	Err error
}

// Error is the problem in one line.
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	for _, part := range []string{p.Path, strings.TrimSpace(p.Value + " " + p.What)} {
		if b.Len() > 0 && part != "" {
			b.WriteString(": ")
		}
		b.WriteString(part)
	}
	if p.Remedy != "" {
		b.WriteString("; " + p.Remedy)
	}
	return b.String()
}

// Unwrap returns the parser's error.
func (p Problem) Unwrap() error { return p.Err }

// Problems are all problems of a file, sorted by their place.
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

// problemList collects problems.
type problemList struct {
	kept  []Problem
	count int
}

func (l *problemList) add(p Problem) {
	if l.count++; len(l.kept) < maxProblems {
		l.kept = append(l.kept, p)
	}
}

// all returns the problems in order, the last of them saying how many there are more.
func (l *problemList) all(file string) Problems {
	slices.SortStableFunc(l.kept, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if more := l.count - len(l.kept); more > 0 {
		return append(l.kept, Problem{File: file, What: fmt.Sprintf("%d more problems are not listed", more), Remedy: "mend these first"})
	}
	return l.kept
}

// mostShown is how many characters of a value a person reads in a problem.
const mostShown = 60

// quoted shows a text in a problem: on one line, and of a readable length.
func quoted(s string) string {
	if short := cut(s, mostShown); short != s {
		return strconv.Quote(strings.TrimSuffix(short, "...")) + "..."
	}
	return strconv.Quote(s)
}

// cut shortens a text to some characters.
func cut(s string, most int) string {
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "..."
		}
	}
	return s
}
