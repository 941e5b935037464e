package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/manifest"
)

// seen is evidence that stands at a value.
func seen(v manifest.Value, format string, args ...any) Evidence {
	text := fmt.Sprintf(format, args...)
	source := v.Place().String()
	if v.Path() != "" {
		source += " " + v.Path()
	}
	return Evidence{Text: text, Source: source}
}

// since dates evidence by a time of the input. What is no time dates nothing.
func (e Evidence) since(v manifest.Value) Evidence {
	if t, err := time.Parse(time.RFC3339Nano, v.Text()); err == nil {
		e.At = t
	}
	return e
}

// whole says whether all objects of a kind that a namespace has are in the input.
func (e *explainer) whole(kind, namespace string) bool {
	if e.View.Complete(kind) {
		return true
	}
	read := "live:" + strings.ToLower(kind) + "s"
	return namespace != "" && e.Namespace == namespace && slices.ContainsFunc(e.View.Inputs(), func(name string) bool {
		return name == read || strings.HasPrefix(name, read+".")
	})
}

// condition is a condition of a pod's status.
func condition(p *check.Workload, kind string) manifest.Value {
	for c := range p.Object.Get("status", "conditions").Each() {
		if c.Get("type").Text() == kind {
			return c
		}
	}
	return manifest.Value{}
}

// heard is an event about an object.
type heard struct {
	reason, message string
	evidence        Evidence
}

// events are those about an object with one of some reasons, the newest last.
func (e *explainer) events(r check.Ref, reasons ...string) []heard {
	var all []heard
	for _, o := range e.View.Events(r) {
		h := heard{reason: o.Get("reason").Text()}
		if !slices.Contains(reasons, h.reason) {
			continue
		}
		text := o.Get("message")
		if !text.Exists() {
			text = o.Get("note") // of events.k8s.io
		}
		h.message = oneLine(text.Text())
		h.evidence = seen(text, "%s: %s", h.reason, h.message)
		h.evidence.At = check.EventTime(o)
		all = append(all, h)
	}
	return all
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// nodeNow is what a node's kubelet says of a name, as old as its last word.
func nodeNow(n *check.Node, resource string) Evidence {
	e := seen(n.Key(resource), "node %s: capacity %d, allocatable %d", n.Name, n.Capacity[resource], n.Allocatable[resource])
	for c := range n.Object.Get("status", "conditions").Each() {
		if c.Get("type").Text() == "Ready" {
			e = e.since(c.Get("lastTransitionTime")).since(c.Get("lastHeartbeatTime"))
		}
	}
	return e
}

// some shortens evidence that repeats itself.
func some(all []Evidence) []Evidence {
	const most = 4
	if len(all) <= most {
		return all
	}
	return append(slices.Clone(all[:most]), Evidence{Text: fmt.Sprintf("and %d more", len(all)-most)})
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
