package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/report"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// result is that of the two files in testdata: findings of every severity, one that is
// accepted, one without an object, and checks that were skipped and disabled.
func result(t *testing.T) *check.Result {
	t.Helper()
	set, err := manifest.Load([]string{"testdata/in.yaml", "testdata/a chart.yaml"}, manifest.Options{Complete: []string{"pods"}})
	must(t, err)
	return check.Run(set, check.Options{Disable: []string{"NAM016"}, Ignore: []check.Ignore{
		{ID: "EVD001", Object: "nothing", Reason: "not this one"}, {ID: "NAM003", Object: "network default/net-a", Reason: "renamed next week"},
	}})
}

func tool() report.Tool { return report.Tool{Name: "kubectl-device", Version: "v0.0.0-test"} }

func TestGolden(t *testing.T) {
	r := result(t)
	for name, write := range map[string]func(*bytes.Buffer) error{
		"text.txt":    func(b *bytes.Buffer) error { return report.Text(b, r, report.TextOptions{}) },
		"verbose.txt": func(b *bytes.Buffer) error { return report.Text(b, r, report.TextOptions{Verbose: true}) },
		"color.txt":   func(b *bytes.Buffer) error { return report.Text(b, r, report.TextOptions{Color: true}) },
		"report.json": func(b *bytes.Buffer) error { return report.JSON(b, r, tool()) },
		"sarif.json":  func(b *bytes.Buffer) error { return report.SARIF(b, r, tool()) },
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			must(t, write(&got))
			golden.Assert(t, got.String(), name)
		})
	}
}

// TestSame: two runs give the same bytes.
func TestSame(t *testing.T) {
	var first string
	for range 5 {
		var b bytes.Buffer
		r := result(t)
		must(t, report.Text(&b, r, report.TextOptions{Verbose: true}))
		must(t, report.JSON(&b, r, tool()))
		must(t, report.SARIF(&b, r, tool()))
		if first == "" {
			first = b.String()
		}
		if diff := cmp.Diff(first, b.String()); diff != "" {
			t.Fatalf("(-first +next):\n%s", diff)
		}
	}
}

// TestEmpty: without findings lists are empty, not null.
func TestEmpty(t *testing.T) {
	for name, write := range map[string]func(*bytes.Buffer) error{
		"JSON":  func(b *bytes.Buffer) error { return report.JSON(b, &check.Result{}, tool()) },
		"SARIF": func(b *bytes.Buffer) error { return report.SARIF(b, &check.Result{}, tool()) },
	} {
		var b bytes.Buffer
		must(t, write(&b))
		if strings.Contains(b.String(), "null") || !json.Valid(b.Bytes()) {
			t.Errorf("%s:\n%s", name, b.String())
		}
	}
	var b bytes.Buffer
	must(t, report.Text(&b, &check.Result{}, report.TextOptions{}))
	if b.String() != "nothing found\n" {
		t.Errorf("%q", b.String())
	}
}

// TestCluster: what has no file has a place among objects.
func TestCluster(t *testing.T) {
	const pods = `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n", "uid": "u"},
		"spec": {"containers": [{"name": "c", "resources": {"limits": {"hca": "1"}}}]}}]}`
	set, err := manifest.Load(nil, manifest.Options{Texts: []manifest.Source{{Name: "pods", Data: []byte(pods), Unplaced: true}}})
	must(t, err)
	r := check.Run(set, check.Options{Enable: []string{"NAM009"}})
	var text, sarif bytes.Buffer
	must(t, report.Text(&text, r, report.TextOptions{}))
	must(t, report.SARIF(&sarif, r, tool()))
	const want = `pod n/p: error[NAM009]: pod n/p requests "hca", which has no slash: no device has such a name (at spec.containers[0].resources.limits.hca)`
	if !strings.HasPrefix(text.String(), want+"\n") {
		t.Errorf("%s", text.String())
	}
	if strings.Contains(sarif.String(), "physicalLocation") || !strings.Contains(sarif.String(), `"fullyQualifiedName": "pod/n/p"`) {
		t.Errorf("%s", sarif.String())
	}
}

// TestUnruly: what was read from a file neither ends a line nor steers a terminal.
func TestUnruly(t *testing.T) {
	f := check.Finding{Message: "a\nb\x1b[2J\u009b", Help: "c\rd", Evidence: []string{"e\tf"}, Related: []check.Related{{Text: "g\nh"}}}
	f.Kind = finding.NoSlash()
	var b bytes.Buffer
	must(t, report.Text(&b, &check.Result{Findings: []check.Finding{f}}, report.TextOptions{}))
	const want = "input: error[NAM009]: a b?[2J?\n  input: note: g h\n  evidence: e f\n  help: c d\n1 error\n"
	if b.String() != want {
		t.Errorf("%q", b.String())
	}
}

// TestFingerprint: it stays when lines move, and changes with the object.
func TestFingerprint(t *testing.T) {
	print := func(change func(*check.Finding)) string {
		f := check.Finding{Object: check.Ref{Kind: "Pod", Namespace: "a", Name: "b"}, Resource: "x/y", Message: "m", Place: manifest.Place{File: "f", Line: 1, Column: 1}}
		f.Kind = finding.NoSlash()
		change(&f)
		var b bytes.Buffer
		must(t, report.JSON(&b, &check.Result{Findings: []check.Finding{f}}, tool()))
		var d struct {
			Findings []struct{ Fingerprint string }
		}
		must(t, json.Unmarshal(b.Bytes(), &d))
		return d.Findings[0].Fingerprint
	}
	plain := print(func(*check.Finding) {})
	for what, tt := range map[string]struct {
		change func(*check.Finding)
		same   bool
	}{
		"place":     {func(f *check.Finding) { f.Place = manifest.Place{File: "g", Line: 9} }, true},
		"message":   {func(f *check.Finding) { f.Message = "n" }, true},
		"ID":        {func(f *check.Finding) { f.ID = "NAM010" }, false},
		"object":    {func(f *check.Finding) { f.Object.Name = "c" }, false},
		"namespace": {func(f *check.Finding) { f.Object = check.Ref{Kind: "Pod", Namespace: "ab"} }, false},
		"resource":  {func(f *check.Finding) { f.Resource = "x/z" }, false},
	} {
		if got := print(tt.change); (got == plain) != tt.same || len(got) != 32 {
			t.Errorf("another %s: %s and %s", what, plain, got)
		}
	}
}

// TestWriteError: a full disk is not a clean report.
func TestWriteError(t *testing.T) {
	r := result(t)
	for _, err := range []error{report.Text(full{}, r, report.TextOptions{}), report.JSON(full{}, r, tool()), report.SARIF(full{}, r, tool())} {
		if !errors.Is(err, errFull) {
			t.Errorf("got %v", err)
		}
	}
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
