package check

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/manifest"
)

// requestMissing is about what names a request of a claim: the claim itself, which the API refuses then, and
// containers, of which nobody says that they get nothing.
func requestMissing(w *World) []Finding {
	var all []Finding
	w.claims(func(o *manifest.Object) {
		devices := specOf(o).Get("devices")
		names := requestNames(o)
		for _, list := range []string{"constraints", "config"} {
			for item := range devices.Get(list).Each() {
				for name := range item.Get("requests").Each() {
					if !slices.Contains(names, name.Text()) {
						f := found(w.ref(o), name, "%s names the request %q in its %s, and does not have it", w.ref(o), name.Text(), list)
						all = append(all, f.likely(names, name.Text()))
					}
				}
			}
		}
	})
	for _, p := range w.workloads {
		if !p.Live || p.holds() {
			all = append(all, w.strayRequests(p)...)
		}
	}
	return all
}

// strayRequests are those that containers of a pod name.
func (w *World) strayRequests(p *Workload) []Finding {
	claims := map[string]*manifest.Object{}
	for c := range p.Spec.Get("resourceClaims").Each() {
		claims[c.Get("name").Text()] = w.listed(p, c)
	}
	var all []Finding
	for _, c := range p.Containers {
		for used := range c.Get("resources", "claims").Each() {
			claim, name := claims[used.Get("name").Text()], used.Get("request")
			if claim == nil || name.Text() == "" {
				continue // which is DRA012, or all of the claim
			}
			// A container takes what a request has got, whichever of its alternatives that is.
			names := slices.DeleteFunc(requestNames(claim), func(s string) bool { return strings.Contains(s, "/") })
			if !slices.Contains(names, name.Text()) {
				f := found(p.ref(), name, "container %s of %s uses the request %q of %s, which does not have it", c.Name, p.ref(), name.Text(),
					w.ref(claim)).with(specOf(claim).Get("devices", "requests").Place(), "these are its requests")
				all = append(all, f.likely(names, name.Text()))
			}
		}
	}
	return all
}

// listed is the claim of an entry of a pod's resourceClaims: the one that it names or that was made for it, and before
// that its template, which may be another one now. It is nil where the input has none.
func (w *World) listed(p *Workload, entry manifest.Value) *manifest.Object {
	name, is := p.made(entry.Get("name").Text())
	if named := entry.Get("resourceClaimName"); named.Exists() {
		name, is = named.Text(), true
	}
	if is {
		return w.claimOf[Ref{"ResourceClaim", p.Namespace, name}]
	}
	return w.claimOf[Ref{"ResourceClaimTemplate", p.Namespace, entry.Get("resourceClaimTemplateName").Text()}]
}

// requestNames are what constraints and configurations of a claim may name: requests, and of those with
// alternatives each of them.
func requestNames(o *manifest.Object) []string {
	var all []string
	for _, r := range Requests(specOf(o)) {
		if r.Of != "" && !slices.Contains(all, r.Of) {
			all = append(all, r.Of)
		}
		all = append(all, r.Name)
	}
	return all
}

// specOf is the spec of a claim, or of those that a template makes.
func specOf(o *manifest.Object) manifest.Value {
	if o.Kind == "ResourceClaimTemplate" {
		return o.Get("spec", "spec")
	}
	return o.Get("spec")
}

// likely advises the name that somebody has misspelt, where one is near.
func (f Finding) likely(names []string, name string) Finding {
	if near := nearest(names, name); near != "" {
		return f.advise("did you mean %q?", near)
	}
	return f
}
