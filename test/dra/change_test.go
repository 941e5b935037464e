//go:build !kubernetes134

package dra

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kata-device-plugin/internal/witness"

	"kata-device-plugin/test/harness"
	"kata-device-plugin/test/plane"
)

// TestHealth: a device that falls sick under its pod is tainted, and the pod's status says why; one
// that is free is given to nobody; both are well again by themselves.
func TestHealth(t *testing.T) {
	p := start(t, plane.Options{})
	m := join(t, p, "node-a", "hgx-h100")
	m.run()
	p.Create(t, single(gpuA))
	name := deviceName("gpu", gpuA)
	pod := p.AwaitPhase(t, p.Pod(t, plane.ClaimPod("user", "that-gpu")), v1.PodRunning)
	m.awaitHealth(pod, "Healthy", "")
	must(t, m.hw.Unbind(address(t, gpuA)))
	m.awaitDevice(name, map[string]string{"unhealthy": "HST020"})
	m.awaitHealth(pod, "Unhealthy", "HST020")
	must(t, m.hw.Bind(address(t, gpuA), "vfio-pci"))
	m.awaitDevice(name, map[string]string{})
	m.awaitHealth(pod, "Healthy", "")
	p.Delete(t, pod)
	p.AwaitGone(t, pod)
	must(t, m.hw.Unbind(address(t, gpuA)))
	m.awaitDevice(name, nil)
	p.AwaitPending(t, p.Pod(t, plane.ClaimPod("next", "that-gpu")), "cannot allocate all claims")
	must(t, m.hw.Bind(address(t, gpuA), "vfio-pci"))
	m.awaitDevice(name, map[string]string{})
}

// awaitHealth waits for what the pod's status says of its only device.
func (m *machine) awaitHealth(pod *v1.Pod, health, words string) {
	m.t.Helper()
	m.plane.AwaitPod(m.t, pod, "with a device that is "+health, func(now *v1.Pod) error {
		for _, c := range now.Status.ContainerStatuses {
			for _, s := range c.AllocatedResourcesStatus {
				for _, r := range s.Resources {
					if string(r.Health) == health && (r.Message == nil && words == "" || r.Message != nil && strings.Contains(*r.Message, words)) {
						return nil
					}
				}
			}
		}
		return fmt.Errorf("it says %+v", now.Status.ContainerStatuses)
	})
}

// TestKubeletRestart: kubelet removes the node's slices when it starts; they come back, and running
// pods notice nothing.
func TestKubeletRestart(t *testing.T) {
	p := start(t, plane.Options{})
	m := join(t, p, "node-a", "hgx-h100")
	m.run()
	p.Create(t, oneGPU)
	pod := p.AwaitPhase(t, p.Pod(t, plane.ClaimPod("stays", "one-gpu")), v1.PodRunning)
	nodes, before, old := m.nodes(pod), m.devices(), p.Slices(t, driver, m.Name)[0].UID
	m.Restart(t)
	p.AwaitSlices(t, driver, m.Name, "as before, and new", func(now []resourceapi.ResourceSlice) error {
		if got := byName(now); len(now) == 0 || len(got) != len(before) || now[0].UID == old {
			return fmt.Errorf("there are %d devices in %d slices", len(got), len(now))
		}
		return nil
	})
	if got := m.nodes(pod); !slices.Equal(got, nodes) {
		t.Errorf("the pod's nodes were %v, and are %v", nodes, got)
	}
	p.AwaitPhase(t, p.Pod(t, plane.ClaimPod("new", "one-gpu")), v1.PodRunning)
}

// TestReboot: after a reboot the pods of before get their own devices again, with the nodes that
// these have now, and nobody else gets them meanwhile.
func TestReboot(t *testing.T) {
	p := start(t, plane.Options{})
	m := join(t, p, "node-a", "hgx-h100")
	d := m.run()
	p.Create(t, single(gpuA))
	pod := p.AwaitPhase(t, p.Pod(t, plane.ClaimPod("stays", "that-gpu")), v1.PodRunning)
	old := m.nodes(pod)
	d.stop()
	m.Stop()
	for _, f := range m.hw.Functions() { // numbers are dealt anew, in another order
		if f.Driver == "vfio-pci" {
			must(t, m.hw.Unbind(f.Address()))
		}
	}
	functions := m.hw.Functions()
	slices.Reverse(functions)
	for _, f := range functions {
		if f.Vendor == 0x10de && f.Class>>8 != 0x0604 {
			must(t, m.hw.Bind(f.Address(), "vfio-pci"))
		}
	}
	m.boot(2)
	m.Reboot(t)
	m.run()
	p.AwaitPhase(t, pod, v1.PodRunning)
	var now []string
	plane.Await(t, "the pod's devices to resolve", func(context.Context) error {
		names, err := m.CDIDevices(pod, "c")
		if err != nil {
			return err
		}
		now, err = m.resolve(names)
		return err
	})
	if number, _ := m.hw.Cdev(address(t, gpuA)); len(now) != 1 || now[0] != fmt.Sprintf("/dev/vfio/devices/vfio%d", number) || slices.Equal(now, old) {
		t.Errorf("its nodes were %v and are %v, and the device's is vfio%d", old, now, number)
	}
}

// TestExtended: pods that ask as they ask a device plugin get claims.
func TestExtended(t *testing.T) {
	p := start(t, plane.Options{})
	m := join(t, p, "node-a", "hgx-h100")
	m.run()
	mapped(t, p)
	pod := p.AwaitPhase(t, p.Pod(t, plane.ExtendedPod("plain", gpu, 2)), v1.PodRunning)
	if got := len(m.nodes(pod)); got != 2 {
		t.Errorf("it has %d nodes", got)
	}
	six := p.AwaitPhase(t, p.Pod(t, plane.ExtendedPod("six", gpu, 6)), v1.PodRunning)
	p.AwaitPending(t, p.Pod(t, plane.ExtendedPod("one-more", gpu, 1)), "cannot allocate all claims")
	p.Delete(t, pod)
	p.Delete(t, six)
	m.awaitEmpty()
}

// mapped gives the class of GPUs the name that device plugins have for them.
func mapped(t *testing.T, p *plane.Plane) {
	t.Helper()
	_, err := p.Client().ResourceV1().DeviceClasses().Patch(t.Context(), "gpu."+driver, types.MergePatchType,
		[]byte(`{"spec":{"extendedResourceName":"`+gpu+`"}}`), metav1.PatchOptions{})
	must(t, err)
}

// TestBoth: where a device plugin offers the hardware, the driver does not, says so, and begins when
// the plugin has gone; and the other way round.
func TestBoth(t *testing.T) {
	p := start(t, plane.Options{})
	m := join(t, p, "node-a", "hgx-h100")
	log := witness.NewLog(func() {})
	plugin, err := harness.StartPlugin(t.Context(), built.plugin, m.dir, log)
	must(t, err)
	plane.Await(t, "the plugin's specs", func(context.Context) error {
		_, err := os.Stat(filepath.Join(m.CDI, "kata.nvidia.com-gpu.json"))
		return err
	})
	d := m.launch()
	d.await("PLG018", "nvidia.com/gpu", "kata-device-plugin")
	if got := m.devices(); len(got) > 0 {
		t.Errorf("it publishes %d devices", len(got))
	}
	must(t, plugin.Kill())
	d.await(`"msg":"ready"`)
	m.awaitDevice(deviceName("gpu", gpuA), map[string]string{})
	second := witness.NewLog(func() {})
	plugin, err = harness.StartPlugin(t.Context(), built.plugin, m.dir, second)
	must(t, err)
	t.Cleanup(func() { must(t, plugin.Kill()) })
	plane.Await(t, "the plugin to wait for the driver", func(context.Context) error {
		if len(second.Lines("PLG018", "kata-dra-driver")) == 0 {
			return errors.New("it does not say so")
		}
		return nil
	})
}

// TestLeftOver: devices that pods still have from a device plugin are nobody else's until these pods
// have ended, and a resource that is still allocatable keeps its type back.
func TestLeftOver(t *testing.T) {
	p := start(t, plane.Options{})
	m := join(t, p, "node-a", "hgx-h100")
	name := deviceName("gpu", gpuA)
	old := p.AwaitPhase(t, p.Pod(t, plane.On(plane.ExtendedPod("old", "example.com/gpu", 0), m.Name)), v1.PodRunning)
	m.PluginDevices(old, "c", gpu, gpuA)
	m.SetAllocatable(t, gpu, 8)
	d := m.launch()
	d.await("DRA016", gpu)
	m.SetAllocatable(t, gpu, 0)
	d.await(`"msg":"ready"`)
	m.awaitDevice(name, map[string]string{"held-by-device-plugin": "DRA006"})
	p.Create(t, single(gpuA))
	next := p.AwaitPending(t, p.Pod(t, plane.ClaimPod("next", "that-gpu")), "cannot allocate all claims")
	m.PluginDevices(old, "c", gpu)
	m.awaitDevice(name, map[string]string{})
	p.AwaitPhase(t, next, v1.PodRunning)
}

// TestOutage: without the API server, running pods keep what they have, and afterwards everything
// goes on.
func TestOutage(t *testing.T) {
	p := start(t, plane.Options{})
	m := join(t, p, "node-a", "hgx-h100")
	d := m.run()
	p.Create(t, oneGPU)
	pod := p.AwaitPhase(t, p.Pod(t, plane.ClaimPod("stays", "one-gpu")), v1.PodRunning)
	p.Cut()
	d.await("DRA018")
	must(t, m.hw.Unbind(address(t, "0000:ca:00.0")))
	if got := len(m.records()); got != 1 {
		t.Errorf("there are %d records", got)
	}
	p.Mend()
	d.await(`"msg":"no longer found"`, "DRA018")
	m.awaitDevice(deviceName("gpu", "0000:ca:00.0"), nil)
	p.Delete(t, pod)
	p.AwaitGone(t, pod)
	m.awaitEmpty()
}

// TestOlderServers: what an older API server drops is done without.
func TestOlderServers(t *testing.T) {
	for version, taints := range map[string]bool{"1.34": false, "1.35": false, "1.36": true} {
		t.Run(version, func(t *testing.T) {
			p := start(t, plane.Options{Emulate: version})
			m := join(t, p, "node-a", "hgx-h100")
			m.run()
			name := deviceName("gpu", gpuA)
			p.Create(t, single(gpuA))
			pod := p.AwaitPhase(t, p.Pod(t, plane.ClaimPod("user", "that-gpu")), v1.PodRunning)
			old := p.AwaitPhase(t, p.Pod(t, plane.On(plane.ExtendedPod("old", "example.com/gpu", 0), m.Name)), v1.PodRunning)
			const other = "0000:ca:00.0"
			m.PluginDevices(old, "c", gpu, other)
			if taints {
				m.awaitDevice(deviceName("gpu", other), map[string]string{"held-by-device-plugin": "DRA006"})
			} else {
				m.awaitDevice(deviceName("gpu", other), nil)
			}
			if _, there := m.devices()[name]; !there {
				t.Errorf("%s, which a claim has, is gone", name)
			}
			m.PluginDevices(old, "c", gpu)
			m.awaitDevice(deviceName("gpu", other), map[string]string{})
			p.Delete(t, pod)
			m.awaitEmpty()
		})
	}
}

// TestMigration: a node goes from the device plugin to DRA and back, with a pod that runs on.
func TestMigration(t *testing.T) {
	p := start(t, plane.Options{})
	m := join(t, p, "node-a", "hgx-h100")
	mapped(t, p)
	runs := p.AwaitPhase(t, p.Pod(t, plane.On(plane.ExtendedPod("runs", "example.com/gpu", 0), m.Name)), v1.PodRunning)
	m.PluginDevices(runs, "c", gpu, gpuA) // from the plugin, which has just left
	m.SetAllocatable(t, gpu, 0)
	d := m.run()
	m.awaitDevice(deviceName("gpu", gpuA), map[string]string{"held-by-device-plugin": "DRA006"})
	seven := p.AwaitPhase(t, p.Pod(t, plane.ExtendedPod("seven", gpu, 7)), v1.PodRunning)
	d.stop() // back: the claim's pod runs on
	log := witness.NewLog(func() {})
	plugin, err := harness.StartPlugin(t.Context(), built.plugin, m.dir, log)
	must(t, err)
	t.Cleanup(func() { must(t, plugin.Kill()) })
	plane.Await(t, "the plugin to see what claims have", func(context.Context) error {
		if n := len(log.Lines("HST046")); n < 7 {
			return fmt.Errorf("it has seen %d devices", n)
		}
		return nil
	})
	must(t, plugin.Kill())
	m.run()
	p.Delete(t, seven)
	p.AwaitGone(t, seven)
	m.awaitEmpty()
}

// TestSocketsRemoved: whatever socket somebody removes, or all that the driver has on disk, the driver
// makes both anew, kubelet registers it again, and claims are prepared.
func TestSocketsRemoved(t *testing.T) {
	p := start(t, plane.Options{})
	m := join(t, p, "node-a", "hgx-h100")
	d := m.run()
	p.Create(t, oneGPU)
	before := len(m.devices())
	kubelet := filepath.Join(m.dir, "var/lib/kubelet")
	registry, own := filepath.Join(kubelet, "plugins_registry/*.sock"), filepath.Join(kubelet, "plugins", driver, "*.sock")
	everything := filepath.Join(kubelet, "plugins", driver, "*")
	for i, patterns := range [][]string{{registry}, {own}, {registry, own}, {everything}} {
		for _, pattern := range patterns {
			found, err := filepath.Glob(pattern)
			must(t, err)
			if len(found) != 1 && pattern != everything || len(found) == 0 {
				t.Fatalf("%s are %v", pattern, found)
			}
			for _, path := range found {
				must(t, os.RemoveAll(path))
			}
		}
		plane.Await(t, "the driver to serve anew", func(context.Context) error {
			if n := len(d.log.Lines(`"msg":"serving kubelet anew"`)); n <= i {
				return fmt.Errorf("it has done so %d times", n)
			}
			return nil
		})
		pod := p.AwaitPhase(t, p.Pod(t, plane.ClaimPod("after-"+strconv.Itoa(i), "one-gpu")), v1.PodRunning)
		p.Delete(t, pod)
		p.AwaitGone(t, pod)
	}
	m.awaitEmpty()
	if now := len(m.devices()); now != before {
		t.Errorf("there are %d devices, and %d before", now, before)
	}
}
