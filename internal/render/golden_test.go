package render

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
)

// section is a part of a golden file: a line "-- name --", and the text up to the next one.
type section struct{ name, text string }

// readSections reads a golden file.
func readSections(t testing.TB, file string) []section {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	var all []section
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(name, " --\n") {
			all = append(all, section{name: strings.TrimSuffix(name, " --\n")})
			continue
		}
		if len(all) == 0 {
			t.Fatalf("%s: %q stands before the first section", file, line)
		}
		all[len(all)-1].text += line
	}
	return all
}

func writeSections(t testing.TB, file string, all []section) {
	t.Helper()
	var b strings.Builder
	for _, s := range all {
		fmt.Fprintf(&b, "-- %s --\n%s", s.name, s.text)
	}
	must(t, os.WriteFile(file, []byte(b.String()), 0o644))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// outcome is what Render says, as text: the files and the notes, or the problems.
func outcome(t testing.TB, input string, p *Policy) string {
	t.Helper()
	r, err := Render([]File{{"input.yaml", []byte(input)}}, p)
	if err != nil {
		return "refused:\n" + err.Error() + "\n"
	}
	text := string(r.Files[0].Data)
	for _, n := range r.Notes {
		text += "note: " + n.String() + "\n"
	}
	return text
}

// cases are the golden files: an input, a policy or none, and what becomes of them in each way. A way
// that has no section is written by -update.
func cases(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "cases", "*.txt"))
	must(t, err)
	if len(files) < 15 {
		t.Fatalf("only %d cases", len(files))
	}
	return files
}

func TestCases(t *testing.T) {
	for _, file := range cases(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			sections := readSections(t, file)
			input, policy := "", Default()
			var kept []section
			want := map[string]string{}
			for _, s := range sections {
				switch s.name {
				case "input":
					input = s.text
					kept = append(kept, s)
				case "policy":
					var err error
					policy, err = ParsePolicy("policy.yaml", []byte(s.text))
					must(t, err)
					kept = append(kept, s)
				default:
					want[s.name] = s.text
				}
			}
			ways := map[string]*Policy{"as the policy says": policy}
			order := []string{"as the policy says"}
			if len(kept) == 1 || want["as the policy says"] == "" && len(want) > 0 {
				order = nil
				for _, via := range []Via{DevicePlugin, DRA, ExtendedResource} {
					ways[string(via)] = policy.With(via)
					order = append(order, string(via))
				}
			}
			for _, way := range order {
				got := outcome(t, input, ways[way])
				kept = append(kept, section{way, got})
				if diff := cmp.Diff(want[way], got); diff != "" && !golden.FlagUpdate() {
					t.Errorf("%s (-want +got):\n%s", way, diff)
				}
			}
			if golden.FlagUpdate() {
				writeSections(t, file, kept)
			}
		})
	}
}
