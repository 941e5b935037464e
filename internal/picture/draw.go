package picture

import (
	"fmt"
	"strings"

	"kata-device-plugin/internal/inventory"
)

// tile draws a box with all that is in it, or a card, at a place of the picture.
func (c *canvas) tile(t *tile, x, y int) {
	x, y = x+t.x, y+t.y
	if t.leaf != nil {
		c.card(t, x, y)
		return
	}
	kind, fill := "bridge", band
	switch t.level {
	case numaNode:
		kind = "numa"
	case pcieRoot:
		kind, fill = "root", paper
	case bridge, device:
	}
	c.raw(`<g class="%s" role="group" aria-label="%s">`+"\n<title>%s</title>\n", kind, escape(t.name), escape(strings.TrimSpace(t.name+" "+t.more)))
	c.raw(`<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s" stroke="%s"/>`+"\n", kind, x, y, t.w, t.h, fill, hairline)
	c.text(t.label(), x+pad, y+17, t.name)
	for _, b := range t.below {
		c.tile(b, x, y)
	}
	c.raw("</g>\n")
}

// The places in a card.
const (
	textAt  = 36
	textEnd = cardWidth - 10
	room    = textEnd - textAt
)

// card draws a function, with its VFs in the last row.
func (c *canvas) card(t *tile, x, y int) {
	f := t.leaf.Function
	l := lookOf(f.State)
	c.open(f)
	c.raw(`<g class="device %s" id="%s-%s" role="img">`+"\n<title>%s</title>\n", class(f.State), escape(c.prefix), f.Address.Label(), escape(inWords(t.leaf)))
	c.raw(`<rect class="device" x="%d" y="%d" width="%d" height="%d" rx="4" fill="%s" stroke="%s" stroke-width="%s"`, x, y, t.w, t.h, l.ground, l.frame, l.width)
	if l.dashes != "" {
		c.raw(` stroke-dasharray="%s"`, l.dashes)
	}
	c.raw("/>\n")
	c.badge(f.State, x+19, y+22)
	c.text(style{size: 13, bold: true, mono: true, fill: ink}, x+textAt, y+20, f.Address.String())
	c.line(style{size: 10, fill: faint, anchor: "end"}, x+textEnd, y+20, room/3, f.Type.Label())
	c.line(style{size: 11, fill: ink}, x+textAt, y+38, room, f.Title())
	what, detail := lines(f)
	c.line(style{size: 11, bold: len(f.Devices) > 0, fill: ink}, x+textAt, y+55, room, what)
	c.line(style{size: 11, fill: faint}, x+textAt, y+72, room, detail)
	c.raw("</g>\n")
	c.shut()
	if len(t.leaf.VFs) > 0 {
		c.vfs(t.leaf, x, y+cardHeight)
	}
}

// open and shut put a link around what is about a function.
func (c *canvas) open(f *inventory.Function) {
	if c.options.Links {
		c.raw(`<a href="#%s">`+"\n", Anchor(f.Address))
	}
}

func (c *canvas) shut() {
	if c.options.Links {
		c.raw("</a>\n")
	}
}

// lines are the last two of a card: what the function is, and what is the most important to
// know of it: what is wrong, and who has it.
func lines(f *inventory.Function) (what, detail string) {
	what = f.State.Word()
	if len(f.Devices) > 0 {
		what = strings.Join(f.Resources(), ", ")
	}
	var said []string
	reasons := strings.Join(f.Reasons(), ", ")
	switch unresolved := f.Unresolved(); {
	case f.State == inventory.Unhealthy:
		said = append(said, "unhealthy: "+reasons)
	case reasons != "":
		said = append(said, reasons)
	case len(unresolved) > 0:
		said = append(said, "CDI "+unresolved[0].State.Word())
	}
	if holders := f.Holders(); len(holders) > 0 {
		who := holders[0].Namespace + "/" + holders[0].Pod
		if len(said) == 0 {
			who = "held by " + who // behind a fault there is no room for so many words
		}
		said = append(said, who)
	}
	switch {
	case len(said) > 0:
		detail = strings.Join(said, "; ")
	case f.State == inventory.NotDeclared:
		detail = "no rule has a reason"
	default:
		detail = f.Bound()
		if f.IOMMUGroup != "" {
			detail = "group " + f.IOMMUGroup + ", " + detail
		}
	}
	return what, detail
}

// someVFs is how many VFs have a mark each. Of more there is a mark for each state.
const someVFs = 16

// vfs draws the row of marks of a PF.
func (c *canvas) vfs(l *inventory.Leaf, x, y int) {
	const radius, step, group = 4, 12, 50
	c.text(style{size: 10, fill: faint}, x+9, y+12, "VF")
	x += 34
	if len(l.VFs) <= someVFs {
		for k, vf := range l.VFs {
			c.open(vf)
			c.raw(`<g class="vf %s" id="%s-%s" role="img"><title>%s</title>`, class(vf.State), escape(c.prefix), vf.Address.Label(), escape("VF "+inWords(&inventory.Leaf{Function: vf})))
			c.shape(vf.State, x+k*step, y+8, radius)
			c.raw("</g>\n")
			c.shut()
		}
		return
	}
	for _, s := range inventory.States() {
		all := inState(l.VFs, s)
		if len(all) == 0 {
			continue
		}
		c.raw(`<g class="vfs %s" role="img"><title>%s</title>`, class(s), escape(fmt.Sprintf("%d VFs %s: %s", len(all), s.Word(), addresses(all))))
		c.shape(s, x, y+8, radius)
		c.text(style{size: 10, fill: ink}, x+8, y+12, fmt.Sprint(len(all)))
		c.raw("</g>\n")
		x += group
	}
}
