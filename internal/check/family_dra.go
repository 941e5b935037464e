package check

import (
	"maps"
	"slices"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// The family DRA: claims, classes and slices.
func claimChecks() []Check {
	sliced := []Need{needSlices}
	return []Check{
		{finding.DriverUnregistered(), []Need{needPods, needSlices, needClaims}, driverUnregistered},
		{finding.NothingPublished(), []Need{needPods, needSlices}, nothingPublished},
		{finding.ClassMissing(), []Need{needClaims, needClasses}, classMissing},
		{finding.SelectsNothing(), []Need{needClaims, needClasses, needSlices}, selectsNothing},
		{finding.ClaimPending(), []Need{needPods, needClaims}, claimPending},
		{finding.Plugged(), []Need{needSlices, needPlugged}, offeredTwice},
		{finding.ClassesContend(), []Need{needClasses}, classesContend},
		{finding.ServedBoth(), []Need{needClasses, needNodes}, servedBoth},
		{finding.PoolIncomplete(), sliced, poolIncomplete},
		{finding.ReservedForNobody(), []Need{needPods, needClaims}, reservedForNobody},
		{finding.CannotEnd(), []Need{needPods, needSlices, needClaims}, cannotEnd},
		{finding.ClaimMissing(), []Need{needClaimants, needClaims}, claimMissing},
		{finding.WithoutAddress(), []Need{needSlices, needNodes}, withoutAddress},
		{finding.StillAllocatable(), []Need{needNodes}, stillAllocatable},
		{finding.ParametersRefused(), []Need{needParams}, parametersRefused},
		{finding.SelectorRefused(), []Need{needSelectors}, selectorRefused},
		{finding.AllottedUnpublished(), []Need{needAllotted, needSlices}, allottedUnpublished},
		{finding.PublishedAbsent(), []Need{needSlices, needFunctions}, publishedAbsent},
		{finding.PublishedTwice(), sliced, publishedTwice},
		{finding.RequestMissing(), []Need{needClaims}, requestMissing},
	}
}

// unless makes a finding a note where the input may not have all objects of a kind: what is not
// seen may be there.
func (w *World) unless(f Finding, kind string) Finding {
	if w.complete(kind) {
		return f
	}
	return f.as(finding.Note).because("the input may not have every %s of the cluster", kind)
}

func classMissing(w *World) []Finding {
	classes := map[string]bool{}
	for _, o := range w.kinds["DeviceClass"] {
		classes[o.Name] = true
	}
	var all []Finding
	w.claims(func(o *manifest.Object) {
		for _, r := range requests(o) {
			name := r.class.Text()
			if classes[name] {
				continue
			}
			f := found(w.ref(o), r.class, "request %s of %s names the device class %q, which does not exist", r.name, w.ref(o), name)
			if near := nearest(slices.Sorted(maps.Keys(classes)), name); near != "" {
				f = f.advise("did you mean %q?", near)
			}
			if says := w.missed(name); says.Exists() {
				all = append(all, f.with(says.Place(), "the scheduler says: %s", strings.Join(strings.Fields(says.Text()), " ")))
				continue
			}
			all = append(all, w.unless(f, "DeviceClass"))
		}
	})
	return all
}

// missed is a message of the scheduler that a class does not exist: it knows those of the cluster.
func (w *World) missed(class string) manifest.Value {
	for _, p := range w.workloads {
		if !p.pending() {
			continue
		}
		if says := w.unschedulable(p); strings.Contains(says.Text(), "device class "+class+" does not exist") {
			return says
		}
	}
	return manifest.Value{}
}

// made is the claim that was made for an entry from its template, "" where it need not be, and whether that is so
// already: then the template is of no more use to the pod.
func (w *Workload) made(entry string) (claim string, is bool) {
	for s := range w.Object.Get("status", "resourceClaimStatuses").Each() {
		if s.Get("name").Text() == entry {
			return s.Get("resourceClaimName").Text(), true
		}
	}
	return "", false
}

// claimMissing is about what a pod lists, and about what its containers use of that list.
func claimMissing(w *World) []Finding {
	var all []Finding
	for _, p := range w.workloads {
		listed := map[string]bool{}
		for c := range p.Spec.Get("resourceClaims").Each() {
			listed[c.Get("name").Text()] = true
			for _, of := range []struct{ key, kind string }{
				{"resourceClaimName", "ResourceClaim"}, {"resourceClaimTemplateName", "ResourceClaimTemplate"},
			} {
				name := c.Get(of.key)
				ended := p.Live && !p.holds()
				_, made := p.made(c.Get("name").Text())
				used := made && of.key == "resourceClaimTemplateName"
				if name.Text() == "" || ended || used || w.claimOf[Ref{of.kind, p.Namespace, name.Text()}] != nil {
					continue
				}
				f := found(p.ref(), name, "%s names the %s %s/%s, which does not exist", p.ref(), strings.ToLower(of.kind),
					p.Namespace, name.Text())
				all = append(all, w.unless(f, of.kind))
			}
		}
		for _, c := range p.Containers {
			for used := range c.Get("resources", "claims").Each() {
				if name := used.Get("name"); !listed[name.Text()] {
					all = append(all, found(p.ref(), name, "container %s of %s uses the claim %q, which the pod does not list", c.Name,
						p.ref(), name.Text()).advise("list it in resourceClaims of the pod"))
				}
			}
		}
	}
	return all
}
