package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// fewSubjects is how many functions with the same reason the short table shows.
const fewSubjects = 4

// reason is a kind of finding with all that it is about.
type reason struct {
	Finding
	about []Finding
}

// reasons writes why functions are not declared or not healthy: for each kind of reason what
// it is, the functions with the evidence, and the remedy. most is how many functions of a
// kind are shown, 0 for all.
func (p *page) reasons(i *Inventory, most int) {
	for _, r := range gather(i) {
		p.line("")
		p.sentence("", "  ", r.ID+" "+r.Severity+": "+r.Title)
		for k, f := range r.about {
			if k == most && most > 0 {
				p.line(fmt.Sprintf("  and %d more: -o wide has them", len(r.about)-k))
				break
			}
			p.sentence("  "+subject(f, "  "), "    ", evidenceText(f.Evidence))
		}
		p.sentence("  fix: ", "       ", r.Remedy)
	}
	if silent := i.silent(); len(silent) > 0 {
		p.line("")
		p.sentence("", "  ", noReason+": "+strings.Join(silent, ", "))
	}
}

// noReason is for candidates that are not declared and of which no rule says why.
const noReason = "No rule has a reason why it is not declared"

// silent are the addresses of those.
func (i *Inventory) silent() []string {
	var all []string
	for k := range i.Functions {
		if i.Functions[k].silent() {
			all = append(all, i.Functions[k].Address.String())
		}
	}
	return all
}

func (f *Function) silent() bool { return f.State == NotDeclared && len(f.Findings) == 0 }

// gather sorts findings by kind: the worst first.
func gather(i *Inventory) []*reason {
	var all []*reason
	byID := map[string]*reason{}
	add := func(f Finding) {
		r := byID[f.ID]
		if r == nil {
			r = &reason{Finding: f}
			byID[f.ID] = r
			all = append(all, r)
		}
		r.about = append(r.about, f)
	}
	for _, f := range i.Findings {
		add(f)
	}
	for k := range i.Functions {
		for _, f := range i.Functions[k].Why() {
			if f.Device == "" {
				continue // it is with the node's
			}
			add(f)
		}
	}
	slices.SortStableFunc(all, func(a, b *reason) int {
		return cmp.Or(cmp.Compare(rank(a.Severity), rank(b.Severity)), strings.Compare(a.ID, b.ID))
	})
	return all
}

func rank(severity string) int {
	return slices.Index([]string{"error", "warning", "note"}, severity)
}

// subject is that of a finding, with a space behind it where there is one.
func subject(f Finding, space string) string {
	if s := f.Subject(); s != "" {
		return plain(s) + space
	}
	return ""
}

// notKnown writes why a part is missing.
func (p *page) notKnown(i *Inventory) {
	for _, text := range i.NotKnown() {
		p.sentence("", "  ", text)
	}
}

// footer writes the numbers, and where to read on.
func (p *page) footer(i *Inventory) {
	c := i.Counts
	p.line("")
	p.sentence("", "  ", fmt.Sprintf("%d declared (%d unhealthy), %d not declared, %d not ours",
		c.Healthy+c.Unhealthy, c.Unhealthy, c.NotDeclared, c.NotOurs))
	for _, r := range i.Resources {
		p.line(fmt.Sprintf("%s: %d, %d of them healthy", plain(r.Name), r.Devices, r.Healthy))
	}
	if i.Partial {
		p.sentence("", "  ", "Something could not be read: a part of this may be older than the rest, or missing.")
		for _, why := range i.Unread {
			p.sentence("  ", "    ", plain(why))
		}
	}
	if i.Lacks(UnknownRules) && slices.ContainsFunc(i.Functions, func(f Function) bool { return f.Type == NIC }) {
		p.sentence("", "  ", "Which network controllers are declared cannot be told without the configuration of nic-device-plugin.")
	}
	if i.Lacks(UnknownLinks) {
		p.sentence("", "  ", "Which network controllers the host uses itself is not known here: on the node, those are not declared.")
	}
	if all := gather(i); len(all) > 0 {
		of := max(0, slices.IndexFunc(all, func(r *reason) bool { return r.Device != "" }))
		p.sentence("", "  ", "More about a reason: kubectl device check --explain "+all[of].ID)
	}
}
