package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nodelock"
)

// depth says how much of the hardware is looked at anew.
type depth uint8

const (
	none   depth = iota // no look at all
	reuse               // nothing: the last snapshot is held against the rest of the world
	glance              // what came, went or changed hands
	full                // everything
)

// look reads the node and makes what is announced agree with it.
func (a *Agent) look(ctx context.Context, how depth, now time.Time) {
	a.readSpecs()
	var lost []*offer
	for adopted := false; !adopted; how = max(how, glance) {
		a.answers.forget()
		lost, adopted = a.adopt(a.observe(how, now), now)
	}
	// Outside the mutex: stopping waits for calls that may want it.
	for _, o := range a.offers {
		if slices.Contains(lost, o) {
			err := o.stop()
			a.report.once("end of the offer of "+o.resource, err)
		} else if o.announced {
			o.start(ctx)
		}
	}
	if !a.snapshot.Torn() && !a.snapshot.Partial() {
		a.sweep() // what could not be read is not gone
	}
}

// observe reads the hardware, as deep as it is asked to.
func (a *Agent) observe(how depth, now time.Time) *host.Snapshot {
	snapshot := a.snapshot
	switch {
	case how == full || snapshot == nil:
		snapshot = a.source.Look(snapshot)
	case how == glance:
		snapshot = a.source.Glance(snapshot)
	case how == reuse:
		return snapshot // it says nothing new of the hardware
	}
	if snapshot.Torn() || snapshot.Partial() {
		a.again = now.Add(min(firstRetry<<min(a.retries, 20), a.times.resync))
		a.retries++
	} else {
		a.retries = 0
	}
	return snapshot
}

// adopt makes a snapshot the one that is announced, and returns the offers that another
// agent has. It reports false when an answer to Allocate has overtaken the snapshot: then
// nothing was done, and the node has to be looked at again.
func (a *Agent) adopt(snapshot *host.Snapshot, now time.Time) (lost []*offer, adopted bool) {
	declared := a.prog.Table.Declare(snapshot).After(a.ledger())
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answers.deniedBy(declared.Resources) {
		return nil, false
	}
	a.findings = slices.Concat(declared.Findings, declare.Stale(snapshot))
	a.snapshot = snapshot
	return a.apply(declared, now), true
}

// apply brings all offers up to date, and returns those that another agent has.
func (a *Agent) apply(declared declare.Declaration, now time.Time) []*offer {
	var lost []*offer
	present := make(map[string]bool)
	for _, r := range declared.Resources {
		present[r.Name] = true
		o := a.offer(r.Name)
		before := o.byID
		if o.apply(r.Devices, a.foreign, now) {
			a.report.devices(o, before)
		} else {
			lost = append(lost, o)
		}
	}
	for _, o := range a.offers {
		if !present[o.resource] { // it waited for another agent, and its devices have left
			o.trouble = nil
			lost = append(lost, o)
		}
	}
	return lost
}

// sweep removes the CDI spec and the sockets of an earlier life for which there is no
// device any more: a spec must not name what is absent. It is done once, and again when
// somebody puts a spec there. Another agent that holds the resource's lock does that
// itself.
func (a *Agent) sweep() {
	for _, rule := range a.prog.Table {
		file := cdi.NewFile(a.prog.Roots.CDI, rule.Resource)
		o := a.find(rule.Resource)
		if o != nil && (o.announced || len(o.trouble) > 0) || a.swept[rule.Resource] && !file.Exists() {
			continue
		}
		found := file.Exists()
		lock, err := nodelock.Take(a.prog.Roots.CDI, rule.Resource, a.holder())
		if errors.Is(err, nodelock.ErrHeld) {
			continue
		}
		if err == nil {
			_, err = file.Sync(nil)
			err = errors.Join(err, leftovers(file, a.prog.Roots.DevicePlugins, rule.Resource), lock.Release())
		}
		a.report.once("end of an earlier life of "+rule.Resource, err)
		a.swept[rule.Resource] = err == nil
		if err == nil && found {
			a.log.Info("removed the CDI spec of an earlier life, since no device is there", "resource", rule.Resource)
		}
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
	o := a.find(resource)
	if o == nil {
		o = a.newOffer(resource)
		a.offers = append(a.offers, o)
	}
	return o
}
