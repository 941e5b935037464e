package inventory

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// New makes the inventory of a snapshot. What is declared, and why something is not, is the
// word of the rules that the programs have.
func New(s *host.Snapshot, in Input) *Inventory {
	j := &join{s: s, in: in, inv: &Inventory{
		APIVersion: APIVersion, Kind: Kind, Node: in.Node, Functions: make([]Function, 0, len(s.Functions)),
		Partial: s.Partial(), Unread: unread(s), Unknown: in.unknown(s), Because: in.because(in.unknown(s)),
	}, owner: map[string]int{}, others: map[pci.Address]finding.Evidence{}, told: map[string]bool{}}
	for i := range s.Functions {
		j.function(&s.Functions[i])
	}
	rules := []declare.Rules{declare.Passthrough()}
	if in.NICs != nil {
		rules = append(rules, in.NICs)
	}
	var found []finding.Finding
	for k, r := range rules {
		d := r.Declare(s, in.past(k))
		j.devices(d.Resources)
		j.neither(d.Others, k == 0)
		found = append(found, d.Findings...)
	}
	for _, f := range found {
		j.find(f)
	}
	j.heldOtherwise()
	for i := range j.inv.Functions {
		j.settle(&j.inv.Functions[i])
	}
	slices.SortStableFunc(j.inv.Resources, func(a, b Resource) int { return strings.Compare(a.Name, b.Name) })
	return j.inv
}

// unread are the sources that a look could not read as a whole.
func unread(s *host.Snapshot) []string {
	var all []string
	for _, err := range s.Unread {
		all = append(all, err.Error())
	}
	if s.LinksErr != nil {
		all = append(all, s.LinksErr.Error())
	}
	return all
}

// join puts facts and judgements together.
type join struct {
	s   *host.Snapshot
	in  Input
	inv *Inventory
	// owner is the function of a device, subfunction or address.
	owner map[string]int
	// others are the functions that no rule is about.
	others map[pci.Address]finding.Evidence
	told   map[string]bool // findings, by key: two programs may have the same
}

// function enters the facts of a function.
func (j *join) function(f *host.Function) {
	at := len(j.inv.Functions)
	j.owner[f.Address.String()] = at
	if f.Network != nil {
		for _, sf := range f.Network.Subfunctions {
			j.owner[sf.Name] = at
		}
	}
	j.inv.Functions = append(j.inv.Functions, facts(f, j.in.Name))
}

// devices enters what is declared.
func (j *join) devices(resources []declare.Resource) {
	for _, r := range resources {
		count := Resource{Name: r.Name, Devices: len(r.Devices)}
		for i := range r.Devices {
			d := &r.Devices[i]
			at, ok := j.owner[d.Function.Address.String()]
			if !ok {
				continue
			}
			j.owner[d.ID] = at
			if d.Healthy() {
				count.Healthy++
			}
			f := &j.inv.Functions[at]
			f.Devices = append(f.Devices, j.device(d, r.Name))
		}
		j.inv.Resources = append(j.inv.Resources, count)
	}
}

func (j *join) device(d *declare.Device, resource string) Device {
	e := Device{ID: d.ID, Resource: resource, Healthy: d.Healthy(), Holders: j.in.holders(d.ID, resource)}
	for _, n := range d.Nodes {
		e.Nodes = append(e.Nodes, n.OnHost())
	}
	for _, f := range d.Faults {
		e.Findings = append(e.Findings, show(f))
	}
	if c, ok := j.in.CDI[d.ID]; ok {
		e.CDI = &c
	}
	return e
}

// neither keeps the functions that the rules so far, and these, are not about.
func (j *join) neither(others map[string]finding.Evidence, first bool) {
	for i := range j.inv.Functions {
		a := j.inv.Functions[i].Address
		why, other := others[a.String()]
		switch {
		case !other:
			delete(j.others, a)
		case first:
			j.others[a] = why
		}
	}
}

// find enters a finding where it belongs: with its function, or with the node.
func (j *join) find(f finding.Finding) {
	if j.told[f.Key()] {
		return
	}
	j.told[f.Key()] = true
	if at, ok := j.owner[f.Device]; ok {
		j.inv.Functions[at].Findings = append(j.inv.Functions[at].Findings, show(f))
		return
	}
	j.inv.Findings = append(j.inv.Findings, show(f))
}

// heldOtherwise enters who has a function as something that is no device of it: a container keeps what it has when that is
// declared no more, somebody else's plugin may offer the function too, and a claim has it whole where shares are
// declared.
func (j *join) heldOtherwise() {
	for id, holders := range j.in.Holders {
		at, ok := j.owner[id]
		if !ok {
			function, _, _ := strings.Cut(id, "::") // a share
			at, ok = j.owner[function]
		}
		if !ok {
			continue
		}
		f := &j.inv.Functions[at]
		for _, h := range holders {
			if !slices.ContainsFunc(f.Devices, func(d Device) bool { return d.ID == id && h.of(d.Resource) }) {
				f.HeldBy = append(f.HeldBy, h)
			}
		}
	}
	for i := range j.inv.Functions {
		sortHolders(j.inv.Functions[i].HeldBy)
	}
}

// settle decides on the state of a function once all is entered. A candidate of which the
// rules say nothing stays one, without a reason: to find one here would be a second judgement.
func (j *join) settle(f *Function) {
	why, other := j.others[f.Address]
	if len(f.Devices) == 0 && len(f.Findings) == 0 && !other {
		// The rules say of a whole pool that the host's own links are not known.
		f.Findings = j.ofNode(finding.LinksUnknown())
	}
	switch {
	case slices.ContainsFunc(f.Devices, func(d Device) bool { return !d.Healthy }):
		f.State = Unhealthy
	case len(f.Devices) > 0:
		f.State = Healthy
	case other && len(f.Findings) == 0:
		f.State, f.Evidence = NotOurs, []Evidence{Evidence(why)}
	default:
		f.State = NotDeclared
	}
	j.inv.Counts.add(f.State)
}

// ofNode are the findings of a kind that are about more than one function.
func (j *join) ofNode(k finding.Kind) []Finding {
	var all []Finding
	for _, f := range j.inv.Findings {
		if f.ID == k.ID {
			all = append(all, f)
		}
	}
	return all
}

func show(f finding.Finding) Finding {
	return Finding{
		ID: f.ID, Severity: f.Severity.String(), Title: f.Title, Resource: f.Resource, Device: f.Device,
		Evidence: evidence(f.Evidence), Remedy: f.Remedy,
	}
}

func evidence(all []finding.Evidence) []Evidence {
	var list []Evidence
	for _, e := range all {
		list = append(list, Evidence(e))
	}
	return list
}
