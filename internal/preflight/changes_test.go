package preflight_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/preflight"
)

// change is what is otherwise than in the ready cluster, and what changes with it. A question without a
// way in front of it stands for all ways that ask it.
type change struct {
	Edits []struct{ Old, New string }
	// Partial: nobody says of which kinds the input has all objects.
	Partial bool
	// Wrong, Open and Fine are the questions whose answers turn to no, unknown and yes.
	Wrong, Open, Fine []string
	// Found are parts of what is found, one for each finding. Told are parts of what would tell.
	Found, Told []string
}

func changes(t testing.TB) map[string]change {
	t.Helper()
	text, err := os.ReadFile("testdata/changes.yaml")
	must(t, err)
	var all map[string]change
	must(t, yaml.UnmarshalStrict(text, &all))
	return all
}

// answers are those that a change makes.
func (c change) answers(asked map[string]preflight.Line) map[string]preflight.Answer {
	all := map[string]preflight.Answer{}
	for answer, questions := range map[preflight.Answer][]string{
		preflight.No: c.Wrong, preflight.Unknown: c.Open, preflight.Yes: c.Fine} {
		for question, l := range asked {
			if slices.Contains(questions, question) || slices.Contains(questions, l.Question) {
				all[question] = answer
			}
		}
	}
	return all
}

// TestAnswered: of each question there is a no, so that each is proven to look at something.
func TestAnswered(t *testing.T) {
	asked, said := answers(preflight.Run(ready(t).input(t))), map[string]bool{}
	for _, c := range changes(t) {
		for question, a := range c.answers(asked) {
			said[question] = said[question] || a == preflight.No
		}
	}
	for question, l := range asked {
		if !said[question] && l.Question != "the API server serves what the driver writes" { // TestAPI
			t.Errorf("%s: no change makes it a no", question)
		}
	}
}

// TestChanges: each thing that is wrong, or not known, changes the answers that it is about and no
// other.
func TestChanges(t *testing.T) {
	for name, c := range changes(t) {
		t.Run(name, func(t *testing.T) {
			w := ready(t)
			for _, e := range c.Edits {
				w = w.with(t, e.Old, e.New)
			}
			var options []manifest.Options
			if c.Partial {
				options = []manifest.Options{{}}
			}
			was, r := answers(preflight.Run(ready(t).input(t, options...))), preflight.Run(w.input(t, options...))
			got, told := map[string]preflight.Answer{}, ""
			for question, l := range answers(r) {
				if l.Answer != was[question].Answer {
					got[question] = l.Answer
				}
				if l.Answer == preflight.No && len(l.Findings) == 0 || l.Answer == preflight.Unknown && len(l.Tell) == 0 {
					t.Errorf("%s: %s, without a reason", question, l.Answer)
				}
				told += strings.Join(l.Tell, "\n") + "\n"
			}
			if diff := cmp.Diff(c.answers(was), got); diff != "" {
				t.Errorf("answers that changed (-want +got):\n%s", diff)
			}
			for _, want := range c.Told {
				if !strings.Contains(told, want) {
					t.Errorf("would tell:\n%s\nwant %q", told, want)
				}
			}
			c.found(t, r)
		})
	}
}

// found compares the findings, each with its ID in front and its advice behind.
func (c change) found(t *testing.T, r *preflight.Report) {
	t.Helper()
	var found []string
	for _, f := range r.Findings {
		found = append(found, f.ID+" "+f.Message+"; "+f.Help)
	}
	if len(found) != len(c.Found) {
		t.Errorf("got %q\nwant %q", found, c.Found)
		return
	}
	for _, want := range c.Found {
		if !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, want) }) {
			t.Errorf("got %q\nwant %s", found, want)
		}
	}
}
