package explain_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/explain"
	"kata-device-plugin/internal/finding"
)

// TestAgreesWithCheck: what a no of explain names, check says of the same input, or says what it
// lacks to say it; and where check has an error about what a step asks, the step is not a yes. Otherwise
// one of the two is wrong, and nobody knows which.
func TestAgreesWithCheck(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	must(t, err)
	of := map[string]string{"cdi-stale-of-another": "CDI009"} // errors about other pods' devices
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			f := read(t, file)
			result := check.Run(f.set, f.options)
			for _, c := range f.explain(t).Chains {
				for _, s := range c.Steps {
					if s.Verdict == explain.No && !said(result, s.Check) {
						t.Errorf("%s: explain says no with %s (%s), and check made that check and found nothing", c.About, s.Check, s.Says)
					}
				}
				agreed(t, c, result, of[name])
			}
		})
	}
}

func said(r *check.Result, id string) bool {
	return slices.ContainsFunc(r.Findings, func(f check.Finding) bool { return f.ID == id }) ||
		slices.ContainsFunc(r.Skipped, func(s check.Skipped) bool { return s.ID == id })
}

// agreed: no step is a yes beside an error about what it asks. Each fixture has one pod or claim that
// anything is wrong with; others is the ID of an error that is not about it.
func agreed(t *testing.T, c explain.Chain, r *check.Result, others string) {
	t.Helper()
	asked := map[string][]string{
		"spelled the same":                      {"NAM003", "NAM006", "NAM008", "NAM009", "NAM010"},
		"plugin on a matching node":             {"DSP"},
		"registered":                            {"PLG008", "NOD003"},
		"allocated, CDI resolved":               {"CDI", "MAP001", "POD016"},
		"network got the device":                {"NAD"},
		"devices published on nodes that match": {"DRA004", "DRA009"},
		"reserved":                              {"DRA010"},
		"prepared":                              {"DRA001", "DRA022"},
		"CDI resolved":                          {"CDI", "MAP001", "POD016", "DRA027"},
	}
	for _, s := range c.Steps {
		for _, found := range r.Findings {
			about := slices.ContainsFunc(asked[s.Name], func(family string) bool { return strings.HasPrefix(found.ID, family) })
			well := s.Verdict == explain.Yes || s.Verdict == explain.NotNeeded && s.Name == "network got the device"
			if well && found.Severity == finding.Error && about && found.ID != others {
				t.Errorf("%s: explain has nothing against %q, and check has the error %s: %s", c.About, s.Name, found.ID, found.Message)
			}
		}
	}
}
