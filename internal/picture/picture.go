// Package picture draws an inventory: NUMA nodes, PCIe roots, switches and devices, as one SVG
// that is the same, byte for byte, for the same inventory.
//
// It is made for wikis as well as for a page of the exporter. So it brings its own light
// ground, on which it can be read wherever it stands; all colours are attributes, since a
// page may forbid styles, and styles would leak into it; and there is nothing in it that a
// viewer would have to fetch or run. A state is told by the shape of its badge, by a letter,
// by the frame and by words, and beside that by colour.
package picture

import (
	"bytes"
	"cmp"
	"fmt"
	"io"

	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/pci"
)

// Options are for whom the picture is.
type Options struct {
	// Links makes a link of each device, to the element Anchor of the same page.
	Links bool
	// Prefix begins the IDs of all elements, for a page with several pictures; "" stands for
	// "inventory".
	Prefix string
}

// Anchor is the ID of the element of a page that is about a function. It is what links lead
// to; the picture itself has no such element. Labels have no characters that CSS takes for its own.
func Anchor(a pci.Address) string { return "dev-" + a.Label() }

// The measures of the picture, in pixels.
const (
	margin    = 16
	maxWidth  = 1320 // wide enough for four switches of two devices beside each other
	minWidth  = 680  // of the legend
	titleRoom = 78
)

// Write draws an inventory.
func Write(to io.Writer, i *inventory.Inventory, o Options) error {
	c := &canvas{options: o, prefix: cmp.Or(o.Prefix, "inventory")}
	nodes := tiles(i)
	inner, high := ground(nodes, minWidth-2*margin, maxWidth-2*margin)
	notes := remarks(i)
	notesAt := titleRoom + high + pad
	legendAt := notesAt + len(notes)*remarkHeight
	c.start(i, inner+2*margin, legendAt+legendHeight)
	c.heading(i, inner)
	for _, n := range nodes {
		c.tile(n, margin, titleRoom)
	}
	for k, text := range notes {
		c.line(style{size: 12, fill: ink}, margin, notesAt+(k+1)*remarkHeight-6, inner, text)
	}
	c.legend(margin, legendAt, inner)
	c.raw("</svg>\n")
	if _, err := to.Write(c.Bytes()); err != nil {
		return fmt.Errorf("draw the inventory: %w", err)
	}
	return nil
}

// canvas is the SVG while it is written.
type canvas struct {
	bytes.Buffer
	options Options
	prefix  string
}

// start opens the picture, with what it is and all that it says in words.
func (c *canvas) start(i *inventory.Inventory, width, height int) {
	role := "img"
	if c.options.Links {
		role = "group" // what is in an image cannot be reached
	}
	c.raw(`<svg xmlns="http://www.w3.org/2000/svg" class="inventory" role="%s" aria-labelledby="%s-title %s-desc" `+
		`width="%d" height="%d" viewBox="0 0 %d %d" font-family="system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif">`+"\n",
		role, escape(c.prefix), escape(c.prefix), width, height, width, height)
	c.raw(`<title id="%s-title">%s</title>`+"\n", escape(c.prefix), escape(heading(i)))
	c.raw(`<desc id="%s-desc">%s</desc>`+"\n", escape(c.prefix), escape(description(i)))
	c.raw(`<rect class="ground" width="%d" height="%d" rx="8" fill="%s" stroke="%s"/>`+"\n", width, height, paper, hairline)
}

func (c *canvas) heading(i *inventory.Inventory, width int) {
	c.line(style{size: 18, bold: true, fill: ink}, margin, 30, width, heading(i))
	c.line(style{size: 12, fill: faint}, margin, 49, width, summary(i))
	c.line(style{size: 12, fill: faint}, margin, 66, width, resources(i))
}
