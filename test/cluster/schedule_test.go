//go:build node

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/internal/pci"

	"kata-device-plugin/test/peer"
)

// schedule: unmodified pods that ask for devices get them, as many as there are, and the
// next one waits until one is free.
func schedule(c *cluster) {
	w := c.join("schedule", "hgx-h100")
	w.ready()
	w.replicas("one", 9, 1)
	before := w.running("one", 8)
	w.waits("one", "Insufficient "+gpu)

	c.must(c.Client().CoreV1().Pods(peer.Namespace).Delete(c.ctx, before[0].Name, metav1.DeleteOptions{}))
	c.gone(before[0].Name)
	var all []string
	for _, pod := range w.running("one", 8) {
		all = append(all, w.devices(&pod)...)
	}
	slices.Sort(all)
	if !slices.Equal(all, w.gpus()) {
		c.t.Errorf("8 pods have %v, the machine has %v", all, w.gpus())
	}
	c.scale("one", 0)
	w.replicas("eight", 1, 8)
	w.running("eight", 1)
}

// waits waits until the scheduler says why a pod of a ReplicaSet has no node.
func (c *cluster) waits(name, why string) {
	c.t.Helper()
	c.await("a pod of "+name+" to wait: "+why, func(ctx context.Context) error {
		pods, err := c.pods(ctx, name)
		for i := range pods {
			for _, cond := range pods[i].Status.Conditions {
				if cond.Type != v1.PodScheduled || cond.Status != v1.ConditionFalse {
					continue
				}
				if cond.Reason == v1.PodReasonUnschedulable && strings.Contains(cond.Message, why) {
					return nil
				}
				err = errors.Join(err, fmt.Errorf("%s: %s", pods[i].Name, cond.Message))
			}
		}
		return errors.Join(err, fmt.Errorf("none of %d does", len(pods)))
	})
}

// gone waits until a pod is no longer there.
func (c *cluster) gone(name string) {
	c.t.Helper()
	c.must(c.podGone(c.ctx, name))
}

// podGone waits until a pod is no longer there.
func (c *cluster) podGone(ctx context.Context, name string) error {
	return peer.Await(ctx, "the end of pod "+name, func(ctx context.Context) error {
		list, err := c.Client().CoreV1().Pods(peer.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err == nil && len(list.Items) > 0 {
			err = errors.New("it is there")
		}
		return err
	})
}

// lostAndBack: a free device that leaves is no longer given out, and one that leaves while
// a pod has it is shown in the pod's status. Both come back.
func lostAndBack(c *cluster) {
	w := c.join("lost-and-back", "hgx-h100")
	w.ready()
	w.replicas("holder", 1, 1)
	held := w.devices(&w.running("holder", 1)[0])[0]
	free := w.free(held)
	c.must(w.Machine.Unbind(w.address(free)))
	c.await("one device less", func(ctx context.Context) error { return w.offers(ctx, gpu, 7) })
	w.replicas("seven", 1, 7)
	w.waits("seven", "Insufficient "+gpu)
	c.must(w.Machine.Bind(w.address(free), "vfio-pci"))
	w.running("seven", 1)
	c.scale("seven", 0)

	c.must(w.Machine.UnbindBusy(w.address(held)))
	w.health("holder", held, v1.ResourceHealthStatusUnhealthy)
	c.await("one device less", func(ctx context.Context) error { return w.offers(ctx, gpu, 7) })
	c.must(w.Machine.Release(w.address(held)))
	c.must(w.Machine.Bind(w.address(held), "vfio-pci"))
	w.health("holder", held, v1.ResourceHealthStatusHealthy)
	c.await("all devices", func(ctx context.Context) error { return w.offers(ctx, gpu, 8) })
	if pod := w.running("holder", 1)[0]; pod.Status.ContainerStatuses[0].RestartCount != 0 {
		c.t.Errorf("the holder was restarted: %+v", pod.Status.ContainerStatuses)
	}
}

func (w *worker) address(id string) pci.Address {
	w.t.Helper()
	a, err := pci.ParseAddress(id)
	w.must(err)
	return a
}

// free is a GPU that is none of these.
func (w *worker) free(held ...string) string {
	w.t.Helper()
	for _, id := range w.gpus() {
		if !slices.Contains(held, id) {
			return id
		}
	}
	w.t.Fatalf("%v are all there are", held)
	return ""
}

// health waits until the API server shows a health of a pod's device.
func (w *worker) health(name, id string, want v1.ResourceHealthStatus) {
	w.t.Helper()
	w.await(fmt.Sprintf("%s of %s to be %s", id, name, want), func(ctx context.Context) error {
		pods, err := w.pods(ctx, name)
		if err != nil || len(pods) != 1 {
			return errors.Join(err, fmt.Errorf("there are %d pods", len(pods)))
		}
		for _, r := range pods[0].Status.ContainerStatuses[0].AllocatedResourcesStatus {
			for _, d := range r.Resources {
				if r.Name == gpu && string(d.ResourceID) == id && d.Health == want {
					return nil
				}
			}
		}
		return fmt.Errorf("its status is %+v", pods[0].Status.ContainerStatuses[0].AllocatedResourcesStatus)
	})
}

// rejectedAndReplaced: a device leaves after the scheduler has counted on it, and before
// kubelet hears of either. The pod is refused, not started with something else; its
// ReplicaSet's next one waits, and runs when the device is back.
func rejectedAndReplaced(c *cluster) {
	w := c.join("rejected", "hgx-h100")
	w.ready()
	w.replicas("seven", 1, 7)
	last := w.free(w.devices(&w.running("seven", 1)[0])...)
	c.must(w.Kubelet().Pause())
	c.must(w.Machine.Unbind(w.address(last)))
	w.replicas("late", 1, 1)
	c.await("the scheduler", func(ctx context.Context) error {
		pods, err := c.pods(ctx, "late")
		if err == nil && (len(pods) == 0 || pods[0].Spec.NodeName != w.Name()) {
			err = errors.New("the pod has no node")
		}
		return err
	})
	c.must(w.Kubelet().Resume())
	c.await("kubelet to refuse", func(ctx context.Context) error {
		failed, err := c.failed(ctx, "late")
		if err == nil && len(failed) == 0 {
			err = errors.New("it has not")
		}
		return err
	})
	w.waits("late", "Insufficient "+gpu)
	failed, err := c.failed(c.ctx, "late")
	c.must(err)
	if len(failed) == 0 {
		c.t.Error("those that were refused have gone: nothing is shown")
	}
	for i := range failed {
		if failed[i].Status.Reason != "UnexpectedAdmissionError" {
			c.t.Errorf("a pod failed for %s: %s", failed[i].Status.Reason, failed[i].Status.Message)
		}
	}
	c.t.Logf("%d pods were refused", len(failed))
	c.must(w.Machine.Bind(w.address(last), "vfio-pci"))
	c.await("a pod with the device", func(ctx context.Context) error {
		return errors.Join(w.offers(ctx, gpu, 8), c.someRuns(ctx, "late"))
	})
}

// failed are the pods of a ReplicaSet that have failed.
func (c *cluster) failed(ctx context.Context, name string) (failed []v1.Pod, err error) {
	pods, err := c.pods(ctx, name)
	for i := range pods {
		if pods[i].Status.Phase == v1.PodFailed {
			failed = append(failed, pods[i])
		}
	}
	return failed, err
}

func (c *cluster) someRuns(ctx context.Context, name string) error {
	pods, err := c.pods(ctx, name)
	for i := range pods {
		if pods[i].Status.Phase == v1.PodRunning {
			return nil
		}
	}
	return errors.Join(err, errors.New("no pod of "+name+" runs"))
}

// cordonAndTaint: the plugin comes to a node that is closed to everybody else, since pods
// that run there hold devices.
func cordonAndTaint(c *cluster) {
	w := c.join("tainted", "hgx-h100")
	before := w.ready()
	nodes := c.Client().CoreV1().Nodes()
	node, err := nodes.Get(c.ctx, w.Name(), metav1.GetOptions{})
	c.must(err)
	node.Spec.Unschedulable = true
	node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: "repair", Effect: v1.TaintEffectNoExecute})
	_, err = nodes.Update(c.ctx, node, metav1.UpdateOptions{})
	c.must(err)
	c.must(c.Client().CoreV1().Pods(system).Delete(c.ctx, before.Name, metav1.DeleteOptions{}))
	c.await("another pod of the plugin", func(context.Context) error {
		if pod := w.pluginReady(); pod.UID == before.UID {
			return errors.New("it is the one before")
		}
		return nil
	})
	c.await("the node's devices", func(ctx context.Context) error { return w.offers(ctx, gpu, 8) })
	w.replicas("outside", 1, 1)
	w.waits("outside", "were unschedulable")
	node, err = nodes.Get(c.ctx, w.Name(), metav1.GetOptions{})
	c.must(err)
	node.Spec.Unschedulable, node.Spec.Taints = false, nil
	_, err = nodes.Update(c.ctx, node, metav1.UpdateOptions{})
	c.must(err)
	w.running("outside", 1)
}
