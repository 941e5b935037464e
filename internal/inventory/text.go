package inventory

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain is a text as it may be sent to a terminal. Names of files and what is in them come
// from the node, or from a tree that somebody else captured, and could hold commands.
func plain(s string) string {
	if strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unprintable(r) {
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func unprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

// Cut shortens a text to so many characters; that it did shows at the end.
func Cut(s string, width int, ellipsis string) string {
	length, tail := utf8.RuneCountInString(s), utf8.RuneCountInString(ellipsis)
	if length <= max(0, width) {
		return s
	}
	keep := max(0, width-tail)
	for at := range s {
		if keep == 0 {
			return s[:at] + ellipsis
		}
		keep--
	}
	return s
}

func (p *page) ellipsis() string {
	if p.ASCII {
		return "..."
	}
	return "…"
}

// minText is the least that a line of a sentence may have, on however narrow a terminal.
const minText = 24

// sentence writes a text behind a beginning, broken at spaces so that it fits: but never
// between a path and its equals sign, and what has no space stays whole.
func (p *page) sentence(first, rest, text string) {
	line, at := first, utf8.RuneCountInString(first)
	room := max(p.Width, at+minText, utf8.RuneCountInString(rest)+minText)
	empty := true
	for word := range strings.FieldsSeq(plain(text)) {
		n := utf8.RuneCountInString(word)
		if p.Width > 0 && !empty && at+1+n > room && word != "=" {
			p.line(line)
			line, at, empty = rest, utf8.RuneCountInString(rest), true
		}
		if !empty {
			line, at = line+" ", at+1
		}
		line, at, empty = line+word, at+n, false
	}
	p.line(line)
}

func (p *page) line(s string) { p.WriteString(strings.TrimRight(s, " ") + "\n") }

// paint colours a text by a state.
func (p *page) paint(s State, text string) string {
	if !p.Color {
		return text
	}
	code := map[State]string{Healthy: "32", Unhealthy: "31", NotDeclared: "33", NotOurs: "90"}[s]
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// mark is a sign for a state that needs no colour.
func (p *page) mark(s State) string {
	if p.ASCII {
		return map[State]string{Healthy: "+", Unhealthy: "!", NotDeclared: "-", NotOurs: "."}[s]
	}
	return map[State]string{Healthy: "✓", Unhealthy: "✗", NotDeclared: "○", NotOurs: "·"}[s]
}

// visible is the number of characters that a text takes on a terminal.
func visible(s string) int {
	n := utf8.RuneCountInString(s)
	for {
		_, rest, found := strings.Cut(s, "\x1b[")
		code, after, closed := strings.Cut(rest, "m")
		if !found || !closed {
			return n
		}
		n -= len("\x1b[") + len(code) + len("m")
		s = after
	}
}
