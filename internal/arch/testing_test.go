package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// peers are the directories of tests, by what they run against.
func peers() map[string]string {
	return map[string]string{
		"test/e2e": "device manager", "test/node": "kubelet, containerd", "test/cluster": "cluster", "test/kernel": "Linux",
		"test/dra": "DRA manager, scheduler",
	}
}

// TestInvariantsShown: docs/testing.md has every invariant, each with a test on a real peer,
// and what it names is there. A test that is renamed would otherwise take the proof along.
func TestInvariantsShown(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "docs/testing.md"), "| | invariant | shown by | peer |\n| --- | --- | --- | --- |\n")
	table, _, found := strings.Cut(table, "\n\n")
	if !found {
		t.Fatal("docs/testing.md has no table of invariants")
	}
	shown := map[int]int{}
	invariant := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 {
			t.Fatalf("not a row of four: %q", line)
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if cells[0] != "" {
			n, err := strconv.Atoi(cells[0])
			if err != nil || n != invariant+1 || cells[1] == "" {
				t.Fatalf("not the row of invariant %d: %q", invariant+1, line)
			}
			invariant = n
		}
		shown[invariant] += named(t, invariant, cells[2], cells[3])
	}
	for n := 1; n <= 10; n++ {
		if shown[n] == 0 {
			t.Errorf("invariant %d is shown by no test", n)
		}
	}
}

// named counts the tests that a cell names, and complains about those that are not there.
func named(t *testing.T, invariant int, cell, peer string) int {
	t.Helper()
	at := max(0, strings.LastIndex(cell, " in ")) // an " in " may be in a name too
	names, dir := cell[:at], strings.TrimPrefix(cell[at:], " in ")
	if peers()[dir] != peer {
		t.Errorf("invariant %d: %q is not what %q runs against", invariant, peer, dir)
		return 0
	}
	source := sources(t, dir)
	all := regexp.MustCompile("`(Test[^`]+)`|\"([^\"]+)\"").FindAllStringSubmatch(names, -1)
	for _, name := range all {
		test, part, _ := strings.Cut(name[1], "/")
		part = strings.ReplaceAll(part, "_", " ") + name[2]
		if test != "" && !strings.Contains(source, "func "+test+"(t *testing.T)") || part != "" && !strings.Contains(source, strconv.Quote(part)) {
			t.Errorf("invariant %d: there is no %q in %s", invariant, name[1]+name[2], dir)
		}
	}
	return len(all)
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
