package exporter

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"

	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/nodestate"
)

// TestContract: what is promised is well-formed, and no promise is made twice.
func TestContract(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Contract() {
		if seen[m.Name] {
			t.Errorf("%s is there twice", m.Name)
		}
		seen[m.Name] = true
		if !strings.HasPrefix(m.Name, prefix) || !strings.HasSuffix(m.Help, ".") || (m.Type == Counter) != strings.HasSuffix(m.Name, "_total") {
			t.Errorf("%+v", m)
		}
		for _, s := range m.Needs {
			if !slices.Contains(nodestate.Sources(), s) {
				t.Errorf("%s needs the source %s, which there is not", m.Name, s)
			}
		}
		for _, label := range m.Labels {
			if label == "pod_uid" || strings.Contains(label, "message") {
				t.Errorf("%s has the label %s, which has no bound", m.Name, label)
			}
		}
	}
}

// TestContractIsKept: every series of the golden files is promised, with its labels; and every
// promise is kept in one of them, but for what needs a flag.
func TestContractIsKept(t *testing.T) {
	files, err := os.ReadDir("testdata")
	must(t, err)
	promised := map[string]Metric{}
	for _, m := range Contract() {
		promised[m.Name] = m
	}
	kept := map[string]bool{"passthrough_pod_uids": true} // TestPodUID
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".prom") {
			continue
		}
		data, err := os.ReadFile("testdata/" + f.Name())
		must(t, err)
		for line := range strings.Lines(string(data)) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			name, rest, _ := strings.Cut(line, "{")
			name, _, _ = strings.Cut(name, " ")
			m, ok := promised[name]
			if !ok {
				t.Errorf("%s is not promised", name)
			}
			kept[name] = true
			for _, label := range m.Labels {
				if !strings.Contains(rest, label+"=\"") {
					t.Errorf("%s lacks %s: %s", name, label, line)
				}
			}
		}
	}
	for name := range promised {
		if !kept[name] {
			t.Errorf("%s is promised, and nowhere to be seen", name)
		}
	}
}

// TestDocumented: the table in the document is the contract, word for word.
func TestDocumented(t *testing.T) {
	const file, begin, end = "../../docs/exporter.md", "<!-- metrics: begin -->\n", "<!-- metrics: end -->"
	data, err := os.ReadFile(file)
	must(t, err)
	before, rest, ok := strings.Cut(string(data), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between %q and %q", file, begin, end)
	}
	if golden.FlagUpdate() {
		must(t, os.WriteFile(file, []byte(before+begin+Markdown()+end+after), 0o644))
		return
	}
	if diff := cmp.Diff(Markdown(), got); diff != "" {
		t.Errorf("%s (go test -update writes it; -want +got):\n%s", file, diff)
	}
}

// TestManifestsUseTheContract: what alerts, recordings and documents name is promised.
func TestManifestsUseTheContract(t *testing.T) {
	promised := map[string]bool{}
	for _, m := range Contract() {
		promised[m.Name] = true
	}
	driver, err := os.ReadFile("../../docs/dra.md") // which a test of its own holds to the code
	must(t, err)
	for _, row := range regexp.MustCompile("(?m)^\\| `(passthrough_dra_[a-z_]+)` \\| (?:gauge|counter) \\|").FindAllStringSubmatch(string(driver), -1) {
		promised[row[1]] = true
	}
	books, err := filepath.Glob("../../docs/runbooks/*.md")
	must(t, err)
	for _, file := range append(books, rulesFile, dashboardDir+"passthrough-devices.json", "../../docs/exporter.md") {
		data, err := os.ReadFile(file)
		must(t, err)
		names := regexp.MustCompile(`(?:^|[^a-z_:])(passthrough_[a-z_]+)`).FindAllStringSubmatch(string(data), -1)
		if len(names) < 10 && !slices.Contains(books, file) {
			t.Errorf("%s names only %d metrics", file, len(names))
		}
		for _, name := range names {
			if !promised[name[1]] {
				t.Errorf("%s names %s, which nobody promises", file, name[1])
			}
		}
	}
}

// TestIntrospect: the contract as people and as programs read it.
func TestIntrospect(t *testing.T) {
	var out bytes.Buffer
	must(t, introspect([]string{"metrics", "-o", "json"}, &out))
	var got []Metric
	must(t, json.Unmarshal(out.Bytes(), &got))
	if diff := cmp.Diff(Contract(), got); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	must(t, introspect([]string{"metrics"}, &out))
	if lines := strings.Count(out.String(), "\n"); lines != len(Contract())+1 {
		t.Errorf("%d lines:\n%s", lines, out.String())
	}
	for _, args := range [][]string{nil, {"labels"}, {"metrics", "-o", "xml"}, {"metrics", "more"}, {"metrics", "-x"}} {
		if err := introspect(args, &out); err == nil || !strings.Contains(err.Error(), "introspect") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestNamesOfOthers: names that are known here are those of the packages that they belong to, which
// the exporter's state does not import since it has to work everywhere.
func TestNamesOfOthers(t *testing.T) {
	want := []string{nodestate.Damaged, string(claim.Preparing), string(claim.Prepared), string(claim.Unpreparing)}
	if got := nodestate.ClaimStates(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
