package agent

import (
	"slices"
	"strings"
	"time"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/kubelet"
)

// contest is the question whether kubelet believes another plugin for a resource.
//
// It is seen in kubelet's checkpoint, which holds the healthy devices of each resource
// as the last list of any plugin had them. It is not fought: the resource is registered
// once more when another plugin has left, because kubelet then goes on to believe a list
// that nobody stands for.
type contest struct {
	since    time.Time // when kubelet's list was first another one
	standing bool
	began    time.Time // since when it stands
	foreign  bool      // kubelet believed devices that nobody announced here
	life     int       // our registration in which it began
	ours     []string  // both lists, when theirs was last another one
	theirs   []string
	renewed  time.Time // the departure that the last registration answered
}

// verdict is the outcome of one judgement.
type verdict struct {
	found []finding.Finding
	renew bool          // register once more
	again time.Duration // judge again after this time, 0 for no need
}

// judge compares what kubelet believes with what it was told.
func (c *contest) judge(o *offer, check *kubelet.Checkpoint, rivals *kubelet.Rivals, t times, now time.Time) verdict {
	status := o.endpoint.Status()
	ours := o.endpoint.Healthy()
	theirs, known := check.Healthy(o.resource)
	agree := known && slices.Equal(ours, theirs)
	switch {
	case !o.running() || agree && !c.hidden(status):
		*c = contest{renewed: c.renewed}
		return verdict{}
	case !status.Registered || !known: // nothing can be said now; what was said stands
		c.since = time.Time{}
		if !c.standing {
			return verdict{}
		}
		return c.verdict(o.resource, rivals, t)
	case agree:
		return c.verdict(o.resource, rivals, t)
	}
	if c.since.IsZero() {
		c.since = now
	}
	if c.ours == nil || !slices.Equal(theirs, c.theirs) { // a change of ours alone is no news of it
		c.ours, c.theirs = ours, theirs
	}
	grace := t.differ
	if slices.ContainsFunc(theirs, func(id string) bool { return !o.knows(id) }) {
		grace, c.foreign = t.foreign, true // nobody but another plugin can have said that
	}
	from := c.since
	if status.Sent.After(from) {
		from = status.Sent
	}
	if wait := from.Add(grace).Sub(now); wait > 0 && !c.standing {
		return verdict{again: wait}
	}
	if !c.standing {
		c.standing, c.began, c.life = true, c.since, status.Life
	}
	return c.verdict(o.resource, rivals, t)
}

// hidden says whether kubelet's agreement may be an illusion: when our list changes,
// kubelet takes it, but goes on to ask the plugin that registered last, which is the
// other one, until we register anew.
func (c *contest) hidden(s kubelet.Status) bool {
	return c.standing && c.foreign && c.life == s.Life
}

// verdict is that of a standing contest.
func (c *contest) verdict(resource string, rivals *kubelet.Rivals, t times) verdict {
	v := verdict{found: []finding.Finding{c.finding(resource)}, again: t.differ}
	if left := rivals.Left(); left.After(c.renewed) && left.After(c.began.Add(-t.differ)) {
		c.renewed, v.renew = left, true
	}
	return v
}

func (c *contest) finding(resource string) finding.Finding {
	return finding.New(finding.Contested(), "",
		finding.Evidence{Path: "ours", Value: list(c.ours)},
		finding.Evidence{Path: "kubelet's", Value: list(c.theirs)}).For(resource)
}

func list(ids []string) string { return "[" + strings.Join(ids, " ") + "]" }
