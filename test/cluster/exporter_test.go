//go:build node

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/test/cluster/told"
	"kata-device-plugin/test/peer"
)

const (
	exporterDaemonSet = "device-exporter"
	exporterManifests = "../../dist/e2e-cluster-exporter.yaml"
)

// TestExporter runs the exporter as it ships beside kubelet, the plugin and the DRA driver as they ship.
// After each thing that happens its metrics are what the API server, kubelet and the machine say.
func TestExporter(t *testing.T) {
	for _, file := range []string{
		exporterManifests, archive(exporterDaemonSet), nicManifests, archive(nicDaemonSet), nicExporterManifests,
	} {
		if _, err := os.Stat(file); err != nil {
			t.Fatalf("look for what is to be tested: %v; make e2e-cluster makes it", err)
		}
	}
	c := &cluster{ControlPlane: peer.StartControlPlane(t, programs), t: t, ctx: t.Context()}
	c.apply(manifests)
	c.apply(exporterManifests)
	for _, part := range []struct {
		name string
		run  func(*cluster)
	}{
		{"device plugin", exportPlugin},
		{"faults", exportFaults},
		{"claims", exportClaims}, // after the others, which are to know nothing of claims
		{"shares", exportShares}, // last, since the exporter has another manifest then
	} {
		t.Run(part.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			part.run(&cluster{ControlPlane: c.ControlPlane, t: t, ctx: ctx})
		})
	}
}

// exportPlugin: pods of one container and of several, with init containers and sidecars, come, restart
// and go, and so does everything that they rest on.
func exportPlugin(c *cluster) {
	w := c.join("export-plugin", hgxH100, exporterDaemonSet)
	w.ready()
	w.powerlessExporter(w.podReady(exporterDaemonSet))
	w.right("at first")
	c.pod(peer.NewPod("plain", gpu, 2))
	c.pod(manyContainers("many"))
	w.right("two pods")
	watch := w.watchExporter()

	for _, name := range []string{"plain", "many"} {
		pod := w.podRuns(name)
		for _, s := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
			if s.State.Running != nil {
				c.must(w.Containerd().KillTask(c.ctx, s.ContainerID))
			}
		}
		w.right("containers of " + name + " restarted")
	}
	c.must(w.Kubelet().Restart(c.ctx))
	w.ready()
	w.right("kubelet restarted")
	c.must(w.Kubelet().Crash(c.ctx))
	w.ready()
	w.right("kubelet crashed")
	w.killAll(daemonSet)
	w.ready()
	w.right("plugin killed")
	w.killAll(exporterDaemonSet)
	w.podReady(exporterDaemonSet)
	w.right("exporter killed")
	c.must(watch.end())

	c.remove("many")
	w.right("one pod has gone")
	c.pod(peer.NewPod("many", gpu, 3)) // of the same name
	w.right("another one of its name")
}

// exportFaults: kubelet is silent until nothing rests on it, a pod is deleted by force while its container
// goes on, and devices leave.
func exportFaults(c *cluster) {
	w := c.join("export-faults", hgxH100, exporterDaemonSet)
	w.ready()
	c.pod(peer.NewPod("holder", gpu, 2))
	w.right("a pod")
	_, held, err := w.AwaitDevices(c.ctx, "holder", gpu, 2)
	c.must(err)

	c.must(w.Machine.Unbind(w.address(w.free(held...))))
	w.right("a free device has left")

	c.must(w.Kubelet().Pause())
	none := int64(0)
	c.must(c.Client().CoreV1().Pods(peer.Namespace).Delete(c.ctx, "holder", metav1.DeleteOptions{GracePeriodSeconds: &none}))
	c.gone("holder")
	for range 3 {
		if got := w.scraped().Family("device_allocation_info"); len(got) != 2 {
			c.t.Errorf("a pod was deleted by force, its container has its devices, and told are %v", got)
		}
	}
	w.await("what rests on kubelet to be told no more", func(ctx context.Context) error {
		m, err := w.scrape(ctx)
		if err != nil {
			return err
		}
		stale := m[`source_stale{source="pod_resources"}`] == 1
		resting := len(m.Family("device_allocation_info")) + len(m.Family("resource_allocated")) + len(m.Family("resource_free"))
		if stale != (resting == 0) {
			c.t.Errorf("stale is %t, and told are %d series that rest on it", stale, resting)
		}
		if !stale {
			return errors.New("it is")
		}
		return nil
	})
	c.must(w.Kubelet().Resume())
	w.right("kubelet is back, and has ended the pod")
}

// exportClaims: claims for one container and for several, by a template and by an extended resource.
func exportClaims(c *cluster) {
	w := c.joinDRA("export-claims", hgxH100, exporterDaemonSet)
	w.driverReady()
	w.podReady(exporterDaemonSet)
	c.template(singleGPU)
	w.right("at first")
	shared := claimPod("shared", singleGPU)
	second := *shared.Spec.Containers[0].DeepCopy()
	second.Name = "second"
	sidecar := *second.DeepCopy()
	always := v1.ContainerRestartPolicyAlways
	sidecar.Name, sidecar.RestartPolicy = "sidecar", &always
	shared.Spec.Containers, shared.Spec.InitContainers = append(shared.Spec.Containers, second), []v1.Container{sidecar}
	two := claimPod("two-claims", singleGPU)
	template := singleGPU
	two.Spec.ResourceClaims = append(two.Spec.ResourceClaims, v1.PodResourceClaim{Name: "more", ResourceClaimTemplateName: &template})
	two.Spec.Containers[0].Resources.Claims = append(two.Spec.Containers[0].Resources.Claims, v1.ResourceClaim{Name: "more"})
	c.pod(shared)
	c.pod(two)
	c.pod(peer.NewPod("plain", gpu, 2))
	w.right("three pods")
	watch := w.watchExporter()

	c.must(w.Containerd().KillTask(c.ctx, w.podRuns("shared").Status.ContainerStatuses[0].ContainerID))
	w.right("a container restarted")
	c.must(w.Kubelet().Restart(c.ctx))
	w.driverReady()
	w.right("kubelet restarted")
	w.killAll(draDaemonSet)
	w.driverReady()
	w.right("driver killed")
	w.killAll(exporterDaemonSet)
	w.podReady(exporterDaemonSet)
	w.right("exporter killed")
	c.must(watch.end())

	none := int64(0)
	c.must(c.Client().CoreV1().Pods(peer.Namespace).Delete(c.ctx, "shared", metav1.DeleteOptions{GracePeriodSeconds: &none}))
	w.right("a pod deleted by force")
	c.remove("two-claims")
	c.remove("plain")
	w.right("all have gone")
}

// manyContainers is a pod with GPUs in two containers, in a sidecar and in a plain init container, which has
// three: two are given on to the containers, and kubelet keeps the third for the pod.
func manyContainers(name string) *v1.Pod {
	pod := peer.NewPod(name, gpu, 1)
	like := func(name string) v1.Container {
		c := *pod.Spec.Containers[0].DeepCopy()
		c.Name = name
		return c
	}
	sidecar, first := like("sidecar"), like("init")
	always := v1.ContainerRestartPolicyAlways
	sidecar.RestartPolicy, first.Command = &always, []string{"/bin/true"}
	one := v1.ResourceList{gpu: resource.MustParse("1")}
	sidecar.Resources = v1.ResourceRequirements{Limits: one, Requests: one}
	three := v1.ResourceList{gpu: resource.MustParse("3")}
	first.Resources = v1.ResourceRequirements{Limits: three, Requests: three}
	pod.Spec.InitContainers = []v1.Container{sidecar, first}
	pod.Spec.Containers = append(pod.Spec.Containers, like("second"))
	return pod
}

// podRuns is a pod with all containers running.
func (w *worker) podRuns(name string) *v1.Pod {
	w.t.Helper()
	pod, err := w.AwaitPod(w.ctx, name, "to run", func(pod *v1.Pod) error {
		if !isReady(pod) {
			return errors.New("it is not ready")
		}
		return nil
	})
	w.must(err)
	return pod
}

// powerlessExporter complains about an exporter's pod with more than it needs.
func (w *worker) powerlessExporter(pod *v1.Pod) {
	w.t.Helper()
	if pod.Spec.HostNetwork || pod.Spec.HostPID || pod.Spec.HostIPC {
		w.t.Errorf("the exporter's pod has a namespace of the host: %+v", pod.Spec)
	}
	for _, v := range pod.Spec.Volumes {
		if v.Projected != nil || v.Secret != nil {
			w.t.Errorf("the exporter's pod has a credential: %+v", v)
		}
	}
}

// scrape gets the exporter's metrics through the API server.
func (w *worker) scrape(ctx context.Context) (told.Metrics, error) {
	pods, err := w.agents(ctx, exporterDaemonSet)
	if err != nil {
		return nil, err
	}
	if len(pods) != 1 {
		return nil, fmt.Errorf("%d exporters are on %s", len(pods), w.Name())
	}
	text, err := w.Client().CoreV1().Pods(system).ProxyGet("http", pods[0].Name, "9818", "metrics", nil).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("scrape %s: %w", pods[0].Name, err)
	}
	return told.Parse(string(text))
}

func (w *worker) scraped() told.Metrics {
	w.t.Helper()
	m, err := w.scrape(w.ctx)
	w.must(err)
	return m
}
