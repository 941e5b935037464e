package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// orNone is a fact, or that there is none: of a function that could not be read, nobody knows.
func (f *Function) orNone(fact string) string {
	switch {
	case fact != "":
		return fact
	case f.Type == UnknownType:
		return unknown
	}
	return none
}

// Bound is what the function is bound to, in words.
func (f *Function) Bound() string {
	switch f.orNone(f.Driver) {
	case none:
		return "no driver"
	case unknown:
		return "driver unknown"
	}
	return f.Driver
}

// Title is the name of the product, or what is known instead.
func (f *Function) Title() string { return cmp.Or(f.Name, f.ClassName, "unknown") }

// Resources are the names of those that a function is, with a number where it is several
// devices of one.
func (f *Function) Resources() []string {
	var names []string
	count := map[string]int{}
	for _, d := range f.Devices {
		if count[d.Resource]++; count[d.Resource] == 1 {
			names = append(names, d.Resource)
		}
	}
	for i, n := range names {
		if count[n] > 1 {
			names[i] = fmt.Sprintf("%s(%d)", n, count[n])
		}
	}
	return names
}

// Reasons are the IDs of the findings about a function and its devices, each once.
func (f *Function) Reasons() []string {
	var all []string
	for _, w := range f.Why() {
		if !slices.Contains(all, w.ID) {
			all = append(all, w.ID)
		}
	}
	return all
}

// Why are the findings about a function and its devices. Of shares that all have the same
// fault the first stands for the others.
func (f *Function) Why() []Finding {
	all := slices.Clone(f.Findings)
	for _, d := range f.Devices {
		for _, w := range d.Findings {
			if !slices.ContainsFunc(all, w.sameAs) {
				all = append(all, w)
			}
		}
	}
	return all
}

func (w Finding) sameAs(other Finding) bool {
	return w.ID == other.ID && w.Resource == other.Resource && slices.Equal(w.Evidence, other.Evidence)
}

// Holders are who has a function, or a device of it, each once.
func (f *Function) Holders() []Holder {
	var all []Holder
	add := func(holders []Holder) {
		for _, h := range holders {
			if !slices.Contains(all, h) {
				all = append(all, h)
			}
		}
	}
	for _, d := range f.Devices {
		add(d.Holders)
	}
	add(f.HeldBy)
	return all
}

// Unresolved are the CDI names of a function's devices that do not come to what they should.
func (f *Function) Unresolved() []CDI {
	var all []CDI
	for _, d := range f.Devices {
		if d.CDI != nil && d.CDI.State != CDIResolves {
			all = append(all, *d.CDI)
		}
	}
	return all
}

// NotKnown are sentences about the sources that somebody has tried, and that told nothing.
func (i *Inventory) NotKnown() []string {
	var all []string
	for _, of := range []struct {
		Unknown
		what string
	}{{UnknownHolders, "Who has which device"}, {UnknownCDI, "Whether CDI resolves the devices"}} {
		if why := i.Because[of.Unknown]; why != "" {
			all = append(all, of.what+" is not known: "+why)
		}
	}
	return all
}

// alike groups functions that differ in nothing but their addresses and numbers, in the order
// of the first of each group.
func alike(all []*Function) [][]*Function {
	at := map[string]int{}
	var groups [][]*Function
	for _, f := range all {
		parts := slices.Concat([]string{string(f.State), f.Title(), f.Driver, f.Class}, f.Resources())
		for _, h := range f.Holders() {
			parts = append(parts, h.String())
		}
		for _, c := range f.Unresolved() {
			parts = append(parts, string(c.State))
		}
		for _, w := range f.Why() {
			parts = append(parts, w.ID)
			for _, e := range w.Evidence {
				parts = append(parts, e.Value) // the path has the address in it
			}
		}
		key := strings.Join(parts, "\x00")
		k, ok := at[key]
		if !ok {
			k = len(groups)
			at[key] = k
			groups = append(groups, nil)
		}
		groups[k] = append(groups[k], f)
	}
	return groups
}

// Subject is what a finding is about: a device, an entry, a resource, or "" for the node.
func (w Finding) Subject() string { return strings.Trim(w.Device+" "+w.Resource, " ") }

// Reason is what is the case, with the evidence if there is any.
func (w Finding) Reason() string {
	if len(w.Evidence) == 0 {
		return w.Title
	}
	return w.Title + ": " + evidenceText(w.Evidence)
}

func evidenceText(all []Evidence) string {
	parts := make([]string, len(all))
	for k, e := range all {
		parts[k] = e.Path
		if e.Value != "" {
			parts[k] += " = " + e.Value
		}
	}
	return strings.Join(parts, ", ")
}
