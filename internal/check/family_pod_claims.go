package check

import (
	"strings"

	"kata-device-plugin/internal/manifest"
)

// claimsExcluded is nodesExcluded for pods with claims: the devices that one request takes are all on nodes
// on which the pod may not run.
func (w *World) claimsExcluded() []Finding {
	var all []Finding
	for _, p := range w.workloads {
		if !p.pending() {
			continue
		}
		for _, claim := range w.claimsOf(p) {
			if claim.Get("status", "allocation").Exists() {
				continue // then it is bound to the nodes of that, which DRA005 says
			}
			for _, r := range requests(claim) {
				if f, found := w.excludedFrom(p, claim, r); found {
					all = append(all, f)
				}
			}
		}
	}
	return all
}

// excludedFrom is about one request. One of several that would do proves nothing, nor does a device
// that is not of one node.
func (w *World) excludedFrom(p *Workload, claim *manifest.Object, r request) (Finding, bool) {
	const shown = 3
	class := w.class(r.class.Text())
	if class == nil || strings.Contains(r.name, "/") {
		return Finding{}, false
	}
	m, err := w.Matching(class.Get("spec", "selectors"), r.selectors)
	if err != nil || !m.Any() { // the latter is DRA004
		return Finding{}, false
	}
	f := found(p.ref(), p.Spec.Get("resourceClaims"), "%s may not run on any node that has a device for request %s of %s", p.ref(),
		r.name, w.ref(claim))
	seen := map[string]bool{}
	for d := range m.Taken() {
		n := w.nodeOf[d.Node]
		if n == nil || n.refuses(p.Spec) == "" {
			return Finding{}, false
		}
		if !seen[n.Name] && len(seen) < shown {
			f = f.because("node %s: %s", n.Name, n.refuses(p.Spec))
		}
		seen[n.Name] = true
	}
	if more := len(seen) - shown; more > 0 {
		f = f.because("and %s more", counted(more, "node"))
	}
	return w.unless(f, "ResourceSlice"), true
}
