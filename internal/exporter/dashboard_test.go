package exporter

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const dashboardDir = "../../deploy/device-exporter/components/dashboard/"

// panel is a panel of a Grafana dashboard.
type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct {
		Expr       string
		Datasource source
	}
}

type source struct{ UID string }

// dashboard is what of one is looked at.
type dashboard struct {
	Title      string
	Panels     []panel
	Templating struct {
		List []struct{ Name, Definition string }
	}
	Annotations struct{ List []struct{ Expr string } }
}

func readDashboard(t *testing.T) (d dashboard, text string) {
	t.Helper()
	data, err := os.ReadFile(dashboardDir + "passthrough-devices.json")
	must(t, err)
	must(t, json.Unmarshal(data, &d))
	return d, string(data)
}

// TestDashboard: each panel says what it shows, asks the data source that was chosen something that
// Prometheus understands, and lies on no other panel.
func TestDashboard(t *testing.T) {
	d, _ := readDashboard(t)
	taken, ids := map[[2]int]string{}, map[int]bool{}
	var rules []string
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d, %q, has no title or another's ID", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := taken[at]; other != "" || at[0] >= 24 {
					t.Fatalf("%q lies on %q, or beside the dashboard, at %v", p.Title, other, at)
				}
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("%q says nothing, or asks nothing", p.Title)
		}
		for _, target := range p.Targets {
			if target.Datasource.UID != "${datasource}" || !strings.Contains(target.Expr, `node=~"$node"`) {
				t.Errorf("%q asks %q of %q: want the data source and the nodes that were chosen", p.Title, target.Expr, target.Datasource.UID)
			}
			rules = append(rules, fmt.Sprintf("{record: r%d, expr: %q}", len(rules), target.Expr))
		}
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	must(t, os.WriteFile(file, []byte("groups: [{name: dashboard, rules: ["+strings.Join(rules, ", ")+"]}]"), 0o600))
	promtool(t, nil, "check", "rules", file)
}

// TestDashboardIsFound: it is in a ConfigMap with the label that Grafana's sidecar looks for.
func TestDashboardIsFound(t *testing.T) {
	data, err := os.ReadFile(dashboardDir + "kustomization.yaml")
	must(t, err)
	var k struct {
		ConfigMapGenerator []struct {
			Files   []string
			Options struct{ Labels map[string]string }
		}
	}
	must(t, yaml.Unmarshal(data, &k))
	if len(k.ConfigMapGenerator) != 1 {
		t.Fatalf("%+v", k)
	}
	of := k.ConfigMapGenerator[0]
	if len(of.Files) != 1 || of.Files[0] != "passthrough-devices.json" || of.Options.Labels["grafana_dashboard"] != "1" {
		t.Errorf("%+v", of)
	}
}

// TestNobodyBillsMonitors: who only looks at a device, by a claim with adminAccess, is not counted with those that
// hold it, and where all are listed it can be told.
func TestNobodyBillsMonitors(t *testing.T) {
	var all []string
	rules, _ := readRules(t)
	for _, r := range rules {
		all = append(all, r.Expr)
	}
	d, _ := readDashboard(t)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	const of = prefix + "device_allocation_info"
	used := 0
	for _, e := range all {
		if !strings.Contains(e, of) {
			continue
		}
		used++
		if !strings.Contains(e, `admin_access!="true"`) && !strings.Contains(e, "admin_access)") {
			t.Errorf("%s does not tell who only looks", e)
		}
	}
	if used < 3 {
		t.Errorf("%d expressions are about who has what", used)
	}
}
