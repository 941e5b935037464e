package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kata-device-plugin/internal/docs"
)

// TestClaimsAreTested: each test that these documents name is there, in the directory that they name. A
// claim whose test was renamed or removed is none any more.
func TestClaimsAreTested(t *testing.T) {
	if found := claims(t, page(t, "docs/security.md")); found < 25 {
		t.Errorf("docs/security.md names only %d tests", found)
	}
	for _, name := range []string{"docs/kata.md", "docs/compatibility.md", "docs/migration.md"} {
		claims(t, page(t, name))
	}
}

// claims counts the tests that a page names, as in `TestA`, `FuzzB` in internal/c, and complains about
// those that are not there.
func claims(t *testing.T, p docs.Page) int {
	t.Helper()
	found := 0
	text := strings.Join(strings.Fields(p.Text), " ")
	for _, g := range regexp.MustCompile("((?:`(?:Test|Fuzz)\\w+`(?:, | and )?)+)(?: in ((?:internal|test|tools|cmd)/[a-z0-9/]+))?").FindAllStringSubmatch(text, -1) {
		for _, test := range regexp.MustCompile(`(Test|Fuzz)\w+`).FindAllString(g[1], -1) {
			found++
			if !defined(t, g[2], test) {
				t.Errorf("%s: there is no %s in %q", p.Name, test, g[2])
			}
		}
	}
	return found
}

// TestEveryThreatIsAnswered: no row of the tables of docs/security.md says what stops something without
// naming a test, or that nothing does.
func TestEveryThreatIsAnswered(t *testing.T) {
	rows := 0
	for _, row := range rowsOf(page(t, "docs/security.md").Text) {
		if len(row) != 3 || row[2] == "shown by" || !strings.Contains(row[1]+row[2], "Test") && row[2] != "-" {
			continue
		}
		rows++
		if row[2] == "-" && !strings.HasPrefix(row[1], "nothing") {
			t.Errorf("what shows %q?", row[1])
		}
	}
	if rows < 15 {
		t.Errorf("found only %d rows", rows)
	}
}

func defined(t *testing.T, dir, test string) bool {
	t.Helper()
	if dir == "" { // nobody says where: it has to be somewhere
		return false
	}
	files, err := filepath.Glob(filepath.Join(top, dir, "*_test.go"))
	must(t, err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		must(t, err)
		if strings.Contains(string(text), "func "+test+"(") {
			return true
		}
	}
	return false
}
