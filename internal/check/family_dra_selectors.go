package check

import (
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// expressions are those of selectors.
func expressions(selectors manifest.Value) []manifest.Value {
	var all []manifest.Value
	for s := range selectors.Each() {
		if e := s.Get("cel", "expression"); e.Text() != "" {
			all = append(all, e)
		}
	}
	return all
}

// selectsNothing evaluates selectors on what is published. Where one is not understood, nothing is
// known of what it takes. Of alternatives one that takes a device is enough: that is what they are for.
func selectsNothing(w *World) []Finding {
	var all []Finding
	w.claims(func(o *manifest.Object) {
		will := map[string]bool{} // requests of which an alternative takes a device, or may
		var none []Finding
		var of []string // the requests that they are about
		for _, r := range requests(o) {
			whole, _, _ := strings.Cut(r.name, "/")
			class := w.class(r.class.Text())
			if class == nil {
				will[whole] = true // which is DRA003
				continue
			}
			general := class.Get("spec", "selectors")
			m, err := w.Matching(general, r.selectors)
			if err != nil || m.Any() {
				will[whole] = true
				continue
			}
			f := found(w.ref(o), r.class, "request %s of %s matches none of the devices that are published", r.name, w.ref(o))
			for _, s := range append(expressions(general), expressions(r.selectors)...) {
				f = f.with(s.Place(), "it is to match %s", strings.Join(strings.Fields(s.Text()), " "))
			}
			if failed := m.Failed(); failed != nil {
				f = f.because("%s", strings.Join(strings.Fields(failed.Error()), " "))
			}
			if !w.complete("ResourceSlice") {
				f = f.because("the input may not have every ResourceSlice of the cluster")
			}
			none, of = append(none, f), append(of, whole)
		}
		for i, f := range none {
			if !will[of[i]] {
				all = append(all, f)
			}
		}
	})
	return all
}

// selection is a list of selectors of a device class or of a request.
type selection struct {
	of   *manifest.Object
	list manifest.Value
}

// selections are those of the input.
func (w *World) selections() []selection {
	var all []selection
	for _, o := range w.kinds["DeviceClass"] {
		all = append(all, selection{o, o.Get("spec", "selectors")})
	}
	w.claims(func(o *manifest.Object) {
		for _, r := range requests(o) {
			all = append(all, selection{o, r.selectors})
		}
	})
	return all
}

// selectorRefused asks the library that the scheduler has, as it is in this program.
func selectorRefused(w *World) []Finding {
	var all []Finding
	for _, s := range w.selections() {
		for _, refused := range w.evaluator().Refused(s.list) {
			f := found(w.ref(s.of), refused.At, "a selector of %s is not understood: %s", w.ref(s.of), refused.Err)
			if s.of.FromCluster {
				f = f.as(finding.Note).because("the API server has accepted it: it may be of a later version of Kubernetes than this program knows").
					advise("look with a newer kubectl-device")
			}
			all = append(all, f)
		}
	}
	return all
}
