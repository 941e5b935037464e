package check

import (
	"errors"
	"slices"
	"strings"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/nic"
)

// The family HST: what the rules that declare devices say of captured hardware. Nothing is judged
// here a second time.
func hostChecks() []Check {
	var all []Check
	for _, k := range hostKinds() {
		all = append(all, Check{k, []Need{needHardware}, func(w *World) []Finding { return hostFindings(w, k.ID) }})
	}
	for _, k := range nicKinds() {
		all = append(all, Check{k, []Need{needNICRules}, func(w *World) []Finding { return hostFindings(w, k.ID) }})
	}
	return all
}

// nicKinds are what the rules of NICs may say beside that.
func nicKinds() []finding.Kind {
	return []finding.Kind{
		finding.HostInUse(), finding.RDMAIncomplete(), finding.NoDriver(), finding.NodeMissing(),
		finding.ReplacedByVFs(), finding.NotSelected(), finding.NoRDMA(),
	}
}

// hasNICRules says whether the rules of NICs are known, and could be applied.
func (n *captured) hasNICRules() bool { return n.hasHardware() && n.nics != nil }

// hostKinds are what the rules may say of a node that is looked at once, without the
// configuration of a NIC plugin.
func hostKinds() []finding.Kind {
	return []finding.Kind{
		finding.NoIOMMUGroup(), finding.NotViable(), finding.NoCdev(), finding.NoCdevNumber(), finding.NoIOMMUMode(),
		finding.VirtualFunction(), finding.NotPCI(), finding.JunkName(), finding.NotCharDevice(), finding.OtherNumber(),
		finding.NotYet(), finding.HasVFs(), finding.WideDomain(), finding.Unreadable(), finding.StaleMount(),
		finding.Unlisted(),
	}
}

// hardware is what a node has.
type hardware struct {
	*inventory.Inventory
	// whole: the capture has all that the rules want to know. To them what nobody captured would
	// be what cannot be read.
	whole bool
}

// hasHardware says whether the capture has the hardware, and all that decides about it.
func (n *captured) hasHardware() bool {
	_, err := n.c.Files("/sys/bus/pci/devices")
	return !errors.Is(err, capture.ErrNotCaptured) && n.inventory().whole
}

// inventory is what the node has. It is made once.
func (n *captured) inventory() *hardware {
	if n.made == nil {
		wanted := func(id host.Identity) bool { return declare.Passthrough().Wants(id) || nic.Wants(id) }
		source := n.c.Tree().Source()
		source.Wanted, source.Network, source.PCIeLink = wanted, nic.Wants, wanted
		snapshot := source.Look(nil)
		in := inventory.Input{Node: n.name, NICs: n.nics, Holders: n.holders()}
		n.made = judged(inventory.New(snapshot, in))
		if !n.made.whole && n.nics != nil { // the rules of NICs want to know more than the others
			n.nics, in.NICs = nil, nil
			n.made = judged(inventory.New(snapshot, in))
		}
	}
	return n.made
}

// judged says of an inventory whether it rests on all that it should.
func judged(inv *inventory.Inventory) *hardware {
	all := slices.Clone(inv.Findings)
	for i := range inv.Functions {
		all = append(all, inv.Functions[i].Why()...)
	}
	lacks := slices.ContainsFunc(all, func(f inventory.Finding) bool {
		return strings.Contains(evidenceText(f), capture.ErrNotCaptured.Error())
	})
	return &hardware{inv, !lacks}
}

func hostFindings(w *World, id string) []Finding {
	return w.onNodes((*captured).hasHardware, func(n *captured) []Finding {
		var all []Finding
		inv := n.inventory()
		seen := map[string]bool{}
		add := func(found inventory.Finding) {
			if key := strings.Join([]string{found.Device, found.Resource, evidenceText(found)}, " "); found.ID == id &&
				!seen[key] {
				seen[key] = true
				all = append(all, n.byRule(found))
			}
		}
		for _, f := range inv.Findings {
			add(f)
		}
		for i := range inv.Functions {
			for _, f := range inv.Functions[i].Findings {
				add(f)
			}
			devices := inv.Functions[i].Devices
			for _, d := range devices {
				for _, f := range d.Findings {
					if len(devices) > 1 { // shares of one function, which all lack the same
						f.Device = inv.Functions[i].Address.String()
					}
					add(f)
				}
			}
		}
		return all
	})
}

// byRule is what a rule says of a node, as a finding of a check.
func (n *captured) byRule(from inventory.Finding) Finding {
	subject := "node " + n.name
	if from.Device != "" {
		subject = from.Device + " of " + subject
	}
	f := n.found("%s: %s", subject, from.Title).about(from.Resource)
	for _, e := range from.Evidence {
		f = f.because("%s", strings.TrimSuffix(e.Path+" = "+e.Value, " = "))
	}
	return f
}

func evidenceText(f inventory.Finding) string {
	var b strings.Builder
	for _, e := range f.Evidence {
		b.WriteString(e.Path + "=" + e.Value + " ")
	}
	return b.String()
}
