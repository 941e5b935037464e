package picture

import (
	"fmt"
	"strings"

	"kata-device-plugin/internal/inventory"
)

func heading(i *inventory.Inventory) string {
	if i.Node == "" {
		return "Devices of this node"
	}
	return "Devices of node " + i.Node
}

func summary(i *inventory.Inventory) string {
	c := i.Counts
	s := fmt.Sprintf("%d declared (%d unhealthy), %d not declared, %d not ours", c.Healthy+c.Unhealthy, c.Unhealthy, c.NotDeclared, c.NotOurs)
	if len(i.Functions) == 0 {
		s = "No PCI function of this node is a candidate"
	}
	if i.Partial {
		s += "; something could not be read"
	}
	return s
}

func resources(i *inventory.Inventory) string {
	var all []string
	for _, r := range i.Resources {
		all = append(all, fmt.Sprintf("%s: %d", r.Name, r.Devices))
		if r.Healthy != r.Devices {
			all[len(all)-1] += fmt.Sprintf(" (%d unhealthy)", r.Devices-r.Healthy)
		}
	}
	return strings.Join(all, "; ")
}

// description is the picture in words, for those who cannot see it.
func description(i *inventory.Inventory) string {
	var b strings.Builder
	b.WriteString(summary(i) + ".")
	if len(i.Resources) > 0 {
		b.WriteString(" " + resources(i) + ".")
	}
	for _, n := range tiles(i) {
		b.WriteString(" " + n.name + ":")
		describe(&b, n)
	}
	for _, text := range remarks(i) {
		b.WriteString(" " + text + ".")
	}
	return b.String()
}

func describe(b *strings.Builder, t *tile) {
	for _, below := range t.below {
		if below.leaf == nil {
			b.WriteString(" " + below.name + ":")
			describe(b, below)
			continue
		}
		f := below.leaf.Function
		fmt.Fprintf(b, " %s %s %s", f.Type.Label(), f.Address, f.State.Word())
		if reasons := f.Reasons(); len(reasons) > 0 {
			b.WriteString(" for " + strings.Join(reasons, " and "))
		}
		if n := len(below.leaf.VFs); n > 0 {
			fmt.Fprintf(b, " with %d VFs", n)
		}
		b.WriteString(".")
	}
}

// inWords is all that is known of a function, as a hint shows it and a screen reader reads it.
func inWords(l *inventory.Leaf) string {
	f := l.Function
	parts := []string{f.Address.String() + " " + f.Title(), f.Type.Label(), f.State.Word()}
	parts = append(parts, f.Resources()...)
	parts = append(parts, f.Bound())
	if f.IOMMUGroup != "" {
		parts = append(parts, "IOMMU group "+f.IOMMUGroup)
	}
	if f.Cdev != nil {
		parts = append(parts, f.Cdev.Path)
	}
	for _, name := range f.Interfaces {
		parts = append(parts, "interface "+name)
	}
	if len(l.Via) > 0 {
		parts = append(parts, "behind "+addresses(l.Via))
	}
	for _, h := range f.Holders() {
		parts = append(parts, "held by "+h.String())
	}
	for _, c := range f.Unresolved() {
		parts = append(parts, "CDI "+c.Name+" is "+c.State.Word())
	}
	sentences := []string{strings.Join(parts, ", ")}
	for _, w := range f.Why() {
		sentences = append(sentences, fmt.Sprintf("%s: %s. What to do: %s", w.ID, w.Reason(), w.Remedy))
	}
	return strings.Join(sentences, ". ")
}

// remarks are the findings that are about no function, and what is not known.
func remarks(i *inventory.Inventory) []string {
	var all []string
	for k, f := range i.Findings {
		if k == mostRemarks {
			all = append(all, fmt.Sprintf("and %d more findings", len(i.Findings)-k))
			break
		}
		all = append(all, strings.TrimSpace(f.ID+" "+f.Subject())+": "+f.Reason())
	}
	return append(all, i.NotKnown()...)
}

func addresses[T fmt.Stringer](all []T) string {
	parts := make([]string, len(all))
	for k, a := range all {
		parts[k] = a.String()
	}
	return strings.Join(parts, ", ")
}

// inState are the addresses of the functions in a state.
func inState(all []*inventory.Function, s inventory.State) []fmt.Stringer {
	var list []fmt.Stringer
	for _, f := range all {
		if f.State == s {
			list = append(list, f.Address)
		}
	}
	return list
}
