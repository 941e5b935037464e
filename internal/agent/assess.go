package agent

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/finding"
)

// lockRetry is how soon a lock or a spec is tried again. Nothing tells when it can be had.
const lockRetry = 500 * time.Millisecond

// assess says what is wrong, tells the log and the health service, and returns how long
// to wait before the next look.
func (a *Agent) assess(ctx context.Context, now time.Time) time.Duration {
	wait := a.times.Resync
	sooner := func(d time.Duration) { wait = min(wait, d) }
	since := make(map[string]time.Time)
	faults := a.lasting(a.passingFaults(), since, now, sooner)
	found := a.lasting(slices.Concat(a.findings, a.faulty, a.specFindings()), since, now, sooner)
	a.since = since
	a.readCheckpoint()
	found = append(found, a.tellHolders(now)...)
	contested := false
	if heldElsewhere(a.ledger()) {
		sooner(askAgain)
	}
	for _, o := range a.offers {
		contested = contested || o.contest.standing
	}
	a.report.Once("other plugins", a.rivals.Look(contested, now))
	for _, o := range a.offers {
		v := o.contest.judge(o, a.checkpoint, a.rivals, a.times, now)
		if v.again > 0 {
			sooner(v.again)
		}
		if v.renew {
			a.log.Info("registering once more, since another plugin has left", "resource", o.resource)
			o.endpoint.Renew()
		}
		found = slices.Concat(found, o.trouble, v.found)
		if len(o.trouble) > 0 {
			sooner(o.retry.Sub(now))
		}
	}
	ready, why := a.ready(found)
	// Only after the last look at the endpoints: they end because ctx has, so whatever of their end
	// was seen, ctx has ended by now, and that is no trouble.
	if ctx.Err() != nil {
		return wait
	}
	a.report.findings(found, faults)
	// What is passing may be so from the start: nobody is told that all is well before it is
	// known. A program that was ready stays so until it has lasted.
	ready = ready && (a.report.WasReady() || !slices.ContainsFunc(a.findings, func(f finding.Finding) bool { return f.Blocks }))
	a.health.Ready(ready)
	a.report.Ready(ready, why, a.prog.Version, a.summary())
	return wait
}

// lasting leaves out what the kernel passes through while it binds or unbinds, until it
// has lasted.
func (a *Agent) lasting(found []finding.Finding, since map[string]time.Time, now time.Time, sooner func(time.Duration)) []finding.Finding {
	kept := found[:0]
	for _, f := range found {
		if !f.Passing {
			kept = append(kept, f)
			continue
		}
		began, known := a.since[f.Key()]
		if !known {
			began = now
		}
		since[f.Key()] = began
		if left := began.Add(a.times.settle).Sub(now); left > 0 {
			sooner(left)
		} else {
			kept = append(kept, f)
		}
	}
	return kept
}

// passingFaults are the faults of devices that the kernel only passes through.
func (a *Agent) passingFaults() []finding.Finding {
	var all []finding.Finding
	for _, o := range a.offers {
		for i := range o.devices {
			for _, f := range o.devices[i].Faults {
				if f.Passing {
					all = append(all, f)
				}
			}
		}
	}
	return all
}

// specFindings are the other owners' specs that break CDI for everybody.
func (a *Agent) specFindings() []finding.Finding {
	var all []finding.Finding
	for _, f := range a.foreign {
		switch {
		case f.Err != nil:
			all = append(all, finding.New(finding.SpecRejected(), "", finding.Evidence{Path: f.Path, Value: f.Err.Error()}))
		case f.Unread != nil:
			all = append(all, finding.New(finding.SpecUnexamined(), "", finding.Evidence{Path: f.Path, Value: f.Unread.Error()}))
		case f.Unexamined > 0:
			all = append(all, finding.New(finding.SpecUnexamined(), "", finding.Evidence{Path: f.Path, Value: strconv.FormatInt(f.Unexamined, 10) + " bytes"}))
		case f.TooNew():
			all = append(all, finding.New(finding.SpecTooNew(), "", finding.Evidence{Path: f.Path, Value: "cdiVersion " + f.Version + ", above " + cdi.Ceiling}))
		}
	}
	return all
}

// ready says whether everything that is there is offered, and if not, why not.
func (a *Agent) ready(found []finding.Finding) (bool, string) {
	var why []string
	add := func(all []finding.Finding) {
		for _, f := range all {
			if f.Blocks && !slices.Contains(why, f.String()) {
				why = append(why, f.String())
			}
		}
	}
	add(found)
	for _, o := range a.offers {
		for _, d := range o.devices {
			add(d.Faults)
		}
		if o.announced && len(o.trouble) == 0 && !o.endpoint.Status().Registered {
			add([]finding.Finding{finding.New(finding.NotRegistered(), "", finding.Evidence{Path: o.resource})})
		}
	}
	return len(why) == 0, strings.Join(why, "; ")
}

// summary names what is offered: "nvidia.com/gpu 8/8" for eight devices, all healthy.
func (a *Agent) summary() []string {
	all := []string{}
	for _, o := range a.offers {
		all = append(all, o.summary())
	}
	return all
}
