package check

import (
	"slices"
	"time"

	"kata-device-plugin/internal/manifest"
)

// indexEvents sorts events by what they are about, the newest last. One that names the UID of another object is about that: a
// pod of a StatefulSet has the name of the one before it, whose events are there for an hour.
func (w *World) indexEvents() {
	for _, e := range w.kinds["Event"] {
		on := regarding(e)
		ref := Ref{on.Get("kind").Text(), on.Get("namespace").Text(), on.Get("name").Text()}
		w.events[ref] = append(w.events[ref], e)
	}
	for _, about := range w.events {
		slices.SortStableFunc(about, func(a, b *manifest.Object) int { return EventTime(a).Compare(EventTime(b)) })
	}
	for _, o := range w.objects {
		ref := w.ref(o)
		about := w.events[ref]
		if len(about) == 0 {
			continue
		}
		own := []*manifest.Object{}
		for _, e := range about {
			if isAbout(regarding(e).Get("uid").Text(), o) {
				own = append(own, e)
			}
		}
		w.events[ref] = own
	}
}

// eventTimes are where an event has the times at which it was seen.
func eventTimes(e *manifest.Object) []manifest.Value {
	return []manifest.Value{
		e.Get("metadata", "creationTimestamp"), e.Get("eventTime"), e.Get("lastTimestamp"), e.Get("deprecatedLastTimestamp"),
		e.Get("series", "lastObservedTime"),
	}
}

// EventTime is when an event was last seen, zero where it does not say. Of one that is counted the API keeps the
// first time as well, and which fields it has depends on who has written it.
func EventTime(e *manifest.Object) time.Time {
	var last time.Time
	for _, at := range eventTimes(e) {
		if t, err := time.Parse(time.RFC3339Nano, at.Text()); err == nil && t.After(last) {
			last = t
		}
	}
	return last
}

// regarding is what an event is about.
func regarding(e *manifest.Object) manifest.Value {
	if on := e.Get("involvedObject"); on.Exists() {
		return on
	}
	return e.Get("regarding") // of events.k8s.io
}

// isAbout says whether a UID in an event is an object's. Kubelet knows static pods by a UID of its own, which
// their mirror pods have as an annotation, and gives its node's name as the node's.
func isAbout(uid string, o *manifest.Object) bool {
	meta := o.Get("metadata")
	known := meta.Get("uid").Text()
	return uid == "" || known == "" || uid == known || o.Kind == "Node" && uid == o.Name ||
		uid == meta.Get("annotations", "kubernetes.io/config.hash").Text()
}
