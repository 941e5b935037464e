// Package prose writes words for people: in lines that are not wider than their terminal, and without
// what would steer it.
package prose

import (
	"fmt"
	"io"
	"strings"
)

// Wrap writes words in lines of a width, unless one word is wider. The first line begins with head,
// the others with indent. That writing fails is for the writer to remember, as a bufio.Writer does.
func Wrap(w io.Writer, width int, head, indent, words string) {
	line, empty := head, true
	for word := range strings.FieldsSeq(Clean(words)) {
		switch {
		case empty:
			line += word
		case len(line)+1+len(word) > width:
			fmt.Fprintln(w, line)
			line = indent + word
		default:
			line += " " + word
		}
		empty = false
	}
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}

// Clean keeps what was read from a file from steering a terminal.
func Clean(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || 0x80 <= c && c < 0xa0 {
			return ' '
		}
		return c
	}, s)
}
