package check

import (
	"strconv"
	"strings"
	"time"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// The family EVD: what the input does not show.
func evidenceChecks() []Check {
	return []Check{
		{finding.InputNotUsed(), nil, inputNotUsed},
		{finding.FarApart(), []Need{needPods, needNodes}, farApart},
		{finding.EventsGone(), []Need{needPods, needEvents}, eventsGone},
		{finding.ReadMeanwhile(), []Need{needCapture}, readMeanwhile},
		{finding.VersionLacks(), []Need{needPods, needNodes}, versionLacks},
		{finding.NamesReplaced(), []Need{needCapture}, namesReplaced},
		{finding.OfNoNode(), []Need{needCapture, needNodes}, ofNoNode},
		{finding.CapturedTwice(), []Need{needCapture}, capturedTwice},
		{finding.AcceptsNothing(), nil, acceptsNothing},
	}
}

// inputNotUsed is about sources of templates: with their braces they say nothing certain.
func inputNotUsed(w *World) []Finding {
	var all []Finding
	for _, in := range w.set.Inputs {
		if in.Template != nil {
			all = append(all, placed(Ref{}, *in.Template, "", "%s is the source of a template, and is left out", in.Name))
		}
	}
	for _, c := range w.configs {
		if c.Err != nil && strings.Contains(c.At.Text(), "{{") {
			all = append(all, placed(c.Owner, c.At.KeyPlace(), "", "%s of %s is the source of a template, and is left out",
				c.At.Key(), c.Owner))
		}
	}
	return all
}

// namesReplaced is about captures beside objects: what is compared by name would silently not match.
func namesReplaced(w *World) []Finding {
	if len(w.nodes) == 0 && !w.has(needPods) {
		return nil
	}
	return w.onNodes((*captured).hasEntries, func(n *captured) []Finding {
		if n.hasNames() {
			return nil
		}
		return []Finding{n.found("the captured node %s and its pods have other words in the place of their names, and are those of no "+
			"object of the input", n.name)}
	})
}

// farApart: a node's heartbeat is minutes old when it is dumped, so that what a pod or an event
// says of a much later time was dumped later.
func farApart(w *World) []Finding {
	const much = time.Hour
	var beat, later time.Time
	var from, at manifest.Value
	newest := func(t *time.Time, where *manifest.Value, v manifest.Value) {
		if parsed, err := time.Parse(time.RFC3339, v.Text()); err == nil && parsed.After(*t) {
			*t, *where = parsed, v
		}
	}
	for _, n := range w.nodes {
		for c := range n.Object.Get("status", "conditions").Each() {
			newest(&beat, &from, c.Get("lastHeartbeatTime"))
		}
	}
	for _, p := range w.workloads {
		if p.Live {
			newest(&later, &at, p.Meta.Get("creationTimestamp"))
			newest(&later, &at, p.Object.Get("status", "startTime"))
		}
	}
	for _, e := range w.kinds["Event"] {
		for _, seen := range eventTimes(e) {
			newest(&later, &at, seen)
		}
	}
	if beat.IsZero() || later.Sub(beat) < much {
		return nil
	}
	f := placed(Ref{}, at.Place(), "", "the input is of different times: this is of %s, and the nodes are of "+
		"%s", at.Text(), from.Text())
	return []Finding{f.with(from.Place(), "the newest heartbeat of a node")}
}

// eventsGone: events live for an hour.
func eventsGone(w *World) []Finding {
	var all []Finding
	for _, p := range w.workloads {
		if p.pending() && len(p.Wants()) > 0 && len(w.events[Ref{"Pod", p.Namespace, p.Object.Name}]) == 0 {
			all = append(all, found(p.ref(), p.Object.Value, "%s waits, and the input has no event of it: they are kept "+
				"for an hour", p.ref()))
		}
	}
	return all
}

// versionLacks: before 1.36 kubelet does not say in pods which devices are healthy.
func versionLacks(w *World) []Finding {
	var all []Finding
	for _, n := range w.nodes {
		version := n.Object.Get("status", "nodeInfo", "kubeletVersion")
		minor, ok := minorOf(version.Text())
		if !ok || minor >= 36 {
			continue
		}
		holds := false
		for _, p := range w.podsOn[n.Name] {
			holds = holds || len(p.Wants()) > 0
		}
		if holds {
			all = append(all, found(n.ref(), version,
				"kubelet %s of node %s says nothing of the health of devices in pods, unless its gate "+
					"ResourceHealthStatus is on", version.Text(), n.Name))
		}
	}
	return all
}

func minorOf(version string) (int, bool) {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) < 2 || parts[0] != "1" {
		return 0, false
	}
	n, err := strconv.Atoi(parts[1])
	return n, err == nil
}
