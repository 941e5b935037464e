//go:build node

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kata-device-plugin/test/peer"
)

// rollingUpdate: the plugin is replaced and replaced again while pods come and go. Those
// that run keep their devices and are not restarted; those that come get theirs or are
// refused, and none gets what is another's.
func rollingUpdate(c *cluster) {
	w := c.join("rollout", "hgx-h100")
	w.ready()
	w.replicas("holders", 4, 1)
	before := w.running("holders", 4)
	var held []string
	for i := range before {
		held = append(held, w.devices(&before[i])...)
	}

	load := w.load(held)
	for _, name := range []string{"kata-device-plugin:next", "kata-device-plugin:dev"} {
		c.image(daemonSet, name)
		c.complete(daemonSet, 1)
		if pod := w.ready(); pod.Spec.Containers[0].Image != name || pod.Status.ContainerStatuses[0].RestartCount != 0 {
			c.t.Errorf("the plugin's pod has %s and %+v", pod.Spec.Containers[0].Image, pod.Status.ContainerStatuses)
		}
	}
	c.must(load.end())
	c.t.Log(load)
	if load.ran == 0 {
		c.t.Error("no pod ran during the rollout: nothing is shown")
	}

	after := w.running("holders", 4)
	slices.SortFunc(before, byName)
	slices.SortFunc(after, byName)
	for i := range after {
		if after[i].UID != before[i].UID || after[i].Status.ContainerStatuses[0].RestartCount != 0 {
			c.t.Errorf("%s did not go on: %+v", before[i].Name, after[i].Status)
		}
	}
	for _, id := range append(w.gpus(), w.switches()...) {
		resource := gpu
		if slices.Contains(w.switches(), id) {
			resource = nvswitch
		}
		if _, err := w.Resolve(resource + "=" + id); err != nil {
			c.t.Error(err) // also when two specs define it
		}
	}
}

func byName(a, b v1.Pod) int { return strings.Compare(a.Name, b.Name) }

// image changes the DaemonSet's, as an upgrade does.
func (c *cluster) image(daemonSet, name string) {
	c.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`, daemonSet, name)
	_, err := c.Client().AppsV1().DaemonSets(system).Patch(c.ctx, daemonSet, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	c.must(err)
}

// load is one pod after the other that asks for a device.
type load struct {
	stop    context.CancelFunc
	done    chan error
	ran     int
	refused map[string]int // by reason
	longest time.Duration  // from a pod's creation until it ran
}

func (l *load) String() string {
	return fmt.Sprintf("%d pods ran, the slowest after %s; refused: %v", l.ran, l.longest.Round(time.Millisecond), l.refused)
}

// end ends the load with the pod that is under way.
func (l *load) end() error {
	l.stop()
	return <-l.done
}

// load starts to make pods. None may get one of the devices that are held.
func (w *worker) load(held []string) *load {
	ctx, cancel := context.WithCancel(w.ctx)
	l := &load{stop: cancel, done: make(chan error, 1), refused: map[string]int{}}
	w.t.Cleanup(func() { // where the test has not come to its end
		cancel()
		err := w.Client().CoreV1().Pods(peer.Namespace).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=load"})
		if err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			err = w.noPods(ctx, "load")
		}
		if err != nil {
			w.t.Errorf("remove the pods of the load: %v", err)
		}
	})
	go func() {
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				l.done <- nil
				return
			default:
			}
			if err := l.one(w, fmt.Sprintf("load-%d", i), held); err != nil {
				l.done <- err
				return
			}
		}
	}()
	return l
}

// one has one pod run and go, or be refused.
func (l *load) one(w *worker, name string, held []string) error {
	pods := w.Client().CoreV1().Pods(peer.Namespace)
	pod := peer.NewPod(name, gpu, 1)
	pod.Labels = map[string]string{"app": "load"}
	pod.Spec.RestartPolicy = v1.RestartPolicyNever
	if _, err := pods.Create(w.ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	created := time.Now()
	err := peer.Await(w.ctx, name, func(ctx context.Context) (err error) {
		if pod, err = pods.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if pod.Status.Phase == v1.PodPending {
			err = fmt.Errorf("it is pending: %+v", pod.Status.Conditions)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case pod.Status.Phase == v1.PodFailed:
		l.refused[pod.Status.Reason]++
		if pod.Status.Reason != "UnexpectedAdmissionError" {
			return fmt.Errorf("%s failed: %+v", name, pod.Status)
		}
	default:
		l.ran++
		l.longest = max(l.longest, time.Since(created))
		_, got, err := w.AwaitDevices(w.ctx, name, gpu, 1)
		if err != nil {
			return err
		}
		if slices.Contains(held, got[0]) {
			return fmt.Errorf("%s got %s, which is another's", name, got[0])
		}
	}
	now := int64(1)
	if err := pods.Delete(w.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		return err
	}
	return peer.Await(w.ctx, "the end of "+name, func(ctx context.Context) error {
		list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err == nil && len(list.Items) > 0 {
			err = errors.New("it is there")
		}
		return err
	})
}

// reboot: the power goes, and the devices come back under other numbers. kubelet starts
// before the plugin, as it always does. Whether it then refuses the pods that were there, so
// that their ReplicaSet makes others, or runs them: those that run have devices that are
// theirs.
func reboot(c *cluster) {
	w := c.join("reboot", "hgx-h100")
	w.ready()
	w.replicas("survivors", 3, 1)
	var before []string // the containers of this boot
	for _, pod := range w.running("survivors", 3) {
		before = append(before, peer.Container(&pod).ContainerID)
	}
	boot := w.bootID()
	first, _, err := w.DeviceNode(w.gpus()[0])
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

	c.await("another boot", func(context.Context) error {
		if w.bootID() == boot {
			return errors.New("it is the one before")
		}
		return nil
	})
	if now, _, err := w.DeviceNode(w.gpus()[0]); err != nil || now == first {
		c.t.Errorf("%s is %s as before, %v: nothing is shown", w.gpus()[0], now, err)
	}
	var survivors []v1.Pod
	c.await("three that run in this boot", func(ctx context.Context) error {
		pods, err := c.pods(ctx, "survivors")
		survivors = nil
		for i := range pods {
			// What the API server shows is of the boot before until kubelet has spoken. Times
			// do not tell: they are in whole seconds, and the power may go in a pod's first.
			status := peer.Container(&pods[i])
			if pods[i].Status.Phase == v1.PodRunning && status.State.Running != nil && !slices.Contains(before, status.ContainerID) {
				survivors = append(survivors, pods[i])
			}
		}
		if len(survivors) != 3 {
			err = errors.Join(err, fmt.Errorf("%d do", len(survivors)))
		}
		return err
	})
	w.ready()
	failed, err := c.failed(c.ctx, "survivors")
	c.must(err)
	reasons := map[string]int{}
	for i := range failed {
		reasons[failed[i].Status.Reason]++
	}
	c.t.Logf("refused after the boot: %v", reasons)
	var held []string
	for i := range survivors {
		held = append(held, w.devices(&survivors[i])...)
	}
	slices.Sort(held)
	if len(slices.Compact(slices.Clone(held))) != 3 {
		c.t.Errorf("three pods have %v", held)
	}
}

func (w *worker) bootID() string {
	w.t.Helper()
	node, err := w.Client().CoreV1().Nodes().Get(w.ctx, w.Name(), metav1.GetOptions{})
	w.must(err)
	return node.Status.NodeInfo.BootID
}
