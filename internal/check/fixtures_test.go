package check_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/report"
)

// TestEveryCheckHasFixtures: of each check it is shown that it finds something, and that it does
// not find what is right.
func TestEveryCheckHasFixtures(t *testing.T) {
	known := map[string]bool{}
	for _, c := range check.Checks() {
		known[c.ID] = true
		for _, kind := range []string{"fail", "pass"} {
			objects, _ := filepath.Glob(filepath.Join("testdata", c.ID, kind+"*.yaml"))
			nodes, _ := filepath.Glob(filepath.Join("testdata", c.ID, kind+"*.node"))
			if len(objects)+len(nodes) == 0 {
				t.Errorf("%s has no testdata/%s/%s*.yaml, and no %s*.node", c.ID, c.ID, kind, kind)
			}
		}
	}
	dirs, err := os.ReadDir("testdata")
	must(t, err)
	for _, d := range dirs {
		if name := d.Name(); name != "examples" && name != "healthy" && !known[name] {
			t.Errorf("testdata/%s is about no check", name)
		}
	}
}

// fixture is a case of a check: objects in NAME.yaml, a captured node in NAME.node, or both, and
// another capture in NAME.other.
type fixture struct{ id, name string }

func (f fixture) file(ext string) string { return filepath.Join("testdata", f.id, f.name+ext) }

func fixtures(t *testing.T) []fixture {
	t.Helper()
	var all []fixture
	for _, pattern := range []string{"testdata/*/*.yaml", "testdata/*/*.node"} {
		files, err := filepath.Glob(pattern)
		must(t, err)
		for _, file := range files {
			one := fixture{filepath.Base(filepath.Dir(file)), strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))}
			if one.id != "examples" && one.id != "healthy" && !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	return all
}

// run checks what a fixture has.
func (f fixture) run(t *testing.T) *check.Result {
	t.Helper()
	var nodes []check.NodeInput
	for _, ext := range []string{".node", ".other"} {
		if file, err := os.Open(f.file(ext)); err == nil {
			defer file.Close()
			c, err := capture.Read(file)
			must(t, err)
			nodes = append(nodes, check.NodeInput{File: "in" + ext, Capture: c})
		}
	}
	text, err := os.ReadFile(f.file(".yaml"))
	if err != nil {
		set, err := manifest.Load(nil, manifest.Options{})
		must(t, err)
		return check.Run(set, check.Options{Nodes: nodes})
	}
	complete, o := options(string(text))
	o.Nodes = nodes
	return check.Run(load(t, string(text), complete...), o)
}

// TestFixtures: fail* gives the text beside it, with the finding; pass* does not give the finding,
// and the check has been made.
func TestFixtures(t *testing.T) {
	for _, f := range fixtures(t) {
		t.Run(f.id+"/"+f.name, func(t *testing.T) {
			expected, err := filepath.Abs(f.file(".txt"))
			must(t, err)
			r := f.run(t)
			has := slices.ContainsFunc(r.Findings, func(found check.Finding) bool { return found.ID == f.id })
			if strings.HasPrefix(f.name, "pass") {
				if has || !slices.Contains(r.Passed, f.id) {
					t.Errorf("%s is found: %v, and has passed: %v", f.id, found(r), r.Passed)
				}
				return
			}
			if !has {
				t.Errorf("%s is not found: %v", f.id, found(r))
			}
			r.Skipped = nil // a check more or less is of no interest here
			var got bytes.Buffer
			must(t, report.Text(&got, r, report.TextOptions{}))
			golden.Assert(t, got.String(), expected)
		})
	}
}
