//go:build node

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/test/peer"
)

const (
	nicDaemonSet         = "nic-device-plugin"
	nicManifests         = "../../dist/e2e-cluster-nic.yaml"
	nicExporterManifests = "../../dist/e2e-cluster-exporter-nics.yaml"

	// hca is the resource of the RDMA devices that are shared.
	hca         = "rdma/hca"
	sharesOfHCA = 3
)

// exportShares: containers that have the same RDMA device, each with a share of its own, come, end and go. Three
// pods take two shares each of two devices that have three, so one device at least has two pods.
func exportShares(c *cluster) {
	c.shares()
	w := c.join("export-shares", "sriov-cpu", nicDaemonSet, exporterDaemonSet)
	w.podReady(nicDaemonSet)
	w.podReady(exporterDaemonSet)
	w.await("the shares", func(ctx context.Context) error { return w.offers(ctx, hca, sharesOfHCA*len(w.hcas())) })
	w.right("at first")
	c.pod(peer.NewPod("two", hca, 2))
	c.pod(twoContainers("one-each"))
	ends := peer.NewPod("ends", hca, 2)
	ends.Spec.RestartPolicy = v1.RestartPolicyNever
	c.pod(ends)
	w.right("all shares are taken")
	w.together()
	watch := w.watchExporter()

	c.must(w.Containerd().KillTask(c.ctx, w.podRuns("one-each").Status.ContainerStatuses[0].ContainerID))
	w.right("a container restarted")
	c.must(w.Kubelet().Restart(c.ctx))
	w.podReady(nicDaemonSet)
	w.right("kubelet restarted")
	w.killAll(nicDaemonSet)
	w.podReady(nicDaemonSet)
	w.right("plugin killed")
	c.must(watch.end())

	c.must(w.Containerd().KillTask(c.ctx, w.podRuns("ends").Status.ContainerStatuses[0].ContainerID))
	w.await("the pod to end", func(ctx context.Context) error {
		pod, err := c.Client().CoreV1().Pods(peer.Namespace).Get(ctx, "ends", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != v1.PodFailed {
			err = errors.New("it is " + string(pod.Status.Phase))
		}
		return err
	})
	w.right("one pod has ended")
	c.pod(peer.NewPod("next", hca, 1))
	w.right("another one has one of its shares")
	c.remove("one-each")
	w.right("one pod has gone")
}

// shares makes the configuration of nic-device-plugin, and applies what is about shares.
func (c *cluster) shares() {
	c.t.Helper()
	config := fmt.Sprintf(`{"configList": [{"resourceName": "hca", "sharesPerDevice": %d, "selectors": {"vendors": ["%x"], "deviceIDs": ["%x"],`+
		` "drivers": ["mlx5_core"]}}]}`, sharesOfHCA, mellanox, connectXVF)
	_, err := c.Client().CoreV1().ConfigMaps(system).Create(c.ctx, &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: nicDaemonSet}, Data: map[string]string{"config.json": config},
	}, metav1.CreateOptions{})
	c.must(err)
	c.apply(nicManifests)
	c.apply(nicExporterManifests)
}

// twoContainers is a pod of which each container has a share.
func twoContainers(name string) *v1.Pod {
	pod := peer.NewPod(name, hca, 1)
	second := *pod.Spec.Containers[0].DeepCopy()
	second.Name = "second"
	pod.Spec.Containers = append(pod.Spec.Containers, second)
	return pod
}

// together complains unless two pods have one device to kubelet, so that the steps show what they are to.
func (w *worker) together() {
	w.t.Helper()
	held, err := w.heldOfKubelet(w.ctx)
	w.must(err)
	pods := map[string]string{} // by function
	for _, h := range held {
		function, _, _ := strings.Cut(h.device, "::")
		if other := pods[function]; other != "" && other != h.pod {
			return
		}
		pods[function] = h.pod
	}
	w.t.Errorf("no two pods have one device: %v", held)
}
