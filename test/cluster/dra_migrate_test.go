//go:build node

package cluster

import (
	"context"
	"errors"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/test/peer"
)

// What is said of a device that the other mechanism has.
const (
	heldByPlugin = "DRA006"
	heldByClaim  = "HST046"
)

// draMigration: a node is given to the DRA driver while a pod has devices of the plugin. The pod goes
// on with them, through a restart of kubelet too; what is free goes to claims, and what the pod has
// is published with a taint, until the pod ends.
func draMigration(c *cluster) {
	c.apply(draManifests)
	w := c.join("dra-migration", hgxH100, draDaemonSet)
	w.ready()
	c.template(singleGPU)
	c.pod(peer.NewPod("workload", gpu, 2))
	workload := w.plugged("workload", 2)
	watch := w.watchHolders()

	w.cordon(true)
	w.mode(`"dra"`)
	w.without(daemonSet)
	w.await("nothing to be the plugin's", func(ctx context.Context) error {
		return errors.Join(w.offers(ctx, gpu, 0), w.offers(ctx, nvswitch, 0))
	})
	w.driverReady()
	for _, id := range w.gpus() {
		var want map[string]string
		if slices.Contains(workload.devices, id) {
			want = map[string]string{taintPlugged: heldByPlugin}
		}
		w.tainted(id, want)
	}
	w.same("given to DRA", workload, w.plugged("workload", 2))
	w.cordon(false)

	c.pod(claimPod("first", singleGPU))
	first := w.holding("first")
	c.pod(peer.NewPod("others", gpu, 5)) // the same pod as for the plugin
	others := w.holding("others")
	all := slices.Concat(workload.devices, first.devices, others.devices)
	if slices.Sort(all); !slices.Equal(all, w.gpus()) {
		c.t.Errorf("%v are the plugin's, %v and %v the claims', of %v", workload.devices, first.devices, others.devices, w.gpus())
	}
	c.pod(claimPod("waits", singleGPU))
	c.pending("waits", "cannot allocate all claims")

	c.must(w.Kubelet().Restart(c.ctx))
	w.driverReady()
	w.same("kubelet restarted", workload, w.plugged("workload", 2))
	w.goesOn("kubelet restarted", first)
	w.goesOn("kubelet restarted", others)
	c.pending("waits", "cannot allocate all claims")
	c.must(w.Containerd().KillTask(c.ctx, peer.Container(workload.pod).ContainerID))
	_, err := w.AwaitPod(c.ctx, "workload", "to run again", func(pod *v1.Pod) error {
		if s := peer.Container(pod); s.RestartCount != 1 || s.State.Running == nil {
			return errors.New("it does not")
		}
		return nil
	})
	c.must(err)
	if now := w.plugged("workload", 2); now.pod.UID != workload.pod.UID || !slices.Equal(now.devices, workload.devices) {
		c.t.Errorf("container restarted: the workload had %v, and has %v", workload.devices, now.devices)
	}

	c.remove("workload")
	if got := w.claimed("waits"); !slices.Contains(workload.devices, got[0]) {
		c.t.Errorf("the pod that waited has %v, want one of %v", got, workload.devices)
	}
	for _, id := range workload.devices {
		w.tainted(id, nil)
	}
	w.goesOn("workload gone", first)
	w.goesOn("workload gone", others)
	c.must(watch.end())
}

// draRollback: a node is given back to the plugin. That a pod still has a claim, which is not how it is
// to be done, costs that pod its end until the driver is back, and nobody a device: the plugin does
// not offer what the claim has. When the node is given back without any such pod, the plugin has
// everything.
func draRollback(c *cluster) {
	w := c.joinDRA("dra-rollback", hgxH100, daemonSet)
	w.driverReady()
	c.template(singleGPU)
	c.pod(claimPod("workload", singleGPU))
	workload := w.holding("workload")
	watch := w.watchHolders()

	w.mode("null")
	w.without(draDaemonSet)
	plugin := w.pluginReady()
	w.await("what the claim does not have", func(ctx context.Context) error {
		return errors.Join(w.offers(ctx, gpu, 7), w.offers(ctx, nvswitch, len(w.switches())))
	})
	w.says(plugin, heldByClaim, workload.devices[0])
	w.goesOn("given to the plugin", workload)
	c.pod(peer.NewPod("seven", gpu, 7))
	seven := w.plugged("seven", 7)
	if slices.Contains(seven.devices, workload.devices[0]) {
		c.t.Errorf("one pod has %v, and another one %v", workload.devices, seven.devices)
	}
	w.publishes(0) // kubelet removes the slices

	c.must(c.Client().CoreV1().Pods(peer.Namespace).Delete(c.ctx, "workload", metav1.DeleteOptions{}))
	_, err := w.AwaitPod(c.ctx, "workload", "to wait for the driver, without a container", func(pod *v1.Pod) error {
		if peer.Container(pod).State.Terminated == nil {
			return errors.New("it runs")
		}
		return nil
	})
	c.must(err)
	c.must(w.offers(c.ctx, gpu, 7))

	w.mode(`"dra"`)
	w.without(daemonSet)
	c.gone("workload")
	w.driverReady()
	w.tainted(workload.devices[0], nil)
	for _, id := range seven.devices {
		w.tainted(id, map[string]string{taintPlugged: heldByPlugin})
	}
	w.same("given to DRA", seven, w.plugged("seven", 7))

	// Now as it is to be done.
	w.cordon(true)
	c.remove("seven")
	w.mode("null")
	w.without(draDaemonSet)
	w.ready()
	w.cordon(false)
	c.pod(peer.NewPod("eight", gpu, 8))
	if got := w.plugged("eight", 8); !slices.Equal(got.devices, w.gpus()) {
		c.t.Errorf("a pod has %v, want %v", got.devices, w.gpus())
	}
	c.must(watch.end())
}

// plugged waits until a pod runs with so many GPUs of the plugin, and sees just these.
func (w *worker) plugged(name string, count int) holding {
	w.t.Helper()
	pod, held, err := w.AwaitDevices(w.ctx, name, gpu, count)
	w.must(err)
	return holding{pod, held}
}
