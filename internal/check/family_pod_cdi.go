package check

import (
	"strings"

	"kata-device-plugin/internal/manifest"
)

// WithoutCDI says whether a message is a container runtime's about a CDI device that it does not find:
// containerd's and CRI-O's, which have it of one library, or that of Kata's shim.
func WithoutCDI(message string) bool {
	return strings.Contains(message, "CDI device injection failed") || strings.Contains(message, "unresolvable CDI device")
}

// withoutCDI is about pods whose containers have not been made: of others an event may be left.
func withoutCDI(w *World) []Finding {
	var all []Finding
	for _, p := range w.workloads {
		if p.started() {
			continue
		}
		if message := w.withoutCDI(p); message.Exists() {
			all = append(all, found(p.ref(), message, "the container runtime does not find a CDI device of %s: %s", p.ref(),
				oneLine(message)))
		}
	}
	return all
}

// withoutCDI is what the runtime has said of a pod, missing where it has not.
func (w *World) withoutCDI(p *Workload) manifest.Value {
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		for c := range p.Object.Get("status", list).Each() {
			if m := c.Get("state", "waiting", "message"); WithoutCDI(m.Text()) {
				return m
			}
		}
	}
	for _, e := range w.events[p.ref()] {
		for _, key := range []string{"message", "note"} { // the second is that of events.k8s.io
			if m := e.Get(key); WithoutCDI(m.Text()) {
				return m
			}
		}
	}
	return manifest.Value{}
}
