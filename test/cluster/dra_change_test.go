//go:build node

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/test/peer"
)

// draForceDelete: a pod is deleted by force, and the scheduler gives its device to the next
// one before kubelet has ended it. That one waits for the container to end, and says for whom.
func draForceDelete(c *cluster) {
	w := c.joinDRA("dra-force", hgxH100)
	driver := w.driverReady()
	c.template(wholeBoard) // so that there is nothing else to give
	old := claimPod("old", wholeBoard)
	grace := int64(10)
	old.Spec.TerminationGracePeriodSeconds = &grace
	old.Spec.Containers[0].Command[2] = strings.Replace(old.Spec.Containers[0].Command[2], "trap 'exit 0' TERM", "trap '' TERM", 1)
	c.pod(old)
	held := w.claimed("old")
	pod, err := w.PodStatus(c.ctx, "old")
	c.must(err)
	id := peer.Container(pod).ContainerID

	c.must(w.Kubelet().Pause()) // it is slower than the scheduler
	none := int64(0)
	c.must(c.Client().CoreV1().Pods(peer.Namespace).Delete(c.ctx, "old", metav1.DeleteOptions{GracePeriodSeconds: &none}))
	c.gone("old")
	c.pod(claimPod("next", wholeBoard))
	next := c.bound("next")
	claim := c.claimOf(next)
	if got := len(claim.Status.Allocation.Devices.Results); got != len(held) {
		c.t.Errorf("the next pod is to get %d devices, want the %d of the old one", got, len(held))
	}
	c.must(w.Kubelet().Resume())

	c.await("an event at the claim", func(ctx context.Context) error {
		list, err := c.Client().CoreV1().Events(peer.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(claim.UID)})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if e := &list.Items[i]; e.Reason == "DevicesNotPrepared" && strings.Contains(e.Message, "is held by claim default/old") {
				return nil
			}
		}
		return fmt.Errorf("there are %d events", len(list.Items))
	})
	if got := w.claimed("next"); !slices.Equal(got, held) {
		c.t.Errorf("the next pod has %v, want %v", got, held)
	}
	if tasks, err := w.Containerd().Ctr(c.ctx, "task", "ls", "-q"); err != nil || strings.Contains(tasks, strings.TrimPrefix(id, "containerd://")) {
		c.t.Errorf("the next pod runs beside the old one's container: %s, %v", tasks, err)
	}
	if pod := w.driverReady(); pod.UID != driver.UID || pod.Status.ContainerStatuses[0].RestartCount != 0 {
		c.t.Errorf("the driver did not go on: %+v", pod.Status.ContainerStatuses)
	}
}

// bound waits until the scheduler has given a pod a node, and returns it.
func (c *cluster) bound(name string) (pod *v1.Pod) {
	c.t.Helper()
	c.await("a node for pod "+name, func(ctx context.Context) (err error) {
		pod, err = c.Client().CoreV1().Pods(peer.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && pod.Spec.NodeName == "" {
			err = fmt.Errorf("its status is %+v", pod.Status)
		}
		return err
	})
	return pod
}

// draRestarts: the driver is killed and replaced, and kubelet is restarted. Pods that run keep
// their devices and are not restarted, new ones get theirs, and nothing is written to the slices
// unless kubelet has removed them.
func draRestarts(c *cluster) {
	w := c.joinDRA("dra-restarts", hgxH100)
	driver := w.driverReady()
	c.template(singleGPU)
	c.pod(claimPod("stays", singleGPU))
	c.pod(peer.NewPod("stays-plain", gpu, 1))
	stays := []holding{w.holding("stays"), w.holding("stays-plain")}
	before := versions(w.slices())
	again := func(what string, slicesStay bool) {
		for _, h := range stays {
			w.goesOn(what, h)
		}
		c.pod(claimPod("new", singleGPU))
		for _, id := range w.claimed("new") {
			if slices.Contains(stays[0].devices, id) || slices.Contains(stays[1].devices, id) {
				c.t.Errorf("%s: the new pod has %s, which is another's", what, id)
			}
		}
		c.remove("new")
		if now := versions(w.slices()); slicesStay && !slices.Equal(now, before) {
			c.t.Errorf("%s: the slices were %v, and are %v", what, before, now)
		}
	}

	c.must(w.Containerd().KillTask(c.ctx, driver.Status.ContainerStatuses[0].ContainerID))
	c.await("the driver's next life", func(context.Context) error {
		if s := w.podReady(draDaemonSet).Status.ContainerStatuses[0]; s.RestartCount != 1 {
			return fmt.Errorf("it is %+v", s)
		}
		return nil
	})
	again("driver killed", true)

	// A rollout in which a new pod is ready less than 11 seconds after the old one stops there, until
	// something else happens to the DaemonSet's pods: of two delayed looks at it the controller
	// keeps the first (client-go, util/workqueue/delaying_queue.go), which is too early for the new pod,
	// and asks for another one for the old pod alone (updateDaemonSetStatus in pkg/controller/daemon).
	c.complete(draDaemonSet, 1)
	for _, name := range []string{draDaemonSet + ":next", draDaemonSet + ":dev"} {
		c.image(draDaemonSet, name)
		c.complete(draDaemonSet, 1)
		if pod := w.driverReady(); pod.Spec.Containers[0].Image != name || pod.Status.ContainerStatuses[0].RestartCount != 0 {
			c.t.Errorf("the driver's pod has %s and %+v", pod.Spec.Containers[0].Image, pod.Status.ContainerStatuses)
		}
		again("update to "+name, true)
	}

	c.must(w.Kubelet().Restart(c.ctx))
	c.await("slices after kubelet's restart", func(context.Context) error {
		if now := versions(w.slices()); len(now) == 0 || slices.Equal(now, before) {
			return fmt.Errorf("they are %v, and were %v", now, before)
		}
		return nil
	})
	w.driverReady()
	again("kubelet restarted", false)
}

// holding is a pod that runs, and what it has.
type holding struct {
	pod     *v1.Pod
	devices []string
}

func (w *worker) holding(name string) holding {
	w.t.Helper()
	devices := w.claimed(name)
	pod, err := w.PodStatus(w.ctx, name)
	w.must(err)
	return holding{pod, devices}
}

// goesOn complains unless a pod with a claim has what it had, in the container that it had.
func (w *worker) goesOn(what string, before holding) {
	w.t.Helper()
	w.same(what, before, w.holding(before.pod.Name))
}

// same complains unless a pod has what it had, in the container that it had.
func (w *worker) same(what string, before, now holding) {
	w.t.Helper()
	was, is := peer.Container(before.pod), peer.Container(now.pod)
	if now.pod.UID != before.pod.UID || is.ContainerID != was.ContainerID || is.RestartCount != 0 {
		w.t.Errorf("%s: %s did not go on: %+v", what, before.pod.Name, is)
	}
	if !slices.Equal(now.devices, before.devices) {
		w.t.Errorf("%s: %s had %v, and has %v", what, before.pod.Name, before.devices, now.devices)
	}
}

// versions tell whether slices were written.
func versions(all []resourceapi.ResourceSlice) []string {
	var versions []string
	for i := range all {
		versions = append(versions, all[i].Name+" "+all[i].ResourceVersion)
	}
	slices.Sort(versions)
	return versions
}

// draReboot: the power goes, and the devices come back under other numbers. Pods go on with the
// devices that they had, as soon as the driver is there, by the nodes that these have now. To the
// driver it is the boot of before: in its container nobody can put another ID in place of the
// kernel's.
func draReboot(c *cluster) {
	w := c.joinDRA("dra-reboot", hgxH100)
	w.driverReady()
	c.template(singleGPU)
	c.pod(claimPod("survivor", singleGPU))
	c.pod(peer.NewPod("survivor-plain", gpu, 2))
	before := []holding{w.holding("survivor"), w.holding("survivor-plain")}
	first, _, err := w.DeviceNode(before[0].devices[0])
	c.must(err)

	c.must(w.PowerOff(c.ctx))
	ids := w.gpus()
	for _, id := range ids {
		c.must(w.Machine.Unbind(w.address(id)))
	}
	slices.Reverse(ids)
	for _, id := range ids {
		c.must(w.Machine.Bind(w.address(id), "vfio-pci"))
	}
	c.must(w.PowerOn(c.ctx))
	c.must(w.Kubelet().Start(c.ctx))
	if now, _, err := w.DeviceNode(before[0].devices[0]); err != nil || now == first {
		c.t.Errorf("%s is %s as before, %v: nothing is shown", before[0].devices[0], now, err)
	}
	for _, h := range before {
		_, err := w.AwaitPod(c.ctx, h.pod.Name, "to run in this boot", func(pod *v1.Pod) error {
			if s := peer.Container(pod); s.State.Running == nil || s.ContainerID == peer.Container(h.pod).ContainerID {
				return fmt.Errorf("its container is %s", s.ContainerID)
			}
			return nil
		})
		c.must(err)
		now := w.holding(h.pod.Name)
		if now.pod.UID != h.pod.UID || !slices.Equal(now.devices, h.devices) {
			c.t.Errorf("pod %s %s had %v, and %s has %v", h.pod.Name, h.pod.UID, h.devices, now.pod.UID, now.devices)
		}
	}
	w.driverReady()
	c.pod(claimPod("new", singleGPU))
	if got := w.claimed("new"); slices.Contains(slices.Concat(before[0].devices, before[1].devices), got[0]) {
		c.t.Errorf("the new pod has %v, which is another's", got)
	}
}
