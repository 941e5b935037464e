package preflight

import (
	"fmt"
	"slices"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/nodeconfig"
)

// kataClasses are the RuntimeClasses that start Kata VMs: by their handlers, which people and
// kata-deploy call so, or because a captured node says so of the handler.
func (s *survey) kataClasses() []*manifest.Object {
	var all []*manifest.Object
	for _, o := range s.View.Objects("RuntimeClass") {
		handler := o.Get("handler").Text()
		known := slices.ContainsFunc(s.captured, func(n *captured) bool {
			if n.runtime == nil {
				return false
			}
			h, ok := n.runtime.Handler(handler)
			return ok && h.Kata()
		})
		if known || strings.Contains(handler, "kata") {
			all = append(all, o)
		}
	}
	return all
}

// chooses says whether the pods of a class may be on a node.
func chooses(class *manifest.Object, n *check.Node) bool {
	for want := range class.Get("scheduling", "nodeSelector").Entries() {
		if have := n.Labels.Get(want.Key()); !have.Exists() || have.Text() != want.Text() {
			return false
		}
	}
	return true
}

// runtimeClasses: a class that chooses no node is of no use.
func runtimeClasses(s *survey, _ Way, v *verdict) {
	classes := s.kataClasses()
	if len(classes) == 0 {
		if s.View.Complete("RuntimeClass") {
			v.no(found(finding.NoKataClass(), check.Ref{}, manifest.Value{},
				"the cluster has no RuntimeClass with a handler of Kata"))
		} else {
			v.open("RuntimeClasses")
		}
		return
	}
	var without []check.Finding
	for _, c := range classes {
		var on []string
		for _, n := range s.linux() {
			if chooses(c, n) {
				on = append(on, n.Name)
			}
		}
		switch {
		case len(s.linux()) == 0:
			v.open("nodes with status")
		case len(on) == 0:
			without = append(without, found(finding.NoKataClass(), s.View.RefOf(c), c.Get("scheduling", "nodeSelector"),
				"no node has the labels that the nodeSelector of %s wants", s.View.RefOf(c)))
		default:
			v.yes(fmt.Sprintf("%s has the handler %s, for %s", s.View.RefOf(c), c.Get("handler").Text(), check.Few(on)))
		}
	}
	if !v.fine { // one that does is enough
		v.findings = without
	}
}

// handlers compares classes with the settings of the runtimes.
func handlers(s *survey, _ Way, v *verdict) {
	classes := s.kataClasses()
	if len(classes) == 0 && len(s.captured) > 0 {
		v.open("RuntimeClasses")
		return
	}
	s.eachCapture(v, runtimeSettings, func(n *captured) {
		if n.runtime == nil {
			n.unread(v, runtimeSettings, n.runtimeErr)
			return
		}
		for _, c := range classes {
			if of := s.View.Node(n.name); of == nil || chooses(c, of) {
				s.handler(n, c, v)
			}
		}
	})
	if !v.fine && len(v.findings)+len(v.tell) == 0 {
		v.open("captured nodes on which a RuntimeClass of Kata may be")
	}
}

// handler looks for the handler of a class on a node. A runtime may have handlers in files that nobody
// captured, and a node without its object may not be one of the class.
func (s *survey) handler(n *captured, class *manifest.Object, v *verdict) {
	handler, ref := class.Get("handler"), s.View.RefOf(class)
	_, ok := n.runtime.Handler(handler.Text())
	switch {
	case ok:
		v.yes(fmt.Sprintf("%s of node %s has %s", n.runtime.Name, n.name, handler.Text()))
	case len(n.runtime.Elsewhere) > 0:
		v.open(n.imports())
	case s.View.Node(n.name) == nil && class.Get("scheduling", "nodeSelector").Len() > 0:
		v.open(fmt.Sprintf("the object of node %s: whether it is one of %s", n.name, ref))
	default:
		v.no(found(finding.HandlerUnknown(), ref, handler, "%s of node %s has no handler %s, which %s names",
			n.runtime.Files[0], n.name, handler.Text(), ref))
	}
}

// claimsTaken: of releases after the last one that was looked at nothing is known, but to somebody who accepts
// the finding.
func claimsTaken(s *survey, _ Way, v *verdict) {
	const what = "the version of Kata"
	last := nodeconfig.Release{Major: 4, Minor: 1}
	s.eachCapture(v, what, func(n *captured) {
		version, err := nodeconfig.KataVersion(n.c.FS())
		r, ok := nodeconfig.ParseRelease(version)
		has := n.found(finding.ClaimsNotTaken(), "node %s has Kata %s", n.name, version)
		switch {
		case err != nil:
			n.unread(v, what, err)
		case !ok:
			v.open(fmt.Sprintf("which release %q of Kata on node %s is", version, n.name))
		case r.Compare(last) <= 0 || s.View.Accepted(has) != "":
			v.no(has)
		default:
			v.open(fmt.Sprintf("whether Kata %s of node %s takes devices of claims: this command knows the releases up to "+
				"%d.%d; look at kata-containers/kata-containers#13322, and accept %s with --ignore if it does",
				version, n.name, last.Major, last.Minor, has.ID))
		}
	})
}
