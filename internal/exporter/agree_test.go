package exporter

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/internal/nodestate"
)

// agree wants each row of the page to tell of its function what the metrics do.
func (n *node) agree(when string) {
	n.t.Helper()
	rows := map[string]string{}
	row := regexp.MustCompile(`<th scope="row">([0-9a-f:.]+)</th><td><span class="state">([a-z ]+)</span>`)
	for _, m := range row.FindAllStringSubmatch(n.get("/").Body.String(), -1) {
		rows[m[1]] = m[2]
	}
	words := map[nodestate.FunctionState]string{
		nodestate.Healthy: "healthy", nodestate.Unhealthy: "unhealthy", nodestate.Excluded: "not declared", nodestate.Foreign: "not ours",
	}
	told := 0
	for _, f := range n.e.collector.view.Load().state.Functions {
		if got, ok := rows[f.Address.String()]; ok {
			told++
			if got != words[f.State] {
				n.t.Errorf("%s: %s is %s on the page, and %s in the metrics", when, f.Address, got, words[f.State])
			}
		}
	}
	if told == 0 {
		n.t.Errorf("%s: the page has no function of the metrics", when)
	}
}

// TestPageAndMetricsAgree: what is declared is judged by what was before and by who has what. The page judges by the same,
// also while kubelet does not answer.
func TestPageAndMetricsAgree(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.json")
	must(t, os.WriteFile(config, []byte(`{"resourceList": [{"resourceName": "rdma", "selectors": {"isRdma": true}}]}`), 0o600))
	n := newNode(t, platform(t, "sriov-cpu"), func(o *Options) { o.NICs = []string{config} })
	n.pass(0)
	const resource = "intel.com/rdma"
	var ids []string
	for _, u := range n.e.collector.view.Load().state.Units {
		if u.Resource == resource {
			ids = append(ids, u.ID)
		}
	}
	if len(ids) == 0 {
		t.Fatal("no device is declared")
	}
	held := ids[len(ids)-1]
	n.kubelet.set(func() {
		n.kubelet.offers = map[string][]string{resource: ids}
		n.kubelet.pods = []*api.PodResources{pod("cnf", "upf", container("main", n.kubelet.devices(resource, held)))}
	})
	n.checkpoint(map[string][]string{resource: ids}, given{PodUID: "u-1", ContainerName: "main", ResourceName: resource, DeviceIDs: map[string][]string{"0": {held}}})
	n.pass(time.Second)
	n.agree("at first")
	must(t, n.MoveToPod(held, true))
	n.pass(time.Second)
	n.agree("in a pod")
	n.stop()
	for range 3 {
		n.time = n.time.Add(40 * time.Second)
		n.ask()
		n.look()
		n.agree("without kubelet")
	}
	must(t, os.Remove(n.CheckpointPath()), os.Mkdir(n.CheckpointPath(), 0o700))
	for range 3 {
		n.time = n.time.Add(40 * time.Second)
		n.look()
		n.agree("without kubelet's record, too")
	}
}
