//go:build !kubernetes134

package exporter

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"sigs.k8s.io/yaml"

	"kata-device-plugin/test/harness"
	"kata-device-plugin/test/kubelet"
	"kata-device-plugin/test/plane"
)

const dashboardFile = "../../deploy/device-exporter/components/dashboard/passthrough-devices.json"

// panels are what the dashboard asks, by the panels' titles.
func panels(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(dashboardFile)
	must(t, err)
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Annotations struct{ List []struct{ Name, Expr string } }
	}
	must(t, json.Unmarshal(data, &d))
	all := map[string][]string{}
	ask := func(title, expr string) {
		all[title] = append(all[title], strings.NewReplacer("$node", ".*", "$resource", ".*").Replace(expr))
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			ask(p.Title, target.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		ask(a.Name, a.Expr)
	}
	if len(all) < 20 {
		t.Fatalf("the dashboard asks only %d things", len(all))
	}
	return all
}

// TestQueries: a real Prometheus scrapes a node of the device plugin, one of the DRA driver, and the driver
// itself. It answers each question of the dashboard and of the rules with something, but for those about
// what is not amiss; and the driver's slices are joined by the node.
func TestQueries(t *testing.T) {
	n, plane1, driver := claimed(t)
	pod := plane1.Pod(t, plane.ClaimPod("train", "two-gpus"))
	plane1.AwaitPhase(t, pod, v1.PodRunning)
	n.await("the pod has two devices", of("train", 2))
	c := newCluster(t)
	c.admit(kubelet.Pod("other", harness.GPU, 2))
	free := slices.DeleteFunc(c.GPUs(), func(id string) bool { return c.holders()[id] != "" })
	c.must(c.Unbind(c.address(free[0])))
	c.right("one is excluded", 7, 7)
	p := startPrometheus(n, target{"device-exporter", "node-2", c.url}, target{"kata-dra-driver", "node-1", driver})
	p.await("all three", `up`, func(got map[string]string) bool {
		return len(got) == 3 && got["device-exporter node-1"]+got["device-exporter node-2"]+got["kata-dra-driver node-1"] == "111"
	}, "job", "node")
	const unpublished = "node:passthrough_dra_slices_unpublished:max"
	p.await("the recorded ones", unpublished, func(got map[string]string) bool { return len(got) == 1 && got["node-1"] == "0" }, "node")
	told := p.query(`max by (node) (passthrough_dra_slices{state="published"})`, "node")
	if want := len(plane1.Slices(t, "vfio.katacontainers.io", "node-1")); told["node-1"] == "0" || told["node-1"] != strconv.Itoa(want) {
		t.Errorf("the driver tells of %v slices, and the API server has %d", told, want)
	}
	if got := p.query(`max by (node) (passthrough_claims{state="Prepared"}) == on (node) max by (node) (passthrough_dra_claims{state="Prepared"})`, "node"); got["node-1"] != "1" {
		t.Errorf("the claims of the exporter and of the driver, joined by the node: %v", got)
	}
	// What is not amiss on these nodes.
	empty := []string{"Contested devices", "Why units are unhealthy", "Alerts"}
	for title, all := range panels(t) {
		for _, expr := range all {
			if !slices.Contains(empty, title) { // an increase needs two scrapes
				p.await("panel "+title, expr, func(got map[string]string) bool { return len(got) > 0 })
			} else if got := p.query(expr); len(got) > 0 {
				t.Errorf("panel %q: %s: the answer is %v", title, expr, got)
			}
		}
	}
	p.rulesAreHealthy()
}

// rulesAreHealthy complains about a rule that Prometheus could not evaluate on what it has scraped.
func (p *prometheus) rulesAreHealthy() {
	p.t.Helper()
	data, err := os.ReadFile(rulesFile)
	must(p.t, err)
	var object struct {
		Spec struct {
			Groups []struct {
				Rules []struct{ Alert, Record, Expr string }
			}
		}
	}
	must(p.t, yaml.Unmarshal(data, &object))
	for _, g := range object.Spec.Groups {
		for _, r := range g.Rules {
			got := p.query(r.Expr) // which fails the test where there is an error
			if r.Record != "" && len(got) == 0 {
				p.t.Errorf("%s records nothing: %s", r.Record, r.Expr)
			}
			if r.Alert != "" && len(got) > 0 {
				p.t.Errorf("%s: nothing is amiss for as long as that, and it would fire: %v", r.Alert, got)
			}
		}
	}
}
