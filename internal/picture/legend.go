package picture

import "kata-device-plugin/internal/inventory"

// legendHeight and remarkHeight are the room that they take.
const (
	legendHeight = 44
	remarkHeight = 20
	mostRemarks  = 8
)

// legend explains the signs.
func (c *canvas) legend(x, y, width int) {
	c.raw(`<g class="legend" role="group" aria-label="legend">` + "\n")
	c.raw(`<path d="M%d %dH%d" stroke="%s"/>`+"\n", x, y+2, x+width, hairline)
	words := style{size: 12, fill: ink}
	for _, s := range inventory.States() {
		c.badge(s, x+14, y+24)
		c.text(words, x+34, y+28, meaning(s))
		x += 34 + widthOf(meaning(s), words) + 24
	}
	c.raw("</g>\n")
}

func meaning(s inventory.State) string {
	switch s {
	case inventory.Healthy:
		return "declared, healthy"
	case inventory.Unhealthy:
		return "declared, unhealthy"
	case inventory.NotDeclared:
		return "not declared"
	case inventory.NotOurs:
	}
	return "not ours"
}
