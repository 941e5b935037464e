package docs_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/finding"
)

// TestRunbooks: who is woken finds in each page the same parts and a command to type, and each page in
// the index. That links and commands are right is so of all documents.
func TestRunbooks(t *testing.T) {
	const dir = "docs/runbooks/"
	index := page(t, dir+"README.md").Links()
	seen := 0
	for _, p := range pages(t) {
		base := path.Base(p.Name)
		if !strings.HasPrefix(p.Name, dir) || base == "README.md" {
			continue
		}
		seen++
		name := strings.TrimSuffix(base, ".md")
		for _, part := range []string{"# " + name, "## What to look at", "## What to do", "## When it is no fault"} {
			if !strings.Contains(p.Text, part+"\n") {
				t.Errorf("%s has no %q", p.Name, part)
			}
		}
		if !strings.Contains(p.Text, tool+" ") && name != "PassthroughStateOld" { // on a node that hangs, it would hang too
			t.Errorf("%s names no command of %s", p.Name, tool)
		}
		if !slices.Contains(index, base) {
			t.Errorf("%sREADME.md does not have %s", dir, base)
		}
	}
	if seen < 10 {
		t.Errorf("there are only %d pages", seen)
	}
}

// TestFindings: a finding that a document names is one of the catalogue.
func TestFindings(t *testing.T) {
	known, families, seen := map[string]bool{}, map[string]bool{}, 0
	for _, k := range finding.Catalogue() {
		known[k.ID], families[k.ID[:3]] = true, true
	}
	for _, p := range pages(t) {
		for _, id := range regexp.MustCompile(`\b[A-Z]{3}[0-9]{3}\b`).FindAllString(p.Text, -1) {
			if !families[id[:3]] {
				continue // SHA256 is none
			}
			seen++
			if !known[id] {
				t.Errorf("%s: there is no finding %s", p.Name, id)
			}
		}
	}
	if seen < 200 {
		t.Errorf("found only %d findings", seen)
	}
}
