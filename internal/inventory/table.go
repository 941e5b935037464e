package inventory

import (
	"strings"
	"unicode/utf8"
)

// gap is between columns, and minName what is left of a product's name at least.
const (
	gap     = 2
	minName = 8
)

// table writes a row for each function.
func (p *page) table(i *Inventory, columns []column) {
	if len(i.Functions) == 0 {
		p.line("No PCI function of this node is a candidate.")
		return
	}
	rows := make([][]string, len(i.Functions))
	widths := make([]int, len(columns))
	for c := range columns {
		widths[c] = len(columns[c].head)
	}
	for r := range i.Functions {
		rows[r] = make([]string, len(columns))
		for c := range columns {
			rows[r][c] = plain(columns[c].cell(i, &i.Functions[r]))
			widths[c] = max(widths[c], utf8.RuneCountInString(rows[r][c]))
		}
	}
	p.fit(columns, widths)
	head := make([]string, len(columns))
	for c := range columns {
		head[c] = columns[c].head
	}
	p.row(head, columns, widths, "")
	for r := range rows {
		p.row(rows[r], columns, widths, i.Functions[r].State)
	}
}

// fit narrows the columns that may be cut.
func (p *page) fit(columns []column, widths []int) {
	if p.Width <= 0 {
		return
	}
	total := gap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for c := range columns {
		if columns[c].cut && total > p.Width {
			narrow := max(minName, widths[c]-(total-p.Width))
			total -= widths[c] - min(widths[c], narrow)
			widths[c] = min(widths[c], narrow)
		}
	}
}

func (p *page) row(cells []string, columns []column, widths []int, s State) {
	var b strings.Builder
	for c, text := range cells {
		if columns[c].cut {
			text = Cut(text, widths[c], p.ellipsis())
		}
		pad := strings.Repeat(" ", widths[c]-utf8.RuneCountInString(text))
		if columns[c].head == "STATE" && s != "" {
			text = p.paint(s, text)
		}
		b.WriteString(text)
		if c < len(cells)-1 {
			b.WriteString(pad + strings.Repeat(" ", gap))
		}
	}
	p.line(b.String())
}
