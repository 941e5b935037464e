package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// manyVFs is from how many on the VFs of a PF are told in groups.
const manyVFs = 16

// twig is a line of a tree with what hangs below it, before it is known how deep it is and
// which is the last. Of its text only the name in the middle may be cut.
type twig struct {
	text, name, more string
	notes            []note
	below            []twig
}

// note is a sentence below a line, which has no branch of its own.
type note struct{ label, text string }

// tree writes where everything hangs.
func (p *page) tree(i *Inventory) {
	if len(i.Functions) == 0 {
		p.line("No PCI function of this node is a candidate.")
	}
	for _, n := range i.Tree() {
		if n.Node == nil {
			p.line("NUMA unknown")
		} else {
			p.line("NUMA node " + numa(n.Node))
		}
		var roots []twig
		for k := range n.Roots {
			root := p.branch(&n.Roots[k])
			root.text = "PCIe root " + plain(cmp.Or(*n.Roots[k].Root, "unknown"))
			roots = append(roots, root)
		}
		p.twigs("", roots)
	}
	for _, f := range i.Findings {
		p.sentence(f.ID+" "+subject(f, " "), "  ", f.Reason())
		p.sentence("  fix: ", "       ", p.fix(f))
	}
}

// fix is what to do, once; then where that is said.
func (p *page) fix(w Finding) string {
	if p.fixes[w.ID] {
		return "as for " + w.ID + " above"
	}
	p.fixes[w.ID] = true
	return w.Remedy
}

// branch is a bridge with what is below it.
func (p *page) branch(b *Branch) twig {
	var t twig
	if len(b.Bridges) > 0 {
		last := len(b.Bridges) - 1
		t.text = "port "
		if b.Switch {
			t.text = "switch "
		}
		t.text += b.Bridges[last].String()
		if last > 0 {
			t.text += " behind " + addresses(b.Bridges[:last])
		}
	}
	for k := range b.Branches {
		t.below = append(t.below, p.branch(&b.Branches[k]))
	}
	for k := range b.Functions {
		t.below = append(t.below, p.leaf(&b.Functions[k]))
	}
	return t
}

func addresses[T fmt.Stringer](all []T) string {
	parts := make([]string, len(all))
	for k, a := range all {
		parts[k] = a.String()
	}
	return strings.Join(parts, " > ")
}

// leaf is a function with its VFs.
func (p *page) leaf(l *Leaf) twig {
	t := p.function(l.Function, "")
	if len(l.Via) > 0 {
		t.more += ", behind " + addresses(l.Via)
	}
	if len(l.VFs) <= manyVFs {
		for _, vf := range l.VFs {
			t.below = append(t.below, p.function(vf, "VF "))
		}
		return t
	}
	for _, g := range alike(l.VFs) {
		first, last := g[0], g[len(g)-1]
		if len(g) == 1 {
			t.below = append(t.below, p.function(first, "VF "))
			continue
		}
		group := p.function(first, "VFs ")
		group.text = fmt.Sprintf("%s %d VFs %s to %s  ", p.paint(first.State, p.mark(first.State)), len(g), first.Address, last.Address)
		group.more = p.about(first, false)
		t.below = append(t.below, group)
	}
	return t
}

// function is a line for a function, with the reasons below it.
func (p *page) function(f *Function, what string) twig {
	t := twig{
		text: fmt.Sprintf("%s %s%s  ", p.paint(f.State, p.mark(f.State)), what, f.Address),
		name: plain(f.Title()), more: p.about(f, true),
	}
	for _, w := range f.Why() {
		t.notes = append(t.notes, note{w.ID + " ", w.Reason()}, note{"fix: ", p.fix(w)})
	}
	for _, h := range f.Holders() {
		t.notes = append(t.notes, note{"held by ", h.String()})
	}
	for _, c := range f.Unresolved() {
		t.notes = append(t.notes, note{"CDI ", c.Name + " is " + c.State.Word()})
	}
	if f.silent() {
		t.notes = append(t.notes, note{"", noReason})
	}
	return t
}

// about is what there is to say of a function beside its address and name. own is what
// differs between those that are otherwise alike.
func (p *page) about(f *Function, own bool) string {
	parts := slices.Concat(f.Resources(), []string{f.Bound()})
	if own && f.IOMMUGroup != "" {
		parts = append(parts, "IOMMU group "+f.IOMMUGroup)
	}
	if own && f.Cdev != nil {
		parts = append(parts, f.cdev())
	}
	if own {
		parts = append(parts, f.Interfaces...)
	}
	return ", " + p.paint(f.State, f.State.Word()) + ", " + plain(strings.Join(parts, ", "))
}

// twig writes the line of a twig behind an indentation.
func (p *page) twig(indent string, t *twig) {
	name := t.name
	if p.Width > 0 {
		name = Cut(name, max(minName, p.Width-visible(indent+t.text+t.more)), p.ellipsis())
	}
	p.line(indent + t.text + name + t.more)
}

// twigs writes lines with what connects them.
func (p *page) twigs(indent string, all []twig) {
	stem, joint, last := "│  ", "├─ ", "└─ "
	if p.ASCII {
		stem, joint, last = "|  ", "|- ", "`- "
	}
	for k := range all {
		at, next := joint, indent+stem
		if k == len(all)-1 {
			at, next = last, indent+"   "
		}
		p.twig(indent+at, &all[k])
		past := next + "   "
		if len(all[k].below) > 0 {
			past = next + stem // on to what hangs below
		}
		for _, n := range all[k].notes {
			p.sentence(past+n.label, past+"     ", n.text)
		}
		p.twigs(next, all[k].below)
	}
}
