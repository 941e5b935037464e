package docs

import (
	"regexp"
	"strings"
)

// codeIndent is by how much a line of code is farther in than the text around it.
const codeIndent = 4

// Blocks are the page's pieces of code. It is the part of Markdown that the documents use: fences of
// three backquotes, and lines that are indented after an empty one, in lists too.
func (p Page) Blocks() []Block {
	r := reader{item: regexp.MustCompile(`^( *)([-*]|[0-9]+\.) +`), blank: true}
	for i, line := range strings.Split(p.Text, "\n") {
		r.line(i+1, line)
	}
	r.end()
	return r.blocks
}

// reader is in one of three states: in a fence, in an indented block, or in text.
type reader struct {
	item    *regexp.Regexp // the beginning of an item of a list
	blocks  []Block
	current *Block
	fence   int   // how far in the fence is
	indent  int   // how far in the code is
	lists   []int // how far in the text of each list is that the line is in
	blank   bool  // the last line was empty
}

func (r *reader) line(number int, line string) {
	trimmed := strings.TrimLeft(line, " ")
	in := len(line) - len(trimmed)
	fence := strings.HasPrefix(trimmed, "```")
	switch {
	case r.current != nil && r.current.Fenced:
		if fence {
			r.end()
		} else {
			r.current.Lines = append(r.current.Lines, line[min(in, r.fence):])
		}
		return
	case fence:
		r.end()
		r.current, r.fence = &Block{Line: number + 1, Lang: strings.TrimSpace(trimmed[3:]), Fenced: true}, in
		return
	case trimmed == "":
		if r.current != nil {
			r.current.Lines = append(r.current.Lines, "")
		}
		r.blank = true
		return
	case r.current != nil && in >= r.indent:
		r.current.Lines = append(r.current.Lines, line[r.indent:])
		return
	}
	r.end()
	r.text(number, line, in)
	r.blank = false
}

// text is a line outside of code, unless code begins with it.
func (r *reader) text(number int, line string, in int) {
	for len(r.lists) > 0 && in < r.lists[len(r.lists)-1] {
		r.lists = r.lists[:len(r.lists)-1]
	}
	base := 0
	if len(r.lists) > 0 {
		base = r.lists[len(r.lists)-1]
	}
	if r.blank && in >= base+codeIndent {
		r.indent = base + codeIndent
		r.current = &Block{Line: number, Lines: []string{line[r.indent:]}}
		return
	}
	if m := r.item.FindString(line); m != "" {
		r.lists = append(r.lists, len(m))
	}
}

// end ends the block that the last line was in. Empty lines behind an indented one are none of it.
func (r *reader) end() {
	b := r.current
	if b == nil {
		return
	}
	for !b.Fenced && b.Lines[len(b.Lines)-1] == "" {
		b.Lines = b.Lines[:len(b.Lines)-1]
	}
	r.blocks = append(r.blocks, *b)
	r.current, r.blank = nil, true
}
