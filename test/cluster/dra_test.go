//go:build node

package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/test/peer"
)

// The machine of most parts: an NVLink board.
const hgxH100 = "hgx-h100"

// The label by which a node is given to the DRA driver, and examples that ship.
const (
	modeLabel  = "node-restriction.kubernetes.io/passthrough-mode"
	singleGPU  = "single-gpu"
	wholeBoard = "whole-board"
	examples   = "../../deploy/examples/dra/"
)

// draInstall: the manifests bring one ready driver to each node that is given to it, and to
// no other; it has no capability, and publishes the node's devices with the credential that its
// manifests give it. The device plugin stays off such a node.
func draInstall(c *cluster) {
	w := c.joinDRA("dra-install", hgxH100)
	other := c.join("dra-install-not", "cpu-only")
	pod := w.driverReady()
	other.pluginReady()
	c.complete(draDaemonSet, 1)
	c.complete(daemonSet, 1)
	c.shipped(draDaemonSet, draBase)
	w.powerless(draDaemonSet)
	for _, x := range []struct {
		w         *worker
		daemonSet string
	}{{w, daemonSet}, {other, draDaemonSet}} {
		list, err := c.Client().CoreV1().Pods(system).List(c.ctx, metav1.ListOptions{
			FieldSelector: "spec.nodeName=" + x.w.Name(), LabelSelector: "app.kubernetes.io/name=" + x.daemonSet,
		})
		c.must(err)
		if len(list.Items) > 0 {
			c.t.Errorf("a pod of %s is on %s", x.daemonSet, x.w.Name())
		}
	}
	if pod.Spec.HostNetwork || pod.Spec.HostPID || pod.Spec.HostIPC {
		c.t.Errorf("the driver's pod has a namespace of the host: %+v", pod.Spec)
	}
	for _, line := range c.logOf(pod) {
		if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, `"level":"WARN"`) {
			c.t.Errorf("the driver says %s", line)
		}
	}
	for _, s := range w.slices() {
		if s.Spec.Pool.Name != w.Name() || len(s.OwnerReferences) != 1 || s.OwnerReferences[0].Name != w.Name() {
			c.t.Errorf("slice %s is of pool %s and has the owners %+v", s.Name, s.Spec.Pool.Name, s.OwnerReferences)
		}
	}
}

// draPods: pods get what they ask for in each way, which is what their containers see, what the
// scheduler has chosen, and what kubelet and CDI say.
func draPods(c *cluster) {
	w := c.joinDRA("dra-pods", hgxH100)
	w.driverReady()
	c.template(singleGPU)
	c.template(wholeBoard)
	c.pod(claimPod("one", singleGPU))
	plain := peer.NewPod("plain", gpu, 2) // unmodified, as for the device plugin
	c.pod(plain)
	one, two := w.claimed("one"), w.claimed(plain.Name)
	if len(one) != 1 || len(two) != 2 || slices.Contains(two, one[0]) {
		c.t.Errorf("one pod has %v, and the other one %v", one, two)
	}

	c.pod(claimPod("board", wholeBoard))
	c.pending("board", "cannot allocate all claims")
	c.remove("one")
	c.remove(plain.Name)
	all := slices.Concat(w.gpus(), w.switches())
	slices.Sort(all)
	if got := w.claimed("board"); !slices.Equal(got, all) {
		c.t.Errorf("the whole board is %v, want %v", got, all)
	}
	c.pod(peer.NewPod("late", gpu, 1))
	c.pending("late", "cannot allocate all claims")
	c.remove("board")
	if got := w.claimed("late"); len(got) != 1 {
		c.t.Errorf("the last pod has %v", got)
	}
}

// joinDRA starts a node that is given to the DRA driver, with its image and those of other agents. The
// node's object is made first, as a cloud's controller does: kubelet could not set the label, and
// without it the node would be the plugin's for a while.
func (c *cluster) joinDRA(name, platform string, others ...string) *worker {
	c.t.Helper()
	c.apply(draManifests)
	w := c.prepare(name, platform, append(others, draDaemonSet)...)
	_, err := c.Client().CoreV1().Nodes().Create(c.ctx, &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{modeLabel: "dra"}},
	}, metav1.CreateOptions{})
	c.must(err)
	c.t.Cleanup(w.leave)
	c.must(w.Kubelet().Start(c.ctx))
	return w
}

// driverReady waits until the driver's pod is ready, and until all devices are published.
func (w *worker) driverReady() *v1.Pod {
	w.t.Helper()
	pod := w.podReady(draDaemonSet)
	w.publishes(len(w.hardware()))
	return pod
}

// template makes the claim template of an example that ships.
func (c *cluster) template(name string) {
	c.t.Helper()
	c.apply(examples+name+".yaml", "ResourceClaimTemplate")
	c.t.Cleanup(func() {
		err := c.Client().ResourceV1().ResourceClaimTemplates(peer.Namespace).Delete(context.Background(), name, metav1.DeleteOptions{})
		if err != nil {
			c.t.Errorf("remove template %s: %v", name, err)
		}
	})
}

// claimPod is a pod with a claim that is made from a template.
func claimPod(name, template string) *v1.Pod {
	pod := peer.NewPod(name, gpu, 0)
	pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "devices", ResourceClaimTemplateName: &template}}
	pod.Spec.Containers[0].Resources = v1.ResourceRequirements{Claims: []v1.ResourceClaim{{Name: "devices"}}}
	return pod
}

// pod makes a pod that goes with the part of the test, before the driver without which it
// would not end.
func (c *cluster) pod(pod *v1.Pod) {
	c.t.Helper()
	pods := c.Client().CoreV1().Pods(peer.Namespace)
	_, err := pods.Create(c.ctx, pod, metav1.CreateOptions{})
	c.must(err)
	c.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}) // the next look tells, and it may be gone already
		if err := c.podGone(ctx, pod.Name); err != nil {
			c.t.Error(err)
		}
	})
}

// remove removes a pod and waits until it has gone.
func (c *cluster) remove(name string) {
	c.t.Helper()
	c.must(c.Client().CoreV1().Pods(peer.Namespace).Delete(c.ctx, name, metav1.DeleteOptions{}))
	c.gone(name)
}

// pending waits until the scheduler says why a pod has no node.
func (c *cluster) pending(name, why string) {
	c.t.Helper()
	c.await("pod "+name+" to wait: "+why, func(ctx context.Context) error {
		pod, err := c.Client().CoreV1().Pods(peer.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, cond := range pod.Status.Conditions {
			if cond.Type == v1.PodScheduled && cond.Status == v1.ConditionFalse && strings.Contains(cond.Message, why) {
				return nil
			}
		}
		return fmt.Errorf("its status is %+v", pod.Status)
	})
}

// claimOf is the claim of a pod, from a template or made by the scheduler.
func (c *cluster) claimOf(pod *v1.Pod) *resourceapi.ResourceClaim {
	c.t.Helper()
	var name string
	for _, s := range pod.Status.ResourceClaimStatuses {
		name = *s.ResourceClaimName
	}
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		name = s.ResourceClaimName
	}
	claim, err := c.Client().ResourceV1().ResourceClaims(pod.Namespace).Get(c.ctx, name, metav1.GetOptions{})
	c.must(err)
	return claim
}

// claimed waits until a pod runs on the node, and returns the addresses of the devices that it
// has by its claim, sorted. Whoever says something of them says the same: the scheduler in the
// claim, kubelet's PodResources, CDI, and what the container sees.
func (w *worker) claimed(name string) []string {
	w.t.Helper()
	_, seen, err := w.AwaitRunning(w.ctx, name)
	w.must(err)
	pod, err := w.Client().CoreV1().Pods(peer.Namespace).Get(w.ctx, name, metav1.GetOptions{})
	w.must(err)
	claim := w.claimOf(pod)
	names := w.hardware()
	var chosen []string
	want := map[string]string{} // node to number
	if claim.Status.Allocation == nil {
		w.t.Fatalf("pod %s runs, and its claim is not allocated", name)
	}
	for _, r := range claim.Status.Allocation.Devices.Results {
		if names[r.Device] == "" || r.Driver != draDriver || r.Pool != w.Name() {
			w.t.Errorf("pod %s has %+v, which is no device of %s", name, r, w.Name())
			continue
		}
		path, number, err := w.DeviceNode(names[r.Device])
		w.must(err)
		want[path] = number
		chosen = append(chosen, names[r.Device])
	}
	if !maps.Equal(seen, want) {
		w.t.Errorf("the container of pod %s sees %v, want %v for %v", name, seen, want, chosen)
	}
	slices.Sort(chosen)
	if got := w.named(name, claim.Name, names); !slices.Equal(got, chosen) {
		w.t.Errorf("to kubelet pod %s has %v, and to the scheduler %v", name, got, chosen)
	}
	return chosen
}

// named are the addresses of the devices that a pod has by a claim to kubelet, sorted. That
// CDI resolves one of their names to something else than the device's node is an error.
func (w *worker) named(pod, claim string, names map[string]string) (held []string) {
	w.t.Helper()
	var answer *podresources.PodResources
	w.must(w.PodResources(func(client podresources.PodResourcesListerClient) error {
		get, err := client.Get(w.ctx, &podresources.GetPodResourcesRequest{PodName: pod, PodNamespace: peer.Namespace})
		answer = get.GetPodResources()
		return err
	}))
	for _, container := range answer.GetContainers() {
		if len(container.GetDevices()) > 0 {
			w.t.Errorf("pod %s has devices of a device plugin: %v", pod, container.GetDevices())
		}
		for _, dynamic := range container.GetDynamicResources() {
			for _, r := range dynamic.GetClaimResources() {
				id, cdi := names[r.GetDeviceName()], r.GetCdiDevices()
				path, _, err := w.DeviceNode(id)
				w.must(err)
				if dynamic.GetClaimName() != claim || r.GetDriverName() != draDriver || r.GetPoolName() != w.Name() || len(cdi) == 0 {
					w.t.Errorf("to kubelet pod %s has %v of claim %s", pod, r, dynamic.GetClaimName())
					continue
				}
				// kubelet lists the names of the devices before it as well (GetDynamicResources in
				// pkg/kubelet/cm/container_manager_linux.go).
				if node, err := w.Resolve(cdi[len(cdi)-1].GetName()); err != nil || node != path {
					w.t.Errorf("%s of pod %s is %s by CDI, and %s by the kernel: %v", id, pod, node, path, err)
				}
				held = append(held, id)
			}
		}
	}
	slices.Sort(held)
	return held
}
