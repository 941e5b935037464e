package inventory

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// none and unknown are what a cell says where there is nothing, and where nobody knows.
const (
	none    = "-"
	unknown = "?"
)

// column is one of a table.
type column struct {
	head string
	cell func(*Inventory, *Function) string
	cut  bool // may be shortened
}

func columns() []column {
	return []column{
		{head: "ADDRESS", cell: func(_ *Inventory, f *Function) string { return f.Address.String() }},
		{head: "PRODUCT", cell: func(_ *Inventory, f *Function) string { return f.Title() }, cut: true},
		{head: "STATE", cell: func(_ *Inventory, f *Function) string { return f.State.Word() }},
		{head: "RESOURCE", cell: func(_ *Inventory, f *Function) string { return cmp.Or(strings.Join(f.Resources(), ","), none) }},
		{head: "NUMA", cell: func(_ *Inventory, f *Function) string { return numa(f.NUMANode) }},
		{head: "DRIVER", cell: func(_ *Inventory, f *Function) string { return f.orNone(f.Driver) }},
		{head: "CDEV", cell: func(_ *Inventory, f *Function) string { return f.cdev() }},
		{head: "REASON", cell: func(_ *Inventory, f *Function) string { return cmp.Or(strings.Join(f.Reasons(), ","), none) }},
	}
}

func wideColumns() []column {
	return append(columns(),
		column{head: "TYPE", cell: func(_ *Inventory, f *Function) string { return string(f.Type) }},
		column{head: "VENDOR:DEVICE", cell: func(_ *Inventory, f *Function) string { return f.numbers() }},
		column{head: "CLASS", cell: func(_ *Inventory, f *Function) string { return cmp.Or(f.Class, unknown) }},
		column{head: "GROUP", cell: func(_ *Inventory, f *Function) string { return f.orNone(f.IOMMUGroup) }},
		column{head: "COMPANIONS", cell: func(_ *Inventory, f *Function) string { return f.companions() }},
		column{head: "ROOT", cell: func(_ *Inventory, f *Function) string { return cmp.Or(f.PCIeRoot, unknown) }},
		column{head: "PF", cell: func(_ *Inventory, f *Function) string { return f.pf() }},
		column{head: "INTERFACES", cell: func(_ *Inventory, f *Function) string { return list(f.Interfaces) }},
		column{head: "RDMA", cell: func(_ *Inventory, f *Function) string { return list(f.RDMADevices) }},
		column{head: "CDI", cell: func(i *Inventory, f *Function) string { return i.cdi(f) }},
		column{head: "HOLDERS", cell: func(i *Inventory, f *Function) string { return i.holders(f) }},
	)
}

func list(all []string) string { return cmp.Or(strings.Join(all, ","), none) }

func numa(n *int) string {
	if n == nil {
		return unknown
	}
	return strconv.Itoa(*n)
}

// cdev is the name of the character device, with what is wrong with it.
func (f *Function) cdev() string {
	if f.Cdev == nil {
		return f.orNone("")
	}
	name := f.Cdev.Path[strings.LastIndexByte(f.Cdev.Path, '/')+1:]
	if f.Cdev.State != CdevReady {
		name += "(" + string(f.Cdev.State) + ")"
	}
	return name
}

func (f *Function) numbers() string {
	if f.Vendor == "" {
		return unknown
	}
	return strings.TrimPrefix(f.Vendor, "0x") + ":" + strings.TrimPrefix(f.Device, "0x")
}

func (f *Function) companions() string {
	var all []string
	for _, c := range f.Companions {
		all = append(all, c.Address.String())
	}
	return list(all)
}

func (f *Function) pf() string {
	if f.PhysicalFunction == nil {
		return none
	}
	return f.PhysicalFunction.String()
}

// cdi is what the CDI names of a function's devices resolve to.
func (i *Inventory) cdi(f *Function) string {
	if len(f.Devices) == 0 {
		return none
	}
	var all []string
	for _, d := range f.Devices {
		state := unknown
		switch {
		case d.CDI != nil:
			state = d.CDI.State.Word()
		case !i.Lacks(UnknownCDI):
			state = none // nobody offers it
		}
		if !slices.Contains(all, state) {
			all = append(all, state)
		}
	}
	return strings.Join(all, ",")
}

func (i *Inventory) holders(f *Function) string {
	if len(f.Devices) > 0 && i.Lacks(UnknownHolders) {
		return unknown
	}
	var all []string
	for _, h := range f.Holders() {
		all = append(all, h.String())
	}
	return list(all)
}
