//go:build !kubernetes134

package plane

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

const (
	// deadline is for anything that is waited for. Most of it takes milliseconds; removing the
	// slices of a driver that is gone takes kubelet half a minute.
	deadline = 90 * time.Second
	// poll is how often something is looked at whose change nobody announces.
	poll = 20 * time.Millisecond
)

// Await looks until there is nothing to complain about. It fails the test after a minute
// and a half, with the last complaint.
func Await(t testing.TB, what string, look func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if err := await(ctx, look); err != nil {
		t.Fatalf("wait for %s: %v", what, err)
	}
}

func await(ctx context.Context, look func(context.Context) error) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	var last error
	for {
		err := look(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err // one that ctx caused says nothing
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), last)
		}
	}
}

// AwaitPod waits until a pod is as it should be, and returns it.
func (p *Plane) AwaitPod(t testing.TB, pod *v1.Pod, what string, look func(*v1.Pod) error) *v1.Pod {
	t.Helper()
	var now *v1.Pod
	Await(t, "pod "+pod.Name+" to be "+what, func(ctx context.Context) (err error) {
		now, err = p.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return look(now)
	})
	return now
}

// AwaitBound waits until the scheduler has found a node for a pod.
func (p *Plane) AwaitBound(t testing.TB, pod *v1.Pod) *v1.Pod {
	t.Helper()
	return p.AwaitPod(t, pod, "bound", func(now *v1.Pod) error {
		if now.Spec.NodeName == "" {
			return fmt.Errorf("it waits: %s", scheduled(now).Message)
		}
		return nil
	})
}

// AwaitPhase waits until a pod is in a phase. It takes a node that runs its pods: Node.Run.
func (p *Plane) AwaitPhase(t testing.TB, pod *v1.Pod, phase v1.PodPhase) *v1.Pod {
	t.Helper()
	return p.AwaitPod(t, pod, string(phase), func(now *v1.Pod) error {
		if now.Status.Phase != phase {
			return fmt.Errorf("it is %s: %s", now.Status.Phase, scheduled(now).Message)
		}
		return nil
	})
}

// AwaitGone waits until there is no such pod. Another one of the same name does not count.
func (p *Plane) AwaitGone(t testing.TB, pod *v1.Pod) {
	t.Helper()
	Await(t, "pod "+pod.Name+" to be gone", func(ctx context.Context) error {
		now, err := p.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID:
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("it is %s", now.Status.Phase)
	})
}

// scheduled is the pod's condition of that name, empty if there is none yet.
func scheduled(pod *v1.Pod) v1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled {
			return c
		}
	}
	return v1.PodCondition{}
}

// Slices are a driver's slices of a node, in the order of their names, which is the one in
// which the scheduler takes devices.
func (p *Plane) Slices(t testing.TB, driver, node string) []resourceapi.ResourceSlice {
	t.Helper()
	list, err := p.slices(t.Context(), driver, node)
	if err != nil {
		t.Fatalf("list the slices of %s on %s: %v", driver, node, err)
	}
	return list
}

// AwaitSlices waits until the slices of a driver on a node are as they should be.
func (p *Plane) AwaitSlices(t testing.TB, driver, node, what string, look func([]resourceapi.ResourceSlice) error) []resourceapi.ResourceSlice {
	t.Helper()
	var list []resourceapi.ResourceSlice
	Await(t, fmt.Sprintf("the slices of %s on %s to be %s", driver, node, what), func(ctx context.Context) (err error) {
		if list, err = p.slices(ctx, driver, node); err != nil {
			return err
		}
		return look(list)
	})
	return list
}

func (p *Plane) slices(ctx context.Context, driver, node string) ([]resourceapi.ResourceSlice, error) {
	list, err := p.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: fields.Set{
		resourceapi.ResourceSliceSelectorDriver: driver, resourceapi.ResourceSliceSelectorNodeName: node,
	}.String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
