package docs_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRooms: who wants to change something finds the room in docs/architecture.md. A room that is not there
// would be found by those alone who know of it.
func TestRooms(t *testing.T) {
	_, table, _ := strings.Cut(page(t, "docs/architecture.md").Text, "<!-- rooms: begin -->")
	table, _, found := strings.Cut(table, "<!-- rooms: end -->")
	if !found {
		t.Fatal("docs/architecture.md has no table of rooms")
	}
	listed := map[string]bool{}
	for _, row := range rowsOf(table)[1:] {
		for _, m := range regexp.MustCompile("`([a-z/]+)`").FindAllStringSubmatch(row[len(row)-1], -1) {
			listed[m[1]] = true
		}
	}
	rooms := map[string]bool{}
	must(t, filepath.WalkDir(filepath.Join(top, "internal"), func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.HasSuffix(name, ".go") && !strings.Contains(name, "/testdata/") {
			room, relErr := filepath.Rel(filepath.Join(top, "internal"), filepath.Dir(name))
			rooms[filepath.ToSlash(room)] = true
			return relErr
		}
		return err
	}))
	for room := range rooms {
		if !listed[room] {
			t.Errorf("docs/architecture.md does not say what to change in internal/%s", room)
		}
	}
	for room := range listed {
		if !rooms[room] {
			t.Errorf("docs/architecture.md has the room %s, which there is not", room)
		}
	}
}

// TestPictures: there is a picture of each program in docs/architecture.md.
func TestPictures(t *testing.T) {
	p := page(t, "docs/architecture.md")
	pictures := ""
	for _, b := range p.Blocks() {
		if b.Fenced {
			pictures += strings.Join(b.Lines, "\n") + "\n"
		}
	}
	for program, sign := range map[string]string{
		"kata-device-plugin": "kata-device-plugin", "nic-device-plugin": "nic-device-plugin", "kata-dra-driver": "dradriver",
		"device-exporter": "exporter/gather", "kubectl-device": "cli",
	} {
		if !strings.Contains(pictures, sign) {
			t.Errorf("docs/architecture.md has no picture of %s", program)
		}
	}
}
