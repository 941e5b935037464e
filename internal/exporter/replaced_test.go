package exporter

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/internal/nodestate"
	"kata-device-plugin/internal/sim"
)

// TestReplaced: of an address at which another device is now the one before is told no more, whoever has it
// to kubelet; and of one at which there is none, nothing but who has it.
func TestReplaced(t *testing.T) {
	n := simple(t)
	a := address(t, n.GPUs()[0])
	at := slices.IndexFunc(n.Functions(), func(f sim.Function) bool { return f.Address() == a })
	other := n.Functions()[at]
	told := func(when string, texts ...string) {
		t.Helper()
		var all []string
		for _, line := range n.series("device_info") {
			if strings.Contains(line, a.String()) {
				all = append(all, line)
			}
		}
		if len(all) != 1 || slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(all[0], text) }) {
			t.Errorf("%s: %v, want one with %v", when, all, texts)
		}
		if held := n.series("device_allocation_info"); len(held) != 1 || !strings.Contains(held[0], a.String()) {
			t.Errorf("%s: %v", when, held)
		}
	}
	told("at first", `product="0x2330"`, `driver="vfio-pci"`, `type="gpu"`)
	must(t, n.Unbind(a), n.Remove(a))
	n.pass(time.Second)
	told("while it is away", `product=""`, `driver=""`, `type="unknown"`)
	other.Device, other.Driver = 0x2335, ""
	must(t, n.Add(other))
	n.pass(time.Second)
	told("another one", `product="0x2335"`, `driver=""`)
	must(t, n.Bind(a, "vfio-pci"))
	n.pass(time.Second)
	told("bound", `product="0x2335"`, `driver="vfio-pci"`, `resource="nvidia.com/gpu"`)
}

// TestAllocatableAway: kubelet answers one question and not the other. What rests on the other goes, and
// nothing else.
func TestAllocatableAway(t *testing.T) {
	n := simple(t)
	n.kubelet.set(func() { n.kubelet.silent = true })
	for range 3 {
		n.time = n.time.Add(40 * time.Second)
		n.ask()
		n.look()
	}
	for _, name := range []string{"resource_allocatable", "resource_free", "device_allocatable", "resource_contested_devices"} {
		if n.has(name) {
			t.Errorf("%s is told: %v", name, n.series(name))
		}
	}
	if got := n.sourcesWith("source_stale", "1"); !slices.Equal(got, sources(nodestate.Allocatable)) || !n.has("resource_allocated") || !n.has("device_allocation_info") {
		t.Errorf("old are %v", got)
	}
}

// TestRulesBroken: the rules of NICs that were read last go on, as they do in the plugin, and that they are old is
// told.
func TestRulesBroken(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.json")
	must(t, os.WriteFile(config, []byte(pools), 0o600))
	n := newNode(t, platform(t, "sriov-cpu"), func(o *Options) { o.NICs = []string{config} })
	n.kubelet.set(func() { n.kubelet.pods = []*api.PodResources{} })
	n.pass(0)
	before := n.series("devices")
	must(t, os.WriteFile(config, []byte(pools[:len(pools)/2]), 0o600))
	for range 3 {
		n.pass(40 * time.Second)
	}
	n.want("devices", before...)
	if old := n.sourcesWith("source_stale", "1"); !slices.Equal(old, sources(nodestate.NICRules)) {
		t.Errorf("old are %v", old)
	}
	must(t, os.WriteFile(config, []byte(`{"resourceList": []}`), 0o600))
	n.pass(time.Second)
	if again := n.series("devices"); slices.Equal(before, again) || len(n.sourcesWith("source_stale", "1")) > 0 {
		t.Errorf("the new rules are not told: %v", again)
	}
}
