package docs_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestDecisions: records are numbered without a gap, have the same parts, are in the index, and what they
// name as a proof is there.
func TestDecisions(t *testing.T) {
	index := page(t, "docs/decisions/README.md")
	number := 0
	for _, p := range pages(t) {
		name, below := strings.CutPrefix(p.Name, "docs/decisions/")
		if !below || name == "README.md" {
			continue
		}
		number++
		written, _, _ := strings.Cut(name, "-")
		if want := strconv.Itoa(number); strings.TrimLeft(written, "0") != want || !strings.HasPrefix(p.Text, "# "+want+". ") {
			t.Errorf("%s: it is not number %d, by its name or its heading", p.Name, number)
		}
		if !slices.Contains(index.Links(), name) {
			t.Errorf("docs/decisions/README.md does not have %s", name)
		}
		for _, part := range []string{"\n## Context\n", "\n## Decision\n", "\n## Consequences\n"} {
			if strings.Count(p.Text, part) != 1 {
				t.Errorf("%s has no part %q, or several", p.Name, strings.TrimSpace(part))
			}
		}
		if !strings.Contains(p.Text, "`Test") {
			t.Errorf("%s names no test", p.Name)
		}
		claims(t, p)
	}
	if number < 10 || len(index.Links()) != number {
		t.Errorf("there are %d records, and %d in the index", number, len(index.Links()))
	}
}
