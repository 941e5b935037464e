package check_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/report"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// load loads one text as in.yaml.
func load(t testing.TB, text string, complete ...string) *manifest.Set {
	t.Helper()
	file := filepath.Join(t.TempDir(), "in.yaml")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	t.Chdir(filepath.Dir(file))
	set, err := manifest.Load([]string{"in.yaml"}, manifest.Options{Complete: complete})
	must(t, err)
	return set
}

// options reads what a fixture says of itself in its first lines.
func options(text string) (complete []string, o check.Options) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "# complete: "); ok {
			complete = strings.Split(strings.TrimSpace(rest), ",")
		}
		o.Verbose = o.Verbose || strings.HasPrefix(line, "# verbose")
	}
	return complete, o
}

// TestExamples: worked examples give exactly what is written beside them.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("testdata/examples/*.yaml")
	must(t, err)
	if len(files) < 7 {
		t.Fatalf("found only %v", files)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			must(t, err)
			expected, err := filepath.Abs(strings.TrimSuffix(file, ".yaml") + ".txt")
			must(t, err)
			complete, o := options(string(text))
			r := check.Run(load(t, string(text), complete...), o)
			r.Skipped = nil // a check more or less is of no interest here
			var got bytes.Buffer
			must(t, report.Text(&got, r, report.TextOptions{}))
			golden.Assert(t, got.String(), expected)
		})
	}
}

// found lists the findings as ID, severity and object.
func found(r *check.Result) []string {
	var all []string
	for _, f := range r.Findings {
		all = append(all, f.ID+" "+f.Severity.String()+" "+f.Object.String())
	}
	slices.Sort(all)
	return all
}
