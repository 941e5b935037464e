//go:build !kubernetes134

package exporter

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kata-device-plugin/test/harness"
	"kata-device-plugin/test/kubelet"
)

// cluster is a node with kubelet, the plugin and the exporter, and the pods that it should have.
type cluster struct {
	*node
	pods map[string]*v1.Pod // by name
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{newNode(t, "hgx-h100"), map[string]*v1.Pod{}}
	c.startKubelet()
	c.must(c.StartPlugin(c.ctx))
	c.must(c.AwaitAll(c.ctx))
	c.startExporter()
	return c
}

func (c *cluster) admit(pod *v1.Pod) {
	c.t.Helper()
	c.must(c.Kubelet.Admit(c.ctx, pod))
	c.pods[pod.Name] = pod
}

func (c *cluster) remove(name string) {
	c.Kubelet.Remove(c.pods[name])
	delete(c.pods, name)
}

// holders are who has which GPU, by kubelet's own device manager: sidecars as well, but not init
// containers that are over.
func (c *cluster) holders() map[string]string {
	all := map[string]string{}
	for name, pod := range c.pods {
		containers := slices.Clone(pod.Spec.Containers)
		for _, init := range pod.Spec.InitContainers {
			if init.RestartPolicy != nil {
				containers = append(containers, init)
			}
		}
		for _, container := range containers {
			for _, id := range c.Kubelet.Allocated(pod, container.Name, harness.GPU) {
				all[id] = name + "/" + container.Name
			}
		}
	}
	return all
}

// told are who has which GPU, by the metrics.
func told(m metrics) map[string]string {
	all := map[string]string{}
	for series := range m {
		labels, ok := strings.CutPrefix(series, "device_allocation_info")
		if !ok {
			continue
		}
		value := map[string]string{}
		for label := range strings.SplitSeq(strings.Trim(labels, "{}"), ",") {
			name, text, _ := strings.Cut(label, "=")
			value[name] = strings.Trim(text, `"`)
		}
		if value["resource"] == harness.GPU {
			all[value["pci_address"]] += value["pod"] + "/" + value["container"]
		}
	}
	return all
}

// right waits until the metrics have each holder and the numbers that follow, of so many GPUs.
func (c *cluster) right(when string, healthy, allocatable int) {
	c.t.Helper()
	c.await(when, func(m metrics) string {
		if want, got := c.holders(), told(m); !maps.Equal(got, want) {
			return fmt.Sprintf("told %v, kubelet has %v", got, want)
		}
		free := allocatable
		for id := range c.holders() {
			if slices.Contains(c.Kubelet.Allocatable(harness.GPU), id) {
				free--
			}
		}
		for series, want := range map[string]int{
			`devices{resource="nvidia.com/gpu",state="discovered"}`: 8,
			`devices{resource="nvidia.com/gpu",state="healthy"}`:    healthy,
			`devices{resource="nvidia.com/gpu",state="excluded"}`:   8 - healthy,
			`devices{resource="nvidia.com/gpu",state="unhealthy"}`:  0,
			`resource_allocatable{resource="nvidia.com/gpu"}`:       allocatable,
			`resource_allocated{resource="nvidia.com/gpu"}`:         len(c.holders()),
			`resource_free{resource="nvidia.com/gpu"}`:              free,
			`resource_allocated{resource="nvidia.com/nvswitch"}`:    0,
			`source_up{source="pod_resources"}`:                     1,
			`cdi_devices{kind="nvidia.com/gpu",state="missing"}`:    0,
		} {
			if got, ok := m[series]; !ok || got != float64(want) {
				return fmt.Sprintf("%s is %v, want %d", series, got, want)
			}
		}
		return ""
	})
}

// TestPodsComeAndGo: whatever comes and goes, the metrics have what kubelet has.
func TestPodsComeAndGo(t *testing.T) {
	c := newCluster(t)
	c.right("at first", 8, 8)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for step := range 8 {
		for range 1 + random.IntN(4) {
			free := int64(8 - len(c.holders()))
			if names := slices.Sorted(maps.Keys(c.pods)); len(names) > 0 && (free == 0 || random.IntN(2) == 0) {
				c.remove(names[random.IntN(len(names))])
				continue
			}
			c.admit(kubelet.Pod(fmt.Sprintf("pod-%d-%d", step, random.Uint32()), harness.GPU, 1+random.Int64N(min(free, 3))))
		}
		c.right(fmt.Sprintf("step %d", step), 8, 8)
	}
}

// TestContainers: a sidecar has what it has for itself; a plain init container has nothing once it is
// over, and its device is the main container's.
func TestContainers(t *testing.T) {
	c := newCluster(t)
	pod := kubelet.Pod("many", harness.GPU, 2)
	one := kubelet.Pod("", harness.GPU, 1).Spec.Containers[0].Resources
	always := v1.ContainerRestartPolicyAlways
	pod.Spec.InitContainers = []v1.Container{{Name: "sidecar", Resources: one, RestartPolicy: &always}, {Name: "init", Resources: one}}
	pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "second", Resources: one})
	c.admit(pod)
	if got := len(c.holders()); got != 4 {
		t.Fatalf("kubelet gave out %d", got)
	}
	c.right("a pod of many containers", 8, 8)
	c.remove("many")
	c.right("it has gone", 8, 8)
}

// TestDevicesLeave: a GPU leaves that nobody has, and one that a pod has, which keeps it.
func TestDevicesLeave(t *testing.T) {
	c := newCluster(t)
	c.admit(kubelet.Pod("train", harness.GPU, 3))
	c.right("three are taken", 8, 8)
	var held, free string
	for _, id := range c.GPUs() {
		if c.holders()[id] == "" {
			free = id
		} else {
			held = id
		}
	}
	c.must(c.Unbind(c.address(free)))
	c.right("a free one is unbound", 7, 7)
	c.must(c.UnbindBusy(c.address(held)))
	c.right("one that is in use is unbound", 6, 6)
	c.must(c.Release(c.address(held)))
	c.must(c.Bind(c.address(held), "vfio-pci"))
	c.must(c.Bind(c.address(free), "vfio-pci"))
	c.right("both are back", 8, 8)
	m := c.scrape()
	for _, to := range []string{"healthy", "unhealthy"} {
		for _, id := range []string{free, held} {
			if got := m[`device_health_transitions_total{pci_address="`+id+`",resource="nvidia.com/gpu",to="`+to+`"}`]; got != 1 {
				t.Errorf("%s turned %s %v times, want once", id, to, got)
			}
		}
	}
}

// TestRestarts: kubelet, the plugin and the exporter itself come back, and so do the numbers. What
// is not known meanwhile is said, and is not 0.
func TestRestarts(t *testing.T) {
	c := newCluster(t)
	c.admit(kubelet.Pod("train", harness.GPU, 3))
	c.right("at first", 8, 8)
	want := c.holders()
	c.must(c.Kubelet.Stop())
	m := c.await("kubelet is away", is(`source_up{source="pod_resources"}`, 0))
	if !maps.Equal(told(m), want) || m[`source_stale{source="pod_resources"}`] != 0 {
		t.Errorf("kubelet is away for a moment, and the metrics have %v, want %v", told(m), want)
	}
	c.Options.Running = slices.Collect(maps.Values(c.pods))
	c.startKubelet()
	c.must(c.AwaitAll(c.ctx))
	c.right("kubelet is back", 8, 8)
	if !maps.Equal(c.holders(), want) {
		t.Errorf("the pod has %v, had %v", c.holders(), want)
	}

	c.await("the plugin runs", is(`resource_owner_info{owner="device_plugin",resource="nvidia.com/gpu"}`, 1))
	c.must(c.Plugin.Kill())
	c.must(c.Kubelet.Await(c.ctx, func() bool { return len(c.Kubelet.Allocatable(harness.GPU)) == 0 }))
	c.right("the plugin was killed", 8, 0)
	m = c.await("its socket is dead", is(`kubelet_plugin_sockets{resource="nvidia.com/gpu",state="listening"}`, 0))
	if m[`resource_owner_info{owner="nobody",resource="nvidia.com/gpu"}`] != 1 || m[`kubelet_plugin_sockets{resource="nvidia.com/gpu",state="dead"}`] != 1 {
		t.Errorf("the plugin was killed:\n%s", m)
	}
	c.must(c.StartPlugin(c.ctx))
	c.must(c.AwaitAll(c.ctx))
	c.right("the plugin is back", 8, 8)
	c.await("and listens", is(`kubelet_plugin_sockets{resource="nvidia.com/gpu",state="listening"}`, 1))

	c.must(c.exporter.Kill())
	c.startExporter()
	c.right("the exporter is back", 8, 8)
	if code, took, err := c.exporter.Terminate(c.ctx); code != 0 || err != nil {
		t.Errorf("the exporter ended with %d after %s: %v", code, took, err)
	}
}

// is waits for a series to have a value.
func is(series string, want float64) func(metrics) string {
	return func(m metrics) string {
		if got, ok := m[series]; !ok || got != want {
			return fmt.Sprintf("%s is %v (there: %t), want %v", series, got, ok, want)
		}
		return ""
	}
}
