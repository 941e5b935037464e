package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestInvariantsShown: docs/testing.md has every invariant, each with a test on a real peer,
// and what it names is there. A test that is renamed would otherwise take the proof along.
func TestInvariantsShown(t *testing.T) {
	doc := read(t, "docs/testing.md")
	_, doc, _ = strings.Cut(doc, "## The invariants")
	doc, _, _ = strings.Cut(doc, "\n## ")
	shown := map[int]int{}
	invariant := 0
	for line := range strings.Lines(doc) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || strings.Contains(line, "---") || strings.Contains(line, "shown by") {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSpace(cells[1])); err == nil {
			invariant = n
		}
		names := regexp.MustCompile("`(Test[^`]+)`|\"([^\"]+)\"").FindAllStringSubmatch(cells[3], -1)
		dir := regexp.MustCompile(` in (test/\w+)`).FindStringSubmatch(cells[3])
		if names == nil || dir == nil {
			t.Errorf("invariant %d: %q names no test and directory", invariant, cells[3])
			continue
		}
		source := sources(t, dir[1])
		for _, name := range names {
			shown[invariant]++
			test, part, _ := strings.Cut(name[1], "/")
			part = strings.ReplaceAll(part, "_", " ") + name[2]
			if test != "" && !strings.Contains(source, "func "+test+"(t *testing.T)") || part != "" && !strings.Contains(source, strconv.Quote(part)) {
				t.Errorf("invariant %d: there is no %q in %s", invariant, name[1]+name[2], dir[1])
			}
		}
	}
	for n := 1; n <= 10; n++ {
		if shown[n] == 0 {
			t.Errorf("invariant %d is shown by no test", n)
		}
	}
}

// sources is the text of a directory's Go files.
func sources(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository(t), dir, "*.go"))
	if err != nil || files == nil {
		t.Fatalf("%s: no Go files, %v", dir, err)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
