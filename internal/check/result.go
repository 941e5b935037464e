package check

import (
	"cmp"
	"slices"
	"strings"

	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// Skipped is a check that could not be made, or not of all captured nodes.
type Skipped struct {
	ID      string
	Missing []string
	// Inputs say in short what somebody would have to add.
	Inputs []string
}

// Gap is an input that is missing, and the checks that cannot be made without it.
type Gap struct {
	Inputs []string
	IDs    []string
}

// Gaps are the skipped checks by what they lack, the most first.
func (r *Result) Gaps() []Gap {
	at := map[string]int{}
	var all []Gap
	for _, s := range r.Skipped {
		key := strings.Join(s.Inputs, "\x00")
		i, ok := at[key]
		if !ok {
			i = len(all)
			at[key] = i
			all = append(all, Gap{Inputs: s.Inputs})
		}
		all[i].IDs = append(all[i].IDs, s.ID)
	}
	slices.SortStableFunc(all, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(len(b.IDs), len(a.IDs)), slices.Compare(a.Inputs, b.Inputs))
	})
	return all
}

// Result is what a run says.
type Result struct {
	Inputs   []manifest.Input
	Nodes    []NodeInput // captured ones
	Complete []string    // kinds of which the inputs have everything
	Listed   []Listed    // those among them of which a list seems to have it
	Findings []Finding
	Passed   []string
	Skipped  []Skipped
	// Made is how many checks had what they need. Those that need nothing are about the input itself.
	Made     int
	Disabled []string
	Names    []Spelling
}

// Count counts the findings of a severity that nobody accepts.
func (r *Result) Count(s finding.Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s && f.Ignored == "" {
			n++
		}
	}
	return n
}

// Fails says whether a finding is at or above a severity.
func (r *Result) Fails(threshold finding.Severity) bool {
	for s := threshold; s <= finding.Error; s++ {
		if r.Count(s) > 0 {
			return true
		}
	}
	return false
}

// Incomplete says whether a check could not be made.
func (r *Result) Incomplete() bool { return len(r.Skipped) > 0 }

// Blind says whether nothing was looked at: no check had what it needs.
func (r *Result) Blind() bool { return r.Made == 0 && len(r.Skipped) > 0 }

// ExitCode is the code for a result. incomplete says that something was not answered, where that counts.
func (r *Result) ExitCode(threshold finding.Severity, incomplete bool) int {
	switch {
	case r.Fails(threshold):
		return exit.Findings
	case incomplete || r.Blind():
		return exit.Incomplete
	}
	return exit.OK
}
