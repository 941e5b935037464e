package exporter

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const rulesFile = "../../deploy/device-exporter/components/prometheusrule/prometheusrule.yaml"

// rule is a recording rule or an alert.
type rule struct {
	Alert, Record, Expr string
	Labels, Annotations map[string]string
}

// readRules reads the rules, and the file as a Prometheus without the operator has it.
func readRules(t *testing.T) (rules []rule, file []byte) {
	t.Helper()
	data, err := os.ReadFile(rulesFile)
	must(t, err)
	var object struct{ Spec any }
	must(t, yaml.Unmarshal(data, &object))
	file, err = yaml.Marshal(object.Spec)
	must(t, err)
	var spec struct{ Groups []struct{ Rules []rule } }
	must(t, yaml.Unmarshal(file, &spec))
	for _, g := range spec.Groups {
		rules = append(rules, g.Rules...)
	}
	return rules, file
}

// promtool runs Prometheus's own checker.
func promtool(t *testing.T, stdin []byte, args ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("CI has to run this, but there is no promtool; it comes with the package prometheus")
		}
		t.Skip("SKIPPED: there is no promtool; it comes with the package prometheus")
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args[:2], " "), err, out)
	}
}

// TestRules: Prometheus takes the rules, and each alert fires when it should and not when it should
// not.
func TestRules(t *testing.T) {
	_, file := readRules(t)
	dir := t.TempDir()
	rules := filepath.Join(dir, "rules.yaml")
	must(t, os.WriteFile(rules, file, 0o600))
	promtool(t, nil, "check", "rules", rules)
	for _, name := range scenarioFiles(t) {
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata/rules", name))
			must(t, err)
			copied := filepath.Join(dir, name)
			must(t, os.WriteFile(copied, data, 0o600))
			promtool(t, nil, "test", "rules", copied)
		})
	}
}

func scenarioFiles(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("testdata/rules")
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestMetricsCheck: promtool has nothing to say of what a scrape gets.
func TestMetricsCheck(t *testing.T) {
	files, err := filepath.Glob("testdata/*.prom")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("there are no golden files")
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		promtool(t, data, "check", "metrics")
	}
}

// TestEveryAlert: an alert has a scenario in which it fires and one in which it does not, a runbook,
// a severity, and words that say on which node. What there is no alert for is not there.
func TestEveryAlert(t *testing.T) {
	rules, _ := readRules(t)
	scenarios, books := map[string]bool{}, map[string]bool{}
	for _, name := range scenarioFiles(t) {
		scenarios[strings.TrimSuffix(name, ".yaml")] = true
	}
	entries, err := os.ReadDir("../../docs/runbooks")
	must(t, err)
	for _, e := range entries {
		if e.Name() != "README.md" {
			books[strings.TrimSuffix(e.Name(), ".md")] = true
		}
	}
	doc, err := os.ReadFile("../../docs/exporter.md")
	must(t, err)
	for _, r := range rules {
		if r.Alert == "" {
			continue
		}
		if row := "| [" + r.Alert + "](runbooks/" + r.Alert + ".md) | " + r.Labels["severity"] + " | "; !strings.Contains(string(doc), row) {
			t.Errorf("docs/exporter.md has no %q", row)
		}
		if !scenarios[r.Alert] || !books[r.Alert] {
			t.Errorf("%s: testdata/rules/%[1]s.yaml is there: %t, docs/runbooks/%[1]s.md: %t", r.Alert, scenarios[r.Alert], books[r.Alert])
		}
		delete(scenarios, r.Alert)
		delete(books, r.Alert)
		if want := "docs/runbooks/" + r.Alert + ".md"; r.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url %q, want %q", r.Alert, r.Annotations["runbook_url"], want)
		}
		if s := r.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s: severity %q", r.Alert, s)
		}
		if !strings.Contains(r.Annotations["summary"], "{{ $labels.node }}") || r.Annotations["description"] == "" {
			t.Errorf("%s: %q does not say on which node, or has no description", r.Alert, r.Annotations["summary"])
		}
	}
	for _, left := range []map[string]bool{scenarios, books} {
		for _, name := range slices.Sorted(maps.Keys(left)) {
			t.Errorf("there is a scenario or a runbook for %s, and no such alert", name)
		}
	}
}

// scenarios is a file of promtool's tests.
type scenarios struct {
	Tests []struct {
		Name   string
		Series []struct{ Series string } `json:"input_series"`
		Alerts []struct {
			Alert    string `json:"alertname"`
			Expected []any  `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	}
}

// TestScenarios: no file shows only that an alert fires, or only that it does not.
func TestScenarios(t *testing.T) {
	for _, name := range scenarioFiles(t) {
		data, err := os.ReadFile(filepath.Join("testdata/rules", name))
		must(t, err)
		var file scenarios
		must(t, yaml.Unmarshal(data, &file))
		fires, rests := false, false
		for _, test := range file.Tests {
			fired := false
			for _, a := range test.Alerts {
				fired = fired || len(a.Expected) > 0
				if a.Alert+".yaml" != name {
					t.Errorf("%s: %s is about %s", name, test.Name, a.Alert)
				}
			}
			fires, rests = fires || fired, rests || !fired && len(test.Alerts) > 0
			for _, s := range test.Series {
				asExported(t, name, s.Series)
			}
		}
		if !fires || !rests {
			t.Errorf("%s: a scenario in which it fires: %t, one in which it never does: %t", name, fires, rests)
		}
	}
}

// asExported wants a series to have the labels that the exporter gives it, and those that Prometheus
// adds.
func asExported(t *testing.T, file, series string) {
	t.Helper()
	name, rest, ok := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	want := []string{"node", "pod"}
	if at := slices.IndexFunc(Contract(), func(m Metric) bool { return m.Name == name }); at >= 0 {
		want = append(want, Contract()[at].Labels...)
	} else if want = append(want, "job"); name != "up" {
		t.Errorf("%s: nobody promises %s", file, name)
	}
	var got []string
	for _, l := range regexp.MustCompile(`([a-z_]+)="[^"]*"`).FindAllStringSubmatch(rest, -1) {
		got = append(got, l[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if !ok || !slices.Equal(got, want) {
		t.Errorf("%s: %s has the labels %v, want %v", file, name, got, want)
	}
}
