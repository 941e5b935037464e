// Package check finds disagreement between Kubernetes objects about devices: a name that is
// advertised, attached and requested in different spellings, a configuration that a plugin
// ignores, a pod that cannot be scheduled. It reads what was loaded and asks nobody.
package check

import (
	"cmp"
	"slices"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// Check is a row of the catalogue of checks.
type Check struct {
	finding.Kind
	// Needs are inputs without which the check cannot say anything.
	Needs []Need
	// Run finds what is wrong. It is called only when there is everything that it needs.
	Run func(*World) []Finding
}

// Checks is the catalogue, by ID. A family is a function in a file of its own.
func Checks() []Check {
	all := slices.Concat(nameChecks(), networkChecks(), configChecks(), podChecks(), pluginChecks(), nodeChecks(),
		evidenceChecks(), claimChecks(), boundaryChecks(), specChecks(), socketChecks(), topologyChecks(), holderChecks(),
		hostChecks())
	slices.SortFunc(all, func(a, b Check) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Options are what the user wants of a run.
type Options struct {
	// Namespace is that of objects that name none, "default" when it is empty.
	Namespace string
	// Verbose adds findings that explain although nothing is wrong.
	Verbose bool
	// Enable are the IDs of checks that are asked for, or families such as NAM; all, when it
	// is empty. Disable are those that are not.
	Enable, Disable []string
	// Nodes are captured nodes that belong to the set.
	Nodes []NodeInput
	// Evaluations are how often selectors are evaluated at most, about a million when it is 0.
	Evaluations int
	// Ignore are findings that somebody has looked at and accepts.
	Ignore []Ignore
}

// Run checks a set.
func Run(set *manifest.Set, o Options) *Result {
	w := newWorld(set, o)
	r := &Result{Inputs: set.Inputs, Nodes: o.Nodes, Complete: w.completeKinds(), Listed: w.byLists(), Names: w.names.table()}
	for _, c := range Checks() {
		if !o.asks(c.ID) {
			r.Disabled = append(r.Disabled, c.ID)
			continue
		}
		if missing := w.missing(c.Needs); len(missing) > 0 {
			r.Skipped = append(r.Skipped, Skipped{c.ID, missing, w.inputs(c.Needs)})
			continue
		}
		if len(c.Needs) > 0 {
			r.Made++
		}
		found := c.Run(w)
		gaveUp, lacking := w.gaveUp(), w.lacking(c.Needs)
		switch {
		case gaveUp:
			r.Skipped = append(r.Skipped, Skipped{c.ID, []string{"selectors that are few enough to ask all of them"}, []string{inputFewer}})
		case len(lacking) > 0:
			r.Skipped = append(r.Skipped, Skipped{c.ID, lacking, w.inputs(c.Needs)})
		case len(found) == 0:
			r.Passed = append(r.Passed, c.ID)
		}
		for _, f := range found {
			f.Kind = c.Kind
			if f.severity != nil {
				f.Severity = *f.severity
			}
			if f.Help == "" {
				f.Help = f.Remedy
			}
			f.Ignored = w.ignored(f)
			r.Findings = append(r.Findings, f)
		}
	}
	slices.SortStableFunc(r.Findings, compare)
	return r
}

// asks says whether a check is to be made.
func (o Options) asks(id string) bool {
	in := func(list []string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return s == id || len(s) == 3 && strings.HasPrefix(id, s) })
	}
	return (len(o.Enable) == 0 || in(o.Enable)) && !in(o.Disable)
}

// compare orders findings by place and ID, and then by all that people see, so that two
// runs give one text.
func compare(a, b Finding) int {
	return cmp.Or(
		strings.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Line, b.Place.Line),
		strings.Compare(a.ID, b.ID), cmp.Compare(a.Place.Column, b.Place.Column),
		strings.Compare(a.Object.String(), b.Object.String()), strings.Compare(a.Message, b.Message),
	)
}
