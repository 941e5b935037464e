package exporter

import (
	"cmp"
	"html"
	"strconv"
	"strings"
	"time"

	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/nodestate"
	"kata-device-plugin/internal/nodeview"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/picture"
)

// table begins a table with what it is and the names of its columns.
func (p *paper) table(id, caption string, columns ...string) {
	p.raw(`<section aria-labelledby="%s"><h2 id="%s">%s</h2><div class="scroll" id="%s-table" tabindex="0" role="region" aria-labelledby="%s"><table><thead><tr>`, id, id, caption, id, id)
	for _, c := range columns {
		p.raw(`<th scope="col">%s</th>`, c)
	}
	p.raw("</tr></thead><tbody>\n")
}

func (p *paper) end() { p.raw("</tbody></table></div></section>\n") }

func (p *paper) cells(texts ...string) {
	for _, text := range texts {
		p.raw("<td>%s</td>", html.EscapeString(cmp.Or(text, "-")))
	}
}

// words are a cell with sentences, which take several lines.
func (p *paper) words(text string) {
	p.raw(`<td class="words">%s</td>`, html.EscapeString(cmp.Or(text, "-")))
}

// devices are all functions that somebody may ask about. Those of which no rule speaks are left to
// the picture.
func (p *paper) devices(inv *inventory.Inventory) {
	p.table("devices", "Devices", "Address", "State", "Resource", "Held by", "Why", "Name", "NUMA node", "Driver", "IOMMU group", "CDI")
	for i := range inv.Functions {
		f := &inv.Functions[i]
		numa := ""
		if f.NUMANode != nil {
			numa = strconv.Itoa(*f.NUMANode)
		}
		p.raw(`<tr id="%s" tabindex="-1" class="%s"><th scope="row">%s</th>`, picture.Anchor(f.Address), class(f.State), f.Address)
		p.raw(`<td><span class="state">%s</span></td>`, f.State.Word())
		p.cells(strings.Join(f.Resources(), ", "), held(inv, f))
		p.words(why(f))
		p.cells(f.Title(), numa, f.Driver, f.IOMMUGroup, resolved(inv, f))
		p.raw("</tr>\n")
	}
	p.end()
}

func class(s inventory.State) string {
	switch s {
	case inventory.Healthy:
		return "healthy"
	case inventory.Unhealthy:
		return "unhealthy"
	case inventory.NotDeclared:
		return "excluded"
	case inventory.NotOurs:
	}
	return "other"
}

func why(f *inventory.Function) string {
	var all []string
	for _, w := range f.Why() {
		all = append(all, w.ID+" "+w.Reason()+". Fix: "+w.Remedy+".")
	}
	for _, e := range f.Evidence {
		all = append(all, e.Path+" = "+e.Value)
	}
	return strings.Join(all, " ")
}

func held(inv *inventory.Inventory, f *inventory.Function) string {
	if inv.Lacks(inventory.UnknownHolders) {
		return "not known"
	}
	var all []string
	for _, h := range f.Holders() {
		all = append(all, h.String())
	}
	return strings.Join(all, ", ")
}

// absent are devices that containers have and that have left the node, or that nobody looks at: no row and no part of
// the picture is about them.
func (p *paper) absent(s *nodestate.State, inv *inventory.Inventory) {
	if inv.Lacks(inventory.UnknownHolders) {
		return
	}
	there := map[pci.Address]bool{}
	for i := range inv.Functions {
		there[inv.Functions[i].Address] = true
	}
	open := false
	for i := range s.Allocations {
		a := &s.Allocations[i]
		if there[a.Address] {
			continue
		}
		if !open {
			p.table("absent", "Held, and not among the devices above", "Address", "Device", "Resource", "Held by")
			open = true
		}
		p.raw(`<tr><th scope="row">%s</th>`, a.Address)
		p.cells(a.Device, a.Resource, nodeview.Holder(a).String())
		p.raw("</tr>\n")
	}
	if open {
		p.end()
	}
}

func resolved(inv *inventory.Inventory, f *inventory.Function) string {
	if inv.Lacks(inventory.UnknownCDI) {
		return "not known"
	}
	var all []string
	for i := range f.Devices {
		if c := f.Devices[i].CDI; c != nil && (len(all) == 0 || all[len(all)-1] != string(c.State)) {
			all = append(all, string(c.State))
		}
	}
	return strings.Join(all, ", ")
}

// unread is what of the hardware could not be read. What belongs to one function is in its row.
func (p *paper) unread(inv *inventory.Inventory) {
	if !inv.Partial {
		return
	}
	p.raw("<p>Something could not be read: a part of this may be older than the rest, or missing.</p>\n<ul>")
	for _, why := range inv.Unread {
		p.raw("<li>%s</li>", html.EscapeString(why))
	}
	p.raw("</ul>\n")
}

// findings are about the node as a whole.
func (p *paper) findings(inv *inventory.Inventory) {
	if len(inv.Findings) == 0 {
		return
	}
	p.table("findings", "Findings about the node", "ID", "Severity", "What", "About", "Fix")
	for _, f := range inv.Findings {
		p.raw(`<tr><th scope="row">%s</th>`, html.EscapeString(f.ID))
		p.cells(f.Severity)
		p.words(f.Reason())
		p.cells(f.Subject())
		p.words(f.Remedy)
		p.raw("</tr>\n")
	}
	p.end()
}

// sources are what all of it rests on.
func (p *paper) sources(s *nodestate.State) {
	p.table("sources", "Sources", "Source", "State", "Last answer", "Reason")
	for _, of := range s.Sources {
		state, at, reason := "answers", "", ""
		switch {
		case of.None:
			state = "not on this node"
		case of.Err != nil:
			state, reason = "does not answer", of.Err.Error()
		case of.At.IsZero():
			state = "not asked yet"
		}
		if !of.At.IsZero() && !of.None {
			at = of.At.UTC().Format(time.RFC3339)
		}
		p.raw(`<tr><th scope="row">%s</th>`, html.EscapeString(string(of.Source)))
		p.cells(state, at)
		p.words(reason)
		p.raw("</tr>\n")
	}
	p.end()
}
