//go:build !kubernetes134

package plane

import (
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

// resident is a pod that kubelet has seen. It outlives kubelet, as a sandbox does.
type resident struct {
	pod     *v1.Pod     // as last seen: kubelet ends pods also that are gone from the API
	started metav1.Time // zero until its claims are prepared
	exit    v1.PodPhase // of containers that have ended by themselves
	over    bool        // its claims are released, for ever
	held    bool        // it takes its time to end
}

// Run makes the node run its pods by itself: prepare, say that it runs; and at its end
// release, say that it has ended, remove it. Pods are independent of each other, and what
// fails is tried again, both as with kubelet. It goes on after a restart, without preparing
// pods again that run.
func (n *Node) Run() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.runs {
		return
	}
	n.runs = true
	if n.kubelet != nil {
		n.kubelet.run(n.residents)
	}
}

// Exit ends a pod's containers by themselves: the phase is Succeeded or Failed.
func (n *Node) Exit(pod *v1.Pod, phase v1.PodPhase) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.residents[pod.UID]
	if r == nil || n.kubelet == nil {
		return fmt.Errorf("end pod %s: node %s does not run it", pod.Name, n.Name)
	}
	r.exit = phase
	n.kubelet.queue.Add(pod.UID)
	return nil
}

// Hold makes a pod take its time to end: as a VM that shuts down it goes on until Release,
// whatever becomes of it in the API.
func (n *Node) Hold(pod *v1.Pod) { n.hold(pod, true) }

// Release ends what Hold has begun.
func (n *Node) Release(pod *v1.Pod) { n.hold(pod, false) }

func (n *Node) hold(pod *v1.Pod, held bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r := n.residents[pod.UID]; r != nil {
		r.held = held
	}
	if n.kubelet != nil {
		n.kubelet.queue.Add(pod.UID)
	}
}

// run starts the pod workers. It is called once in a life, with the node's lock held.
func (k *kubelet) run(residents map[types.UID]*resident) {
	k.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](50*time.Millisecond, 2*time.Second))
	add := func(o any) {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		if pod, ok := o.(*v1.Pod); ok {
			k.queue.Add(pod.UID)
		}
	}
	if _, err := k.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, o any) { add(o) }, DeleteFunc: add,
	}); err != nil {
		k.log.Error(err, "Pods cannot be followed")
	}
	for uid := range residents {
		k.queue.Add(uid)
	}
	events := record.NewBroadcaster(record.WithContext(k.ctx))
	events.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: k.client.CoreV1().Events("")})
	w := &worker{kubelet: k, events: events.NewRecorder(scheme.Scheme, v1.EventSource{Component: "kubelet", Host: k.node.Name})}
	for range 8 {
		k.running.Go(w.work)
	}
	k.running.Go(func() {
		defer events.Shutdown()
		defer k.queue.ShutDown()
		k.hear()
	})
}

// hear has pods looked at whose devices' health has changed.
func (k *kubelet) hear() {
	for {
		select {
		case update := <-k.manager.Updates():
			for _, uid := range update.PodUIDs {
				k.queue.Add(types.UID(uid))
			}
		case <-k.ctx.Done():
			return
		}
	}
}

type worker struct {
	*kubelet
	events record.EventRecorder
}

func (w *worker) work() {
	for {
		uid, end := w.queue.Get()
		if end {
			return
		}
		if err := w.sync(uid); err != nil {
			w.log.Error(err, "Pod is tried again", "uid", uid)
			w.queue.AddRateLimited(uid)
		} else {
			w.queue.Forget(uid)
		}
		w.queue.Done(uid)
	}
}

// sync takes a pod a step on. Before kubelet knows its pods it does nothing: one that is not
// there yet would look like one that is gone.
func (w *worker) sync(uid types.UID) error {
	if !w.pods.HasSynced() {
		return errors.New("the pods are not known yet")
	}
	pod := w.pod(uid)
	r, exit := w.node.resident(uid, pod)
	switch {
	case r == nil, w.node.holds(r) && !r.started.IsZero():
		return nil
	case pod == nil, pod.DeletionTimestamp != nil, exit != "":
		return w.end(r, pod, exit)
	case r.over || ended(pod):
		return nil
	case r.started.IsZero():
		if err := w.manager.PrepareResources(w.ctx, pod); err != nil {
			w.events.Eventf(pod, v1.EventTypeWarning, "FailedPrepareDynamicResources", "Prepare dynamic resources: %v", err)
			return err
		}
		r.started = metav1.Now().Rfc3339Copy()
	}
	return w.report(pod, r, v1.PodRunning)
}

// resident is what is known of a pod: one that was never seen becomes one, unless it is
// gone. Only the worker that has the pod in hand changes it, but for exit.
func (n *Node) resident(uid types.UID, pod *v1.Pod) (*resident, v1.PodPhase) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.residents[uid]
	if r == nil && pod != nil {
		r = &resident{}
		n.residents[uid] = r
	}
	if r == nil {
		return nil, ""
	}
	if pod != nil {
		r.pod = pod
	}
	return r, r.exit
}

func (n *Node) holds(r *resident) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return r.held
}

// end is kubelet's order (SyncTerminatingPod and what follows): release, then tell, then
// remove.
func (w *worker) end(r *resident, pod *v1.Pod, exit v1.PodPhase) error {
	if !r.over {
		if err := w.manager.UnprepareResources(w.ctx, r.pod); err != nil {
			return err
		}
		r.over = true
	}
	if pod == nil {
		w.node.mu.Lock()
		delete(w.node.residents, r.pod.UID)
		w.node.mu.Unlock()
		return nil
	}
	if exit == "" {
		exit = v1.PodSucceeded
	}
	if !ended(pod) {
		return w.report(pod, r, exit) // whose event brings the pod here again
	}
	if pod.DeletionTimestamp == nil {
		return nil
	}
	err := w.client.CoreV1().Pods(pod.Namespace).Delete(w.ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
