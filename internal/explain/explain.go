// Package explain says how far a pod or a claim has come on the way to its devices: a chain of
// questions in a fixed order, each answered with yes, no or unknown, up to the first proven no. It
// asks nobody: what the input does not show is unknown, and the answer says which input would tell.
package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/inventory"
)

// Input is what is known.
type Input struct {
	View *check.View
	// Namespace is one that was read from a cluster as a whole, "" where none was.
	Namespace string
	// Nodes are captured nodes.
	Nodes []Node
}

// Node is a captured node.
type Node struct {
	Name string
	// Source is where the capture was read.
	Source    string
	Inventory *inventory.Inventory
	Capture   *capture.Capture // nil for a directory
	// Foreign: no object of the view is about it, or its names were replaced. Only its hardware tells then.
	Foreign bool
}

// Verdict is the answer to one question.
type Verdict string

// The answers. What is behind a no is not reached; what a pod does not ask for is not needed.
const (
	Yes        Verdict = "yes"
	No         Verdict = "no"
	Unknown    Verdict = "unknown"
	NotNeeded  Verdict = "not needed"
	NotReached Verdict = "not reached"
)

// Evidence is one fact that an answer rests on.
type Evidence struct {
	Text string
	// Source is where it was read, "" where it is the absence of something.
	Source string
	// At is when it was so, zero where the input does not say.
	At time.Time
}

// Step is one question with its answer.
type Step struct {
	Name     string
	Verdict  Verdict
	Says     string
	Evidence []Evidence
	// Check is the ID of the check that says the same, and Help what to do. They go with a no.
	Check, Help string
	// Tell is the input that would tell. It goes with an unknown.
	Tell string
}

// Chain is the way to one resource, or to one claim.
type Chain struct {
	About string
	Steps []Step
}

// Break is the step that ends a chain, nil where nothing is proven to be wrong.
func (c Chain) Break() *Step {
	for i := range c.Steps {
		if c.Steps[i].Verdict == No {
			return &c.Steps[i]
		}
	}
	return nil
}

// Report explains one object.
type Report struct {
	Subject check.Ref
	// State is what the object says of itself.
	State  string
	Chains []Chain
}

// NotFound is an object that the input does not have.
type NotFound struct {
	Subject check.Ref
	// Searched are the inputs, and Near objects of the name in other namespaces.
	Searched, Near []string
	// Refused are words of whoever could not create it.
	Refused []Evidence
}

// Error is the absence in one line.
func (n *NotFound) Error() string {
	near := ""
	if len(n.Near) > 0 {
		near = ", which has " + abridged(n.Near)
	}
	parts := []string{fmt.Sprintf("%s is not in the input (%s)%s", n.Subject, abridged(n.Searched), near)}
	for _, r := range n.Refused {
		parts = append(parts, r.Source+": "+r.Text)
	}
	return strings.Join(parts, "; ")
}

func abridged(list []string) string {
	const most = 4
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	if len(list) == 0 {
		return "which is empty"
	}
	return strings.Join(list, ", ")
}

// explainer explains with one input.
type explainer struct{ Input }

// question is a step that was not asked yet.
type question struct {
	name string
	ask  func() Step
}

// walk asks one question after another, up to the first no.
func walk(about string, questions []question) Chain {
	c := Chain{About: about}
	broken := false
	for _, q := range questions {
		s := Step{Verdict: NotReached}
		if !broken {
			s = q.ask()
		}
		s.Name = q.name
		broken = broken || s.Verdict == No
		c.Steps = append(c.Steps, s)
	}
	return c
}

func yes(format string, args ...any) Step {
	return Step{Verdict: Yes, Says: fmt.Sprintf(format, args...)}
}

// unknown says what is not known, and which input would tell.
func unknown(tell, format string, args ...any) Step {
	return Step{Verdict: Unknown, Says: fmt.Sprintf(format, args...), Tell: tell}
}

func no(id, help, format string, args ...any) Step {
	return Step{Verdict: No, Says: fmt.Sprintf(format, args...), Check: id, Help: help}
}

// because adds evidence.
func (s Step) because(all ...Evidence) Step {
	s.Evidence = append(slices.Clip(s.Evidence), all...)
	return s
}

// proven is the no of a check.
func proven(f check.Finding) Step {
	s := no(f.ID, f.Help, "%s", f.Message)
	s = s.because(Evidence{Text: f.Title, Source: f.Place.String()})
	for _, r := range f.Related {
		s = s.because(Evidence{Text: r.Text, Source: r.Place.String()})
	}
	for _, e := range f.Evidence {
		s = s.because(Evidence{Text: e})
	}
	return s
}
