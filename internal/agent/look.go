package agent

import (
	"context"
	"slices"
	"time"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/lookout"
)

// look reads the node and makes what is announced agree with it.
func (a *Agent) look(ctx context.Context, how lookout.Depth, now time.Time) {
	rules := a.rules
	if a.prog.Reload != nil {
		if rules, a.faulty = a.prog.Reload(); rules != a.rules {
			how = max(how, lookout.Glance) // they may need to know what nobody asked for before
		}
	}
	a.readSpecs(rules)
	a.readCheckpoint()
	var lost []*offer
	for adopted := false; !adopted; how = max(how, lookout.Glance) {
		a.answers.forget()
		lost, adopted = a.adopt(ctx, rules, a.lookout.Observe(how), now)
	}
	a.report.Once("links and routes of the host", a.snapshot.LinksErr) // what was read before stands
	// Outside the mutex: stopping waits for calls that may want it.
	for _, o := range a.offers {
		if slices.Contains(lost, o) {
			err := o.stop()
			a.report.Once("end of the offer of "+o.resource, err)
		} else if o.announced {
			o.start(ctx)
		}
	}
	a.letGo()
	if !a.snapshot.Torn() && !a.snapshot.Partial() {
		a.sweep(now) // what could not be read is not gone
		a.sweepOrphans(now)
	}
}

// adopt makes a snapshot and rules those that are announced, and returns the offers that
// another agent has. It reports false when an answer to Allocate has overtaken the snapshot:
// then nothing was done, and the node has to be looked at again.
func (a *Agent) adopt(ctx context.Context, rules declare.Rules, snapshot *host.Snapshot, now time.Time) (lost []*offer, adopted bool) {
	declared := a.declare(ctx, rules, snapshot, now)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answers.deniedBy(declared.Resources) {
		return nil, false
	}
	a.findings, a.rules, a.snapshot = declared.Findings, rules, snapshot
	return a.apply(declared, now), true
}

// apply brings all offers up to date, and returns those that another agent has.
func (a *Agent) apply(declared declare.Declaration, now time.Time) []*offer {
	var lost []*offer
	present := make(map[string]bool)
	for _, r := range declared.Resources {
		present[r.Name] = true
		o := a.offer(r.Name)
		if o == nil {
			continue // it has no name for its sockets, which no rules should bring about
		}
		before := o.byID
		o.inherited = a.inherited(o.resource, o.inherited, now)
		if !o.resolve(r.Devices, now) {
			lost = append(lost, o)
			continue
		}
		if o.fresh {
			a.readSpecs(a.rules) // who had the lock may have written since they were read
		}
		o.announce(r.Devices, a.foreign)
		a.report.devices(o, before)
	}
	for _, o := range a.offers {
		if !present[o.resource] { // it waited for another agent, and its devices have left
			o.trouble = nil
			lost = append(lost, o)
		}
	}
	return lost
}

// letGo gives up what all offers need when there is none that goes on: another agent may offer.
func (a *Agent) letGo() {
	if !slices.ContainsFunc(a.offers, func(o *offer) bool { return o.lock.Taken() }) {
		a.report.Once("end of all offers", a.family.Release())
	}
}

// readSpecs reads the other owners' CDI specs. Where the directory cannot be listed,
// the last state stands; that it cannot is found again by whoever writes to it.
func (a *Agent) readSpecs(rules declare.Rules) {
	var own []string
	for _, n := range a.names(rules) {
		own = append(own, cdi.FileName(a.prog.Specs, n.Resource))
	}
	foreign, err := a.neighbours.Read(own)
	a.report.Once("CDI specs of others", err)
	if err == nil {
		a.foreign = foreign
	}
}

// names are the resources that rules name, and those that were offered before the rules had
// them no more.
func (a *Agent) names(rules declare.Rules) []declare.Name {
	all := slices.Clone(rules.Names())
	for _, o := range a.offers {
		if name := (declare.Name{Resource: o.resource, Socket: o.socket}); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// ledger is what was announced so far.
func (a *Agent) ledger() []declare.Resource {
	var all []declare.Resource
	for _, o := range a.offers {
		if o.announced {
			all = append(all, declare.Resource{Name: o.resource, Devices: o.base})
		}
	}
	return all
}

// find returns the offer of a resource, nil when there is none yet.
func (a *Agent) find(resource string) *offer {
	for _, o := range a.offers {
		if o.resource == resource {
			return o
		}
	}
	return nil
}

// offer finds the offer of a resource, and makes it when a device of the resource is
// there for the first time.
func (a *Agent) offer(resource string) *offer {
	if o := a.find(resource); o != nil {
		return o
	}
	for _, name := range a.rules.Names() {
		if name.Resource == resource {
			o := a.newOffer(name)
			a.offers = append(a.offers, o)
			return o
		}
	}
	return nil
}
