// Package preflight answers whether a node or a cluster is ready for a way by which pods get
// devices: a list of questions in a fixed order, each with yes, no or unknown. A no is a finding.
// Where a check looks at the same thing, the answer is the check's.
package preflight

import (
	"cmp"
	"slices"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
)

// Way is how pods get devices.
type Way string

// The ways.
const (
	DevicePlugin Way = "device-plugin"
	DRA          Way = "dra"
)

// Ways are all ways.
func Ways() []Way { return []Way{DevicePlugin, DRA} }

// Answer is what is known of a question.
type Answer string

// The answers. Unknown is not a no: the input does not show it.
const (
	Yes     Answer = "yes"
	No      Answer = "no"
	Unknown Answer = "unknown"
)

// Input is what the answers are made of.
type Input struct {
	// View has the objects, and Checked is what checks say of the same input.
	View    *check.View
	Checked *check.Result
	// API is what an API server says of itself, nil where none was asked.
	API *API
	// Ways are those that are asked about.
	Ways []Way
	// Moves are extended resources that are to be left behind.
	Moves []Move
}

// API is what an API server says of itself.
type API struct {
	// Version is for example v1.37.2.
	Version string
	// Served are the groups with their versions, for example resource.k8s.io/v1.
	Served []string
}

// Line is a question with its answer.
type Line struct {
	Section, Question string
	Answer            Answer
	// Evidence is what the answer rests on.
	Evidence []string
	// Tell is which input would tell what is unknown.
	Tell []string
	// Findings are the IDs of what is wrong.
	Findings []string
}

// Ready is what is known of a way.
type Ready struct {
	Way   Way
	Lines []Line
}

// Answer is no where something is known to be wrong, and unknown where nothing is and not all is
// known.
func (r Ready) Answer() Answer {
	answer := Yes
	for _, l := range r.Lines {
		switch {
		case l.Answer == No:
			return No
		case l.Answer == Unknown:
			answer = Unknown
		}
	}
	return answer
}

// Report is what preflight says.
type Report struct {
	Ways []Ready
	// Findings are those of all lines, each once.
	Findings []check.Finding
	// Moves are what is known of resources that are to be left behind.
	Moves []Moved
	// Nodes compare what a node's device plugin and its DRA driver have.
	Nodes []Compared
}

// Incomplete says whether a question is open.
func (r *Report) Incomplete() bool {
	return slices.ContainsFunc(r.Ways, func(w Ready) bool {
		return slices.ContainsFunc(w.Lines, func(l Line) bool { return l.Answer == Unknown })
	})
}

// Nothing says whether the input has nothing that preflight knows something of: no question has an
// answer, and nothing depends on what is to be left behind.
func (r *Report) Nothing() bool {
	for _, w := range r.Ways {
		if slices.ContainsFunc(w.Lines, func(l Line) bool { return l.Answer != Unknown }) {
			return false
		}
	}
	return !slices.ContainsFunc(r.Moves, func(m Moved) bool { return len(m.Users)+len(m.Dependents) > 0 })
}

// Run answers all questions.
func Run(in Input) *Report {
	s := newSurvey(in)
	r := &Report{}
	for _, f := range in.Checked.Findings {
		if restsOn(f.ID) {
			r.add([]check.Finding{f})
		}
	}
	for _, way := range in.Ways {
		r.Ways = append(r.Ways, r.answer(s, way))
	}
	for _, m := range in.Moves {
		moved := s.move(m)
		r.Moves = append(r.Moves, moved)
		r.add(moved.Dependents)
	}
	v := &verdict{}
	r.Nodes, v.findings = s.compare(in.Moves)
	v.accept(in.View)
	r.add(v.findings)
	slices.SortStableFunc(r.Findings, func(a, b check.Finding) int {
		return cmp.Or(-cmp.Compare(a.Severity, b.Severity), strings.Compare(a.ID, b.ID),
			strings.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Line, b.Place.Line),
			strings.Compare(a.Message, b.Message))
	})
	return r
}

// restsOn says whether a check is about what the answers rest on.
func restsOn(id string) bool {
	return slices.ContainsFunc([]finding.Kind{finding.InputNotUsed(), finding.FarApart(), finding.ReadMeanwhile(),
		finding.NamesReplaced(), finding.OfNoNode(), finding.CapturedTwice()}, func(k finding.Kind) bool { return k.ID == id })
}

// answer asks all that is about a way.
func (r *Report) answer(s *survey, way Way) Ready {
	ready := Ready{Way: way}
	for _, of := range sections() {
		for _, q := range of.questions {
			if q.of != "" && q.of != way {
				continue
			}
			v := &verdict{}
			q.ask(s, way, v)
			v.accept(s.View)
			ready.Lines = append(ready.Lines, Line{of.name, q.text, v.answer(), v.evidence, v.tell, v.ids()})
			r.add(v.findings)
		}
	}
	return ready
}

// add keeps each finding once: both ways may have the same.
func (r *Report) add(all []check.Finding) {
	for _, f := range all {
		if !slices.ContainsFunc(r.Findings, func(other check.Finding) bool {
			return other.ID == f.ID && other.Message == f.Message && other.Place == f.Place && other.Object == f.Object
		}) {
			r.Findings = append(r.Findings, f)
		}
	}
}

// verdict is an answer while it is found.
type verdict struct {
	evidence, tell []string
	findings       []check.Finding
	fine           bool // something is known to be in order
}

func (v *verdict) yes(evidence string) { v.fine, v.evidence = true, append(v.evidence, evidence) }

func (v *verdict) no(f check.Finding) { v.findings = append(v.findings, f) }

// open notes which input would tell what is not known.
func (v *verdict) open(tell string) {
	if !slices.Contains(v.tell, tell) {
		v.tell = append(v.tell, tell)
	}
}

// add takes over what another has that is not known, or wrong.
func (v *verdict) add(other verdict) {
	v.findings = append(v.findings, other.findings...)
	for _, tell := range other.tell {
		v.open(tell)
	}
}

// accept notes which findings somebody accepts.
func (v *verdict) accept(view *check.View) {
	for i, f := range v.findings {
		if f.Ignored == "" {
			v.findings[i].Ignored = view.Accepted(f)
		}
	}
}

// answer: a note is no reason for a no, and where nothing is known the answer is not yes.
func (v *verdict) answer() Answer {
	bad := func(f check.Finding) bool { return f.Severity > finding.Note && f.Ignored == "" }
	switch {
	case slices.ContainsFunc(v.findings, bad):
		return No
	case len(v.tell) > 0 || !v.fine && len(v.findings) == 0:
		return Unknown
	}
	return Yes
}

func (v *verdict) ids() []string {
	var all []string
	for _, f := range v.findings {
		if !slices.Contains(all, f.ID) {
			all = append(all, f.ID)
		}
	}
	slices.Sort(all)
	return all
}
