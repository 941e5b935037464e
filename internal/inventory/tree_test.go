package inventory_test

import (
	"fmt"
	"strings"
	"testing"

	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/pci"
)

// TestTree hangs functions by their paths, and wants them where a person looks for them.
func TestTree(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		paths      []string // below a PCIe root; "N " in front is the NUMA node, "pf>" the PF
	}{
		{"on the root bus", "0[pci0000:00(00:02.0)]", []string{"0 pci0000:00/00:02.0"}},
		{"behind a root port", "0[pci0000:00(01:00.0 via 00:01.0)]", []string{"0 pci0000:00/00:01.0/01:00.0"}},
		{"two functions of a device", "0[pci0000:00(port 00:01.0(01:00.0 01:00.1))]",
			[]string{"0 pci0000:00/00:01.0/01:00.0", "0 pci0000:00/00:01.0/01:00.1"}},
		{"one function behind a switch", "0[pci0000:00(03:00.0 via 00:01.0 01:00.0 02:00.0)]", []string{"0 pci0000:00/00:01.0/01:00.0/02:00.0/03:00.0"}},
		{"a switch", "0[pci0000:00(switch 00:01.0 01:00.0(03:00.0 via 02:00.0, 04:00.0 via 02:01.0))]",
			[]string{"0 pci0000:00/00:01.0/01:00.0/02:01.0/04:00.0", "0 pci0000:00/00:01.0/01:00.0/02:00.0/03:00.0"}},
		{"a switch behind a switch", "0[pci0000:00(switch 00:01.0 01:00.0(switch 02:00.0 03:00.0(05:00.0 via 04:00.0, 06:00.0 via 04:01.0) 07:00.0 via 02:01.0))]",
			[]string{"0 pci0000:00/00:01.0/01:00.0/02:00.0/03:00.0/04:00.0/05:00.0", "0 pci0000:00/00:01.0/01:00.0/02:00.0/03:00.0/04:01.0/06:00.0",
				"0 pci0000:00/00:01.0/01:00.0/02:01.0/07:00.0"}},
		{"no switch, though ports part", "0[pci0000:00(port 00:01.0(02:00.0 via 01:00.0, 03:00.0 via 01:01.0))]",
			[]string{"0 pci0000:00/00:01.0/01:00.0/02:00.0", "0 pci0000:00/00:01.0/01:01.0/03:00.0"}},
		{"a PF with VFs on another bus", "0[pci0000:00(01:00.0{01:00.1 02:00.0} via 00:01.0)]",
			[]string{"0 pci0000:00/00:01.0/01:00.0", "0 pci0000:00/00:01.0/01:00.0>01:00.1", "0 pci0000:00/00:01.0/01:00.0>02:00.0"}},
		{"VFs without their PF", "0[pci0000:00(port 00:01.0(01:00.1 01:00.2))]",
			[]string{"0 pci0000:00/00:01.0/0f:00.0>01:00.1", "0 pci0000:00/00:01.0/0f:00.0>01:00.2"}},
		{"NUMA nodes in order, unknown last", "0[pci0000:00(00:02.0) pci0000:40(41:00.0)] 1[pci0000:80(81:00.0)] 10[pci0000:20(21:00.0)] ?[pci0000:00(00:03.0)]",
			[]string{"0 pci0000:00/00:02.0", "? pci0000:00/00:03.0", "10 pci0000:20/21:00.0", "0 pci0000:40/41:00.0", "1 pci0000:80/81:00.0"}},
		{"long domains behind short ones", "0[pcifffe:00(00:02.0) pci10000:00(00:03.0)]", []string{"0 pcifffe:00/00:02.0", "0 pci10000:00/00:03.0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := &inventory.Inventory{}
			for _, p := range tt.paths {
				hang(t, i, p)
			}
			if got := draw(i.Tree()); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// hang adds a function with a path to an inventory.
func hang(t *testing.T, i *inventory.Inventory, text string) {
	t.Helper()
	node, path, _ := strings.Cut(text, " ")
	path, vf, isVF := strings.Cut(path, ">")
	elements := strings.Split(path, "/")
	var all []pci.Address
	for _, e := range elements[1:] {
		a, err := pci.ParseAddress("0000:" + e)
		must(t, err)
		all = append(all, a)
	}
	f := inventory.Function{PCIeRoot: elements[0], Bridges: all[:len(all)-1], Address: all[len(all)-1]}
	if isVF {
		pf := f.Address
		var err error
		f.Address, err = pci.ParseAddress("0000:" + vf)
		must(t, err)
		f.PhysicalFunction = &pf
		for k := range i.Functions {
			if i.Functions[k].Address == pf {
				i.Functions[k].VirtualFunctions = append(i.Functions[k].VirtualFunctions, f.Address)
			}
		}
	}
	if node != "?" {
		var n int
		_, err := fmt.Sscan(node, &n)
		must(t, err)
		f.NUMANode = &n
	}
	i.Functions = append(i.Functions, f)
}

// draw is a tree in one line.
func draw(all []inventory.NUMA) string {
	var nodes []string
	for _, n := range all {
		name := "?"
		if n.Node != nil {
			name = fmt.Sprint(*n.Node)
		}
		var roots []string
		for _, r := range n.Roots {
			roots = append(roots, *r.Root+"("+branch(r)+")")
		}
		nodes = append(nodes, name+"["+strings.Join(roots, " ")+"]")
	}
	return strings.Join(nodes, " ")
}

func branch(b inventory.Branch) string {
	var parts []string
	for _, below := range b.Branches {
		kind := "port"
		if below.Switch {
			kind = "switch"
		}
		parts = append(parts, kind+addresses(below.Bridges)+"("+branch(below)+")")
	}
	for k, l := range b.Functions {
		text := short(l.Address)
		if len(l.VFs) > 0 {
			var vfs []pci.Address
			for _, vf := range l.VFs {
				vfs = append(vfs, vf.Address)
			}
			text += "{" + addresses(vfs)[1:] + "}"
		}
		if len(l.Via) > 0 {
			text += " via" + addresses(l.Via)
			if k < len(b.Functions)-1 {
				text += ","
			}
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

func addresses(all []pci.Address) string {
	var b strings.Builder
	for _, a := range all {
		b.WriteString(" " + short(a))
	}
	return b.String()
}

func short(a pci.Address) string { return strings.TrimPrefix(a.String(), "0000:") }
