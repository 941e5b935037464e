package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMatrix: no cell of docs/compatibility.md claims anything without saying how it is known, and what
// was measured names what measures it. Versions that were measured are those that the tests are built with.
func TestMatrix(t *testing.T) {
	text := page(t, "docs/compatibility.md").Text
	cells := 0
	for _, m := range regexp.MustCompile(`(?s)<!-- matrix: begin -->(.*?)<!-- matrix: end -->`).FindAllStringSubmatch(text, -1) {
		rows := rowsOf(m[1])
		for _, row := range rows[1:] {
			if len(row) != len(rows[0]) {
				t.Errorf("not %d cells: %q", len(rows[0]), row)
			}
			for _, cell := range row[1:] {
				cells++
				known(t, row[0], cell)
			}
		}
	}
	if cells < 50 {
		t.Errorf("found only %d cells", cells)
	}
	for _, minor := range []string{"1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37"} {
		if !strings.Contains(text, "\n| "+minor+" |") {
			t.Errorf("there is no row of Kubernetes %s", minor)
		}
	}
}

func known(t *testing.T, row, cell string) {
	t.Helper()
	how := regexp.MustCompile(`^(measured|read|no, measured|no, read|unknown): ?\S`)
	if !how.MatchString(cell) {
		t.Errorf("%s: %q does not say how it is known", row, cell)
	}
	for _, version := range regexp.MustCompile(`\b1\.3[47]\.[0-9]+\b`).FindAllString(cell, -1) {
		file := "test/go.mod"
		if strings.HasPrefix(version, "1.34.") {
			file = "test/kubernetes-1.34.mod"
		}
		if mod := source(t, file); !strings.Contains(mod, "k8s.io/kubernetes v"+version+"\n") {
			t.Errorf("%s: %q, and %s has another version", row, cell, file)
		}
	}
	if strings.Contains(cell, "2.4.2") && !strings.Contains(source(t, "test/peer/build/containerd/go.mod"), "containerd/v2 v2.4.2") {
		t.Errorf("%s: %q, and the tests have another containerd", row, cell)
	}
	if strings.HasPrefix(cell, "measured") && !strings.Contains(cell, "`make ") && !strings.Contains(cell, "all tests") &&
		!strings.Contains(cell, "defaults") && row != "6.12" && row != "6.18" && row != "Prometheus" {
		t.Errorf("%s: %q does not name what measures it", row, cell)
	}
	for _, target := range regexp.MustCompile("`make ([a-z0-9.-]+)`").FindAllStringSubmatch(cell, -1) {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target[1]) + `:`).MatchString(source(t, "Makefile")) {
			t.Errorf("%s: the Makefile has no %s", row, target[1])
		}
	}
}

func source(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, name))
	must(t, err)
	return string(text)
}
