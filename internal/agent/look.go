package agent

import (
	"context"
	"slices"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
)

// look reads the node and makes what is announced agree with it.
func (a *Agent) look(ctx context.Context, full bool) {
	var snapshot *host.Snapshot
	if full {
		snapshot = a.source.Look(a.snapshot)
	} else {
		snapshot = a.source.Glance(a.snapshot)
	}
	if snapshot.Torn() || snapshot.Partial() {
		a.retries++
	} else {
		a.retries = 0
	}
	a.readSpecs()

	a.mu.Lock()
	defer a.mu.Unlock()
	a.snapshot = snapshot
	declared := a.prog.Table.Declare(snapshot).After(a.ledger())
	a.findings = slices.Concat(declared.Findings, stale(snapshot))
	for _, r := range declared.Resources {
		o := a.offer(r.Name)
		before := o.byID
		if err := o.apply(ctx, r.Devices, a.holder(), a.prog.Roots.CDI, a.foreign); err != nil {
			a.log.Error("could not stop offering", "resource", r.Name, "reason", err.Error())
		}
		a.report.devices(o, before)
	}
}

// readSpecs reads the other owners' CDI specs. Where the directory cannot be listed,
// the last state stands; that it cannot is found again by whoever writes to it.
func (a *Agent) readSpecs() {
	var own []string
	for _, r := range a.prog.Table {
		own = append(own, cdi.FileName(r.Resource))
	}
	foreign, err := a.neighbours.Read(own)
	a.report.once("CDI specs of others", err)
	if err == nil {
		a.foreign = foreign
	}
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

// offer finds the offer of a resource, and makes it when a device of the resource is
// there for the first time.
func (a *Agent) offer(resource string) *offer {
	i := slices.IndexFunc(a.offers, func(o *offer) bool { return o.resource == resource })
	if i < 0 {
		a.offers = append(a.offers, a.newOffer(resource))
		i = len(a.offers) - 1
	}
	return a.offers[i]
}
