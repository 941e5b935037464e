package exporter

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/internal/pci"
)

// simple is a node on which one pod has one GPU.
func simple(t *testing.T) *node {
	t.Helper()
	n := newNode(t, platform(t, "hgx-h100"), nil)
	all := n.GPUs()
	n.kubelet.set(func() {
		n.kubelet.offers = map[string][]string{gpu: all, "nvidia.com/nvswitch": n.NVSwitches()}
		n.kubelet.pods = []*api.PodResources{pod("ml", "one", container("main", n.kubelet.devices(gpu, all[0])))}
	})
	n.pass(0)
	return n
}

func (n *node) has(name string) bool { return len(n.series(name)) > 0 }

// TestKubeletAway: while kubelet is away its last answer stands, marked; when that is too old
// nothing is told of what rests on it, never a zero. The hardware is told all the while.
func TestKubeletAway(t *testing.T) {
	n := simple(t)
	for range 3 {
		n.stop()
		n.time = n.time.Add(60 * time.Second)
		if n.ask() {
			t.Fatal("kubelet answered while it was away")
		}
		n.look()
		n.want("resource_allocated", `{resource="nvidia.com/gpu"} 1`, `{resource="nvidia.com/nvswitch"} 0`)
		if got := n.series("source_up"); got[0] != `{source="allocatable"} 0` {
			t.Errorf("source_up: %v", got)
		}
		n.time = n.time.Add(31 * time.Second)
		// Also without another look: what is told depends on when it is asked for.
		for _, name := range []string{"resource_allocated", "resource_allocatable", "device_allocation_info", "device_allocatable", "allocations_not_released"} {
			if n.has(name) {
				t.Errorf("%s is told of an answer that is too old: %v", name, n.series(name))
			}
		}
		n.look()
		if n.has("resource_allocated") || n.has("device_allocatable") || !n.has("device_healthy") || !n.has("devices") {
			t.Error("what rests on kubelet is told, or what does not is not")
		}
		n.want("source_stale", `{source="allocatable"} 1`, `{source="cdi_specs"} 0`, `{source="hardware"} 0`,
			`{source="locks"} 0`, `{source="plugin_sockets"} 0`, `{source="pod_resources"} 1`)
		n.startKubelet()
		n.pass(time.Second) // the first question after its return is answered
		n.want("resource_allocated", `{resource="nvidia.com/gpu"} 1`, `{resource="nvidia.com/nvswitch"} 0`)
	}
}

// TestNeverAnswered: a kubelet that was never there took no time for its answers, and before the first look
// nothing was looked at.
func TestNeverAnswered(t *testing.T) {
	n := newNode(t, platform(t, "workstation"), nil)
	for _, name := range []string{"look_duration_seconds", "state_timestamp_seconds", "kubelet_answer_duration_seconds"} {
		if n.has(name) {
			t.Errorf("%s is told before anything was looked at", name)
		}
	}
	n.stop()
	n.ask()
	n.look()
	for _, name := range []string{"kubelet_answer_duration_seconds", "resource_allocated", "resource_free", "allocations_not_released"} {
		if n.has(name) {
			t.Errorf("%s is told of a kubelet that has never answered", name)
		}
	}
	n.startKubelet()
	n.pass(time.Second)
	if !n.has("kubelet_answer_duration_seconds") || !n.has("look_duration_seconds") {
		t.Error("not told once it has answered")
	}
}

// TestKubeletForgets: after a restart of kubelet the plugin has not registered yet. That nothing is
// allocatable is an answer, and pods keep what they have.
func TestKubeletForgets(t *testing.T) {
	n := simple(t)
	n.stop()
	n.kubelet.set(func() { n.kubelet.offers = nil })
	n.startKubelet()
	n.pass(10 * time.Second)
	n.want("resource_allocatable", `{resource="nvidia.com/gpu"} 0`, `{resource="nvidia.com/nvswitch"} 0`)
	n.want("resource_allocated", `{resource="nvidia.com/gpu"} 1`, `{resource="nvidia.com/nvswitch"} 0`)
}

// TestStartedTogether: a kubelet that has just started does not have its pods yet, and an exporter that has as well
// has no answer to hold that against. That nobody has a device is not told of what kubelet's record gives to
// somebody.
func TestStartedTogether(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"), nil)
	all := n.GPUs()
	n.kubelet.set(func() { n.kubelet.offers = map[string][]string{gpu: all} })
	n.checkpoint(map[string][]string{gpu: all}, entry("u-1", "main", all[0]))
	must(t, os.Chtimes(n.socket(), n.time, n.time))
	for range 3 {
		n.time = n.time.Add(2 * time.Second)
		if n.ask() {
			t.Error("an answer without the pods counts")
		}
		n.look()
		for _, name := range []string{"resource_allocated", "resource_free", "device_allocation_info"} {
			if n.has(name) {
				t.Errorf("%s is told: %v", name, n.series(name))
			}
		}
	}
	if got := n.series("source_up"); !slices.Contains(got, `{source="pod_resources"} 0`) {
		t.Errorf("source_up: %v", got)
	}
	n.kubelet.set(func() {
		n.kubelet.pods = []*api.PodResources{pod("ml", "one", container("main", n.kubelet.devices(gpu, all[0])))}
	})
	n.pass(2 * time.Second)
	n.want("resource_allocated", `{resource="nvidia.com/gpu"} 1`, `{resource="nvidia.com/nvswitch"} 0`)
}

// TestHardwareUnread: a directory that cannot be listed leaves what was known, for a while.
func TestHardwareUnread(t *testing.T) {
	n := simple(t)
	fail := func() {
		s := *n.last
		s.Unread = []error{errors.New("list /sys/class/vfio-dev: input/output error")}
		n.e.observed(&s, n.time)
		n.e.join(0, n.time)
	}
	n.time = n.time.Add(time.Minute)
	fail()
	if !n.has("devices") {
		t.Error("one look that fails took everything away")
	}
	n.time = n.time.Add(time.Minute)
	n.ask()
	fail()
	for _, name := range []string{"devices", "device_info", "device_healthy", "findings", "cdi_devices"} {
		if n.has(name) {
			t.Errorf("%s is told of hardware that nobody could read for two minutes", name)
		}
	}
	if !n.has("device_allocation_info") {
		t.Error("who has which device is not told, though kubelet says so")
	}
	turned := n.series("device_health_transitions_total")
	n.pass(time.Second)
	if !n.has("devices") {
		t.Error("not told again")
	}
	// Nothing has turned in the dark.
	n.want("device_health_transitions_total", turned...)
}

// TestCheckpointBroken: a record that cannot be read is not an empty one.
func TestCheckpointBroken(t *testing.T) {
	n := simple(t)
	n.checkpoint(map[string][]string{gpu: n.GPUs()})
	n.pass(time.Second)
	registered := []string{`{resource="nvidia.com/gpu"} 1`, `{resource="nvidia.com/nvswitch"} 0`}
	n.want("kubelet_registered", registered...)
	must(t, os.WriteFile(n.CheckpointPath()+".new", []byte(`{"Data":`), 0o600), os.Rename(n.CheckpointPath()+".new", n.CheckpointPath()))
	n.pass(time.Minute)
	n.want("kubelet_registered", registered...)
	n.pass(time.Minute)
	n.want("kubelet_registered")
	must(t, os.Remove(n.CheckpointPath()))
	n.pass(time.Second)
	n.want("kubelet_registered", `{resource="nvidia.com/gpu"} 0`, `{resource="nvidia.com/nvswitch"} 0`)
}

// TestClaimsUnread: nor is a directory that is not the driver's own.
func TestClaimsUnread(t *testing.T) {
	n := simple(t)
	if n.has("claims") {
		t.Error("claims are counted where there is no driver")
	}
	n.record(n.prepared("c", "x", "gpu", n.GPUs()[0]))
	n.pass(time.Second)
	if !n.has("claims") {
		t.Error("claims are not counted")
	}
	dir := filepath.Join(n.e.options.Kubelet, "plugins/vfio.katacontainers.io/claims")
	must(t, os.Chmod(dir, 0o755))
	n.pass(2 * time.Minute)
	if n.has("claims") {
		t.Error("claims are counted of records that were not read")
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the exporter changed the driver's directory: %v %v", info.Mode(), err)
	}
}

// TestTransitions: each turn of a device counts as its own, also one that is over when the next scrape comes,
// and what was counted of one that has gone stays.
func TestTransitions(t *testing.T) {
	n := simple(t)
	flaps, leaves := address(t, n.GPUs()[2]), address(t, n.GPUs()[3])
	for range 3 {
		must(t, n.Unbind(flaps))
		n.pass(time.Second)
		must(t, n.Bind(flaps, "vfio-pci"))
		n.pass(time.Second)
	}
	must(t, n.Unbind(leaves), n.Remove(leaves))
	n.pass(time.Second)
	want := map[string]string{
		series(flaps, "healthy"): "3", series(flaps, "unhealthy"): "3", series(leaves, "healthy"): "0", series(leaves, "unhealthy"): "1",
	}
	all := n.series("device_health_transitions_total")
	if len(all) != 2*(8+4) {
		t.Errorf("%d series of 8 GPUs and 4 NVSwitches", len(all))
	}
	for _, line := range all {
		name, value, _ := strings.Cut(line, " ")
		if value != cmp.Or(want[name], "0") {
			t.Errorf("%s, want %s", line, cmp.Or(want[name], "0"))
		}
	}
}

// series are the labels of the turns of a GPU.
func series(a pci.Address, to string) string {
	return fmt.Sprintf(`{pci_address="%s",resource="nvidia.com/gpu",to="%s"}`, a, to)
}
