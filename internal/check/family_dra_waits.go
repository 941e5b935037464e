package check

import (
	"strings"

	"kata-device-plugin/internal/manifest"
)

// claimReasons are fragments of what the scheduler says of claims, and what they mean.
func claimReasons() []reason {
	return []reason{
		{"cannot allocate all claims", "no node has free devices for all requests of its claims"},
		{"resourceclaim in use", "as many pods as may share the claim have it"},
		{"in the process of being allocated", "the scheduler is about to allocate it for another pod"},
		{"resourceclaim not available on the node", "its devices are on another node than the pod may go to"},
		{"is not allowed to use ResourceClaim", "the claim was made for another pod"},
		{"old ResourceClaim with same name", "the claim of a pod that had the same name is still there"},
		{"unallocated immediate resourceclaim", "the control plane that allocates it does not run"},
		{"waiting for dynamic resource controller to create", "the claim has not been made from its template yet"},
	}
}

// claimPending is about claims that a pod waits for: others are allocated when a pod needs them.
func claimPending(w *World) []Finding {
	var all []Finding
	for _, p := range w.workloads {
		switch {
		case p.pending():
			all = append(all, w.unmade(p)...)
			for _, claim := range w.claimsOf(p) {
				all = append(all, w.waits(p, claim)...)
			}
		case !p.started() && p.node() != "":
			if message := w.unprepared(p); message.Exists() && !Unregistered(message.Text()) {
				f := found(p.ref(), message, "the devices of a claim of %s could not be made ready on node %s: %s", p.ref(), p.node(),
					oneLine(message))
				all = append(all, f.advise("look at the message, and at the driver's log on the node"))
			}
		}
	}
	return all
}

// waits is about a claim that a pod without a node has: the scheduler allocates it, and reserves it for the
// pod.
func (w *World) waits(p *Workload, claim *manifest.Object) []Finding {
	f := found(w.ref(claim), claim.Get("metadata", "name"), "%s is not allocated, and %s waits for it", w.ref(claim), p.ref())
	if allocated := claim.Get("status", "allocation"); allocated.Exists() {
		if p.reserved(claim) {
			return nil
		}
		f = found(w.ref(claim), allocated, "%s is allocated, but not for %s, which waits for it", w.ref(claim), p.ref())
	}
	message := w.unschedulable(p)
	for _, r := range claimReasons() {
		if strings.Contains(message.Text(), r.fragment) {
			f.Message += ": " + r.meaning
			break
		}
	}
	if message.Text() != "" {
		f = f.with(message.Place(), "the scheduler says: %s", oneLine(message))
	}
	f = w.allTainted(f, claim)
	if made := claim.Get("metadata", "creationTimestamp"); made.Text() != "" {
		f = f.because("it was made at %s", made.Text())
	}
	return []Finding{f}
}

// reserved says whether a claim is reserved for a pod.
func (w *Workload) reserved(claim *manifest.Object) bool {
	for r := range claim.Get("status", "reservedFor").Each() {
		uid := w.Meta.Get("uid").Text()
		if r.Get("resource").Text() == "pods" && r.Get("name").Text() == w.Object.Name && (uid == "" || r.Get("uid").Text() == uid) {
			return true
		}
	}
	return false
}

// unmade is about claims that could not be made from their templates.
func (w *World) unmade(p *Workload) []Finding {
	message := w.saying(p, "FailedResourceClaimCreation")
	if !message.Exists() || len(w.claimsOf(p)) > 0 {
		return nil
	}
	return []Finding{found(p.ref(), message, "a claim of %s could not be made from its template: %s", p.ref(), oneLine(message))}
}

// unprepared is what kubelet has said of the devices of a pod's claims that a driver did not make ready.
func (w *World) unprepared(p *Workload) manifest.Value {
	return w.saying(p, "FailedPrepareDynamicResources")
}

// Unregistered says whether a message of kubelet's about a claim is that the driver is not there.
func Unregistered(message string) bool {
	return strings.Contains(message, "not registered") || strings.Contains(message, "no DRA driver") ||
		strings.Contains(message, "not found in the list of registered")
}

// saying is the message of the last event of a reason about a pod, missing where there is none.
func (w *World) saying(p *Workload, reason string) manifest.Value {
	message := manifest.Value{}
	for _, e := range w.events[p.ref()] {
		if e.Get("reason").Text() != reason {
			continue
		}
		message = e.Get("message")
		if !message.Exists() {
			message = e.Get("note") // of events.k8s.io
		}
	}
	return message
}

// oneLine is a message without its line breaks.
func oneLine(v manifest.Value) string { return strings.Join(strings.Fields(v.Text()), " ") }
