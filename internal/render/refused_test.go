package render

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/golden"
)

// TestRefused: what cannot be rendered without loss is refused with its place, the reason and what to do. The
// file has a section for each input, called "way: what", and after it one with the problems. A section
// "policy" is for those after it.
func TestRefused(t *testing.T) {
	file := filepath.Join("testdata", "refused.txt")
	var out []section
	p := Default()
	n := 0
	sections := readSections(t, file)
	for i, s := range sections {
		if s.name == "policy" {
			var err error
			p, err = ParsePolicy("policy.yaml", []byte(s.text))
			must(t, err)
			out = append(out, s)
			continue
		}
		way, _, isInput := strings.Cut(s.name, ": ")
		if !isInput {
			continue
		}
		n++
		via, err := ParseVia(way)
		must(t, err)
		_, err = Render([]File{{"in.yaml", []byte(s.text)}}, p.With(via))
		problems, ok := errors.AsType[Problems](err)
		if !ok || len(problems) == 0 {
			t.Errorf("%s: got %v, want problems", s.name, err)
			continue
		}
		for _, problem := range problems {
			if problem.Line == 0 || problem.Object == "" || problem.What == "" || problem.Remedy == "" {
				t.Errorf("%s: %+v lacks something", s.name, problem)
			}
		}
		got := err.Error() + "\n"
		if !golden.FlagUpdate() && (i+1 >= len(sections) || sections[i+1].name != "refused" || sections[i+1].text != got) {
			t.Errorf("%s:\n%s", s.name, got)
		}
		out = append(out, s, section{"refused", got})
	}
	if n < 35 {
		t.Errorf("only %d inputs", n)
	}
	if golden.FlagUpdate() {
		writeSections(t, file, out)
	}
}
