package picture

import (
	"encoding/xml"
	"fmt"
	"strings"

	"kata-device-plugin/internal/inventory"
)

// The colours that belong to no state.
const (
	paper    = "#ffffff"
	ink      = "#1f2328"
	faint    = "#57606a"
	hairline = "#8c959f"
	band     = "#f3f5f7" // the ground of every other level
)

// raw writes a format, whose arguments are numbers or escaped.
func (c *canvas) raw(format string, args ...any) { fmt.Fprintf(&c.Buffer, format, args...) }

// escape makes a text fit for an element or an attribute. What XML does not allow becomes a
// replacement character.
func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}

// style is how a text looks.
type style struct {
	size       int
	bold, mono bool
	fill       string
	anchor     string // "" for start, or middle, or end
}

func (c *canvas) text(s style, x, y int, text string) {
	c.raw(`<text x="%d" y="%d" font-size="%d" fill="%s"`, x, y, s.size, s.fill)
	if s.bold {
		c.raw(` font-weight="bold"`)
	}
	if s.mono {
		c.raw(` font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"`)
	}
	if s.anchor != "" {
		c.raw(` text-anchor="%s"`, s.anchor)
	}
	c.raw(">%s</text>\n", escape(text))
}

// line is a text that is shortened to a width.
func (c *canvas) line(s style, x, y, width int, text string) { c.text(s, x, y, cut(text, s, width)) }

// look is what a state looks like.
type look struct {
	letter         string
	fill, letterOn string // of the badge
	frame, ground  string // of the card
	width          string // of the frame
	dashes         string
}

// lookOf differs for each state in the letter, in the shape (see shape), in the frame, and in
// brightness as well as in colour.
func lookOf(s inventory.State) look {
	switch s {
	case inventory.Healthy:
		return look{"H", "#1a7f37", "#ffffff", "#1a7f37", "#f0f9f2", "1.5", ""}
	case inventory.Unhealthy:
		return look{"U", "#8f0a1f", "#ffffff", "#8f0a1f", "#fdeeee", "3.5", ""}
	case inventory.NotDeclared:
		return look{"N", "#f2c14e", ink, "#8a5d00", "#fff9e8", "1.5", "7 4"}
	case inventory.NotOurs:
	}
	return look{"O", paper, faint, hairline, "#fafbfc", "1.2", "2 3"}
}

// shape draws the sign of a state around a point: a circle, a triangle, a square or a diamond.
func (c *canvas) shape(s inventory.State, x, y, r int) {
	l := lookOf(s)
	paint := fmt.Sprintf(`fill="%s" stroke="%s" stroke-width="1.2"`, l.fill, l.frame)
	switch s {
	case inventory.Healthy:
		c.raw(`<circle cx="%d" cy="%d" r="%d" %s/>`, x, y, r, paint)
	case inventory.Unhealthy:
		c.raw(`<path d="M%d %dL%d %dL%d %dZ" %s stroke-linejoin="round"/>`, x, y-r-r/4, x+r+r/4, y+r, x-r-r/4, y+r, paint)
	case inventory.NotDeclared:
		c.raw(`<path d="M%d %dH%dV%dH%dZ" %s/>`, x-r, y-r, x+r, y+r, x-r, paint)
	default:
		c.raw(`<path d="M%d %dL%d %dL%d %dL%d %dZ" %s/>`, x, y-r-r/4, x+r+r/4, y, x, y+r+r/4, x-r-r/4, y, paint)
	}
	c.raw("\n")
}

// badge is a shape with the letter of its state.
func (c *canvas) badge(s inventory.State, x, y int) {
	const radius = 10
	c.shape(s, x, y, radius)
	down := 4
	if s == inventory.Unhealthy {
		down = 7 // where a triangle is wide
	}
	c.text(style{size: 12, bold: true, fill: lookOf(s).letterOn, anchor: "middle"}, x, y+down, lookOf(s).letter)
}

// cut shortens a text to a width. There is no knowing the font, so that the width of a text is
// a guess: that of a wide one.
func cut(text string, s style, width int) string {
	const more = "…"
	room := width - widthOf(more, s)
	keep, used := 0, 0
	for at, r := range text {
		if used += s.advance(r); used <= room*1000 {
			keep = at + len(string(r))
		}
		if used > width*1000 {
			return text[:min(keep, len(text))] + more
		}
	}
	return text
}

// widthOf is the width of a text, in whole pixels.
func widthOf(text string, s style) int {
	n := 0
	for _, r := range text {
		n += s.advance(r)
	}
	return (n + 999) / 1000
}

// advance is the width of a character in thousandths of a pixel.
func (s style) advance(r rune) int {
	n := 620
	switch {
	case s.mono:
		n = 610
	case strings.ContainsRune("ijlI.,:;'|!/ ()[]-ftr", r):
		n = 410
	case strings.ContainsRune("mwMW@%…", r) || r > 0x2fff:
		n = 1000
	case r >= 'A' && r <= 'Z':
		n = 700
	}
	if s.bold {
		n += n / 9
	}
	return n * s.size
}

// class is a state as a class of elements.
func class(s inventory.State) string { return strings.ReplaceAll(s.Word(), " ", "-") }
