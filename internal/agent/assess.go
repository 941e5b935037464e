package agent

import (
	"slices"
	"strings"
	"time"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
)

// How long to wait before looking again for what sends no event.
const (
	firstRetry = 10 * time.Millisecond
	lockRetry  = 500 * time.Millisecond
)

// stale is the finding that the mounted /dev/vfio is not the host's: a function is
// bound, sysfs states its device number, and the node does not appear. For a moment
// that is normal at every bind; assess waits before it believes it.
func stale(s *host.Snapshot) []finding.Finding {
	var names []string
	for i := range s.Functions {
		f := &s.Functions[i]
		if f.Err == nil && f.Driver != "" && f.Cdev != nil && f.Cdev.State == host.CdevPending {
			names = append(names, f.Cdev.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []finding.Finding{finding.New(finding.StaleMount(), "",
		finding.Evidence{Path: host.DevicesDir, Value: "without " + strings.Join(names, ", ")})}
}

// assess says what is wrong, tells the log and the health service, and returns how long
// to wait before the next look.
func (a *Agent) assess(now time.Time) time.Duration {
	wait := a.times.resync
	sooner := func(d time.Duration) { wait = min(wait, d) }
	if a.retries > 0 {
		sooner(firstRetry << min(a.retries-1, 20))
	}
	since := make(map[string]time.Time)
	faults := a.lasting(a.passingFaults(), since, now, sooner)
	found := a.lasting(slices.Concat(a.findings, a.specFindings()), since, now, sooner)
	a.since = since
	a.report.once("kubelet's checkpoint", a.checkpoint.Read())
	contested := false
	for _, o := range a.offers {
		contested = contested || o.contest.standing
	}
	a.report.once("other plugins", a.rivals.Look(contested, now))
	for _, o := range a.offers {
		v := o.contest.judge(o, a.checkpoint, a.rivals, a.times, now)
		if v.again > 0 {
			sooner(v.again)
		}
		if v.repeat {
			a.log.Info("announcing once more, since another plugin has left", "resource", o.resource)
			o.endpoint.Repeat()
		}
		found = slices.Concat(found, o.trouble, v.found)
		if len(o.trouble) > 0 {
			sooner(lockRetry)
		}
	}
	a.report.findings(found, faults)
	ready, why := a.ready(found)
	a.health.Ready(ready)
	a.report.ready(ready, why, a.prog.Version, a.summary())
	return wait
}

// lasting leaves out what the kernel passes through while it binds or unbinds, until it
// has lasted.
func (a *Agent) lasting(found []finding.Finding, since map[string]time.Time, now time.Time, sooner func(time.Duration)) []finding.Finding {
	kept := found[:0]
	for _, f := range found {
		if !passing(f.ID) {
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

func passing(id string) bool {
	return id == finding.NotYet().ID || id == finding.StaleMount().ID || id == finding.NoCdevNumber().ID
}

// passingFaults are the faults of devices that the kernel only passes through.
func (a *Agent) passingFaults() []finding.Finding {
	var all []finding.Finding
	for _, o := range a.offers {
		for i := range o.devices {
			for _, f := range o.devices[i].Faults {
				if passing(f.ID) {
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
		case f.TooNew():
			all = append(all, finding.New(finding.SpecTooNew(), "", finding.Evidence{Path: f.Path, Value: "cdiVersion " + f.Version + ", above " + cdi.Ceiling}))
		}
	}
	return all
}

// ready says whether everything that is there is offered, and if not, why not.
func (a *Agent) ready(found []finding.Finding) (bool, string) {
	blocking := []string{
		finding.SpecUnwritten().ID, finding.StaleMount().ID, finding.Contested().ID, finding.HeldElsewhere().ID,
	}
	var why []string
	for _, f := range found {
		if slices.Contains(blocking, f.ID) && !slices.Contains(why, f.String()) {
			why = append(why, f.String())
		}
	}
	for _, o := range a.offers {
		for _, d := range o.devices {
			for _, f := range d.Faults {
				if f.ID == finding.SpecConflict().ID {
					why = append(why, f.String())
				}
			}
		}
		if o.announced && len(o.trouble) == 0 && !o.endpoint.Status().Registered {
			why = append(why, finding.New(finding.NotRegistered(), "", finding.Evidence{Path: o.resource}).String())
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
