//go:build !kubernetes134

package exporter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"kata-device-plugin/test/harness"
	"kata-device-plugin/test/kubelet"
)

const rulesFile = "../../deploy/device-exporter/components/prometheusrule/prometheusrule.yaml"

// prometheus is one that scrapes an exporter each second, and goes by the project's rules but for
// the time that something has to last, and how old something has to be (hasty). With their own times
// promtool tests them.
type prometheus struct {
	t   *testing.T
	ctx context.Context
	url string
}

// target is what Prometheus scrapes: a program of a job on a node.
type target struct{ job, node, url string }

// startPrometheus starts one for a node, and for more. It ends with the test.
func startPrometheus(n *node, more ...target) *prometheus {
	t := n.t
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("CI has to run this, but there is no prometheus; it comes with the package of that name")
		}
		t.Skip("SKIPPED: there is no prometheus; it comes with the package of that name")
	}
	data, err := os.ReadFile(rulesFile)
	must(t, err)
	var object struct{ Spec any }
	must(t, yaml.Unmarshal(data, &object))
	rules, err := yaml.Marshal(object.Spec)
	must(t, err)
	rules = hasty(t, rules)
	dir := t.TempDir()
	config := "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\nrule_files: [rules.yaml]\nscrape_configs:\n"
	for i, of := range append([]target{{"device-exporter", "node-1", n.url}}, more...) {
		u, err := url.Parse(of.url)
		must(t, err)
		config += fmt.Sprintf(`
  - job_name: %q
    honor_labels: true
    static_configs: [{targets: [%q], labels: {node: %q, pod: "%[1]s-%[4]d", namespace: kube-system, container: %[1]q}}]
    relabel_configs: [{target_label: job, replacement: %[5]q}]
`, fmt.Sprintf("%s-%d", of.job, i), u.Host, of.node, i, of.job)
	}
	must(t, os.WriteFile(filepath.Join(dir, "rules.yaml"), rules, 0o600), os.WriteFile(filepath.Join(dir, "prometheus.yaml"), []byte(config), 0o600))
	out := &log{listening: make(chan string, 1)}
	// What else is started so ends with the test, however that ends.
	server, err := harness.StartPlugin(n.ctx, program, "--config.file="+filepath.Join(dir, "prometheus.yaml"), out,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { must(t, server.Kill()) })
	select {
	case address := <-out.listening:
		return &prometheus{t, n.ctx, "http://" + address}
	case <-server.Exited():
		t.Fatalf("prometheus has ended:\n%s", out)
	case <-n.ctx.Done():
		t.Fatalf("prometheus does not listen:\n%s", out)
	}
	return nil
}

// hasty takes the rules' waiting out, of which a test would take a quarter of an hour: no alert has to last,
// and what has to be older than minutes has to be older than seconds.
func hasty(t *testing.T, rules []byte) []byte {
	t.Helper()
	rules = regexp.MustCompile(`(?m)^\s+for: .*\n`).ReplaceAll(rules, nil)
	for _, old := range []string{"> 900", "> 7200", "> 120"} {
		if !bytes.Contains(rules, []byte(old)) {
			t.Fatalf("no rule has an age %q any more: the test has to follow", old)
		}
		rules = bytes.ReplaceAll(rules, []byte(old), []byte("> 3"))
	}
	return rules
}

// query answers with the values of an expression, by the labels that are asked for.
func (p *prometheus) query(expression string, labels ...string) map[string]string {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.ctx, http.MethodGet, p.url+"/api/v1/query?query="+url.QueryEscape(expression), nil)
	must(p.t, err)
	resp, err := http.DefaultClient.Do(req)
	must(p.t, err)
	defer resp.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); resp.StatusCode == http.StatusServiceUnavailable {
		return nil // it is still starting
	} else if must(p.t, err); answer.Error != "" {
		p.t.Fatalf("%s: %s", expression, answer.Error)
	}
	all := map[string]string{}
	for _, r := range answer.Data.Result {
		var key []string
		for _, l := range labels {
			key = append(key, r.Metric[l])
		}
		all[strings.Join(key, " ")] = fmt.Sprint(r.Value[1])
	}
	return all
}

// await queries until the answer is as it should be.
func (p *prometheus) await(what, expression string, right func(map[string]string) bool, labels ...string) {
	p.t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	ctx, cancel := context.WithTimeout(p.ctx, 30*time.Second)
	defer cancel()
	for {
		got := p.query(expression, labels...)
		if right(got) {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			p.t.Fatalf("%s: %s is %v", what, expression, got)
		}
	}
}

// fires waits for an alert.
func (p *prometheus) fires(alert string) {
	p.t.Helper()
	p.await(alert, `ALERTS{alertstate="firing"}`, func(got map[string]string) bool { return got[alert+" node-1"] == "1" }, "alertname", "node")
}

// TestPrometheus: a real Prometheus makes the records of the numbers, and the alerts of what happens
// to the node, and of nothing else.
func TestPrometheus(t *testing.T) {
	c := newCluster(t)
	c.admit(kubelet.Pod("train", harness.GPU, 3))
	c.right("at first", 8, 8)
	p := startPrometheus(c.node)
	p.await("who has which", "node_pci_address_pod:passthrough_device_allocation_info:max", func(got map[string]string) bool {
		for id := range c.holders() {
			if got[id+" default train c node-1"] != "1" {
				return false
			}
		}
		return len(got) == 3
	}, "pci_address", "namespace", "pod", "container", "node")
	p.await("what is free", "node_resource:passthrough_devices_free:max", func(got map[string]string) bool {
		return got["node-1 nvidia.com/gpu"] == "5" && got["node-1 nvidia.com/nvswitch"] == "4"
	}, "node", "resource")
	if got := p.query("ALERTS", "alertname"); len(got) > 0 {
		t.Errorf("nothing has happened, and there are alerts: %v", got)
	}

	free := slices.DeleteFunc(c.GPUs(), func(id string) bool { return c.holders()[id] != "" })
	c.must(c.Remove(c.address(free[0])))
	p.fires("PassthroughDevicesLost")
	c.must(os.WriteFile(filepath.Join(c.Roots.CDI, "other.json"), []byte("{"), 0o644))
	p.fires("PassthroughSpecRejected")
	c.must(c.Plugin.Kill())
	c.must(os.Remove(filepath.Join(c.Roots.CDI, "kata.nvidia.com-gpu.json")))
	p.fires("PassthroughCDIBroken")
	c.must(c.exporter.Kill())
	p.fires("PassthroughExporterDown")

	fired := p.query(`count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[10m]))`, "alertname")
	for _, alert := range []string{"PassthroughDevicesLost", "PassthroughSpecRejected", "PassthroughCDIBroken", "PassthroughExporterDown"} {
		delete(fired, alert)
	}
	if len(fired) > 0 {
		t.Errorf("these have fired too: %v", fired)
	}
}
