package nodestate

import (
	"slices"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// declare applies the programs' own rules to the hardware.
//
// A device that has left is not there any more: to keep it, as the plugins do for kubelet, would
// make the answer depend on when this process was started.
func (j *join) declare() {
	snapshot := j.facts.Hardware.Value
	candidates := map[pci.Address]bool{}
	found := map[string]finding.Finding{} // the first about a function
	told := map[string]bool{}
	for k, rules := range j.facts.Rules {
		past := declare.Past{Held: j.held()}
		if k < len(j.before.declared) {
			past.Announced = j.before.declared[k]
		}
		j.s.Past = append(j.s.Past, past)
		d := rules.Declare(snapshot, past)
		j.s.declared = append(j.s.declared, d.Resources)
		for i := range d.Resources {
			j.declared(&d.Resources[i])
		}
		for i := range snapshot.Functions {
			a := snapshot.Functions[i].Address
			if _, other := d.Others[a.String()]; !other {
				candidates[a] = true
			}
		}
		for _, f := range d.Findings {
			if told[f.Key()] {
				continue
			}
			told[f.Key()] = true
			j.s.Findings = append(j.s.Findings, f)
			if _, ok := found[f.Device]; !ok {
				found[f.Device] = f
			}
		}
	}
	for i := range snapshot.Functions {
		f := &snapshot.Functions[i]
		switch {
		case candidates[f.Address]:
			j.candidate(f, found[f.Address.String()])
		case f.Cdev != nil:
			j.function(f.Address)
		}
	}
}

// declared enters the units of a resource.
func (j *join) declared(r *declare.Resource) {
	count := j.resource(r.Name)
	count.Declared = true
	for i := range r.Devices {
		d := &r.Devices[i]
		key := unitKey{r.Name, d.ID}
		if _, twice := j.units[key]; twice {
			continue
		}
		j.units[key] = len(j.s.Units)
		j.s.Units = append(j.s.Units, Unit{Resource: r.Name, ID: d.ID, Address: d.Function.Address, Faults: d.Faults})
		f := j.function(d.Function.Address)
		f.of(r.Name)
		count.Discovered++
		if d.Healthy() {
			count.Healthy++
			if f.State != Unhealthy {
				f.State = Healthy
			}
			continue
		}
		count.Unhealthy++
		count.WhyUnhealthy[d.Faults[0].ID]++
		if f.State != Unhealthy {
			f.State, f.Reason = Unhealthy, d.Faults[0]
		}
	}
}

// candidate enters a function that a rule is about. Where it is no device, there is a reason.
func (j *join) candidate(f *host.Function, why finding.Finding) {
	entry := j.function(f.Address)
	if entry.State != Foreign {
		return // it is one
	}
	entry.State, entry.Reason = Excluded, why
	name, id := why.Resource, why.ID
	if name == "" {
		name = None
	}
	if id == "" {
		id = None // of a whole pool the rules say once what they cannot know
	}
	count := j.resource(name)
	count.Declared = true
	count.Discovered++
	count.Excluded++
	count.WhyExcluded[id]++
}

// held are the devices that containers have, as the rules want to know it: by kubelet's word, else
// by its record, else unknown.
func (j *join) held() map[string][]string {
	held := map[string][]string{}
	switch {
	case j.fresh[Pods]:
		for _, p := range j.facts.Pods.Value {
			for _, c := range p.Containers {
				for _, d := range c.Devices {
					held[d.Resource] = append(held[d.Resource], d.ID)
				}
			}
		}
	case j.fresh[Record]:
		for _, g := range j.facts.Record.Value.Given {
			held[g.Resource] = append(held[g.Resource], g.ID)
		}
	default:
		return nil
	}
	for name, ids := range held {
		slices.Sort(ids)
		held[name] = slices.Compact(ids)
	}
	return held
}
