//go:build !kubernetes134

package plane

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Prepare has kubelet prepare the claims of a pod that is bound to the node, as it does
// before it makes the pod's sandbox.
func (n *Node) Prepare(ctx context.Context, pod *v1.Pod) error {
	k, err := n.alive()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, k.log), deadline)
	defer cancel()
	err = await(ctx, func(ctx context.Context) error {
		known := k.pod(pod.UID)
		if known == nil {
			return fmt.Errorf("kubelet of node %s has not heard of pod %s", n.Name, pod.Name)
		}
		pod = known
		return k.readable(ctx, pod)
	})
	if err != nil {
		return err
	}
	return k.manager.PrepareResources(ctx, pod)
}

// readable says whether the node may read the pod's claims. The authorizer learns that from
// a watch, a moment after the scheduler has written it; kubelet would fail and try again.
func (k *kubelet) readable(ctx context.Context, pod *v1.Pod) error {
	for name := range resourceclaim.PodClaims(pod) {
		_, err := k.client.ResourceV1().ResourceClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsForbidden(err) {
			return err
		}
	}
	return nil
}

// Unprepare has kubelet release a pod's claims, as it does once all its containers have
// stopped and before it says so in the pod's status. The pod may be gone from the API.
func (n *Node) Unprepare(ctx context.Context, pod *v1.Pod) error {
	k, err := n.alive()
	if err != nil {
		return err
	}
	return k.manager.UnprepareResources(klog.NewContext(ctx, k.log), k.latest(pod))
}

// Reconcile has kubelet look now for claims whose pods are gone.
func (n *Node) Reconcile(ctx context.Context) error {
	k, err := n.alive()
	if err != nil {
		return err
	}
	reconcile(k.manager, klog.NewContext(ctx, k.log))
	return nil
}

// latest is kubelet's newer knowledge of a pod, if it has some.
func (k *kubelet) latest(pod *v1.Pod) *v1.Pod {
	if known := k.pod(pod.UID); known != nil {
		return known
	}
	return pod
}

// CDIDevices are the names of the CDI devices that kubelet gives to the container runtime
// for a container.
func (n *Node) CDIDevices(pod *v1.Pod, container string) ([]string, error) {
	k, pod, c, err := n.find(pod, container)
	if err != nil {
		return nil, err
	}
	info, err := k.manager.GetResources(pod, c)
	if err != nil {
		return nil, fmt.Errorf("ask for the CDI devices of %s/%s: %w", pod.Name, container, err)
	}
	var names []string
	for _, d := range info.CDIDevices {
		names = append(names, d.Name)
	}
	return names, nil
}

// Claims are a container's claims as PodResources shows them.
func (n *Node) Claims(pod *v1.Pod, container string) ([]*api.DynamicResource, error) {
	k, pod, c, err := n.find(pod, container)
	if err != nil {
		return nil, err
	}
	return k.GetDynamicResources(k.log, pod, c), nil
}

// Health is what kubelet would write of a container's devices into the pod's status
// (allocatedResourcesStatus), by their first CDI name. Kubelet leaves out extended resources.
func (n *Node) Health(pod *v1.Pod, container string) (map[string]v1.ResourceHealth, error) {
	k, pod, _, err := n.find(pod, container)
	if err != nil {
		return nil, err
	}
	status := v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: container}}}
	k.manager.UpdateAllocatedResourcesStatus(k.log, pod, &status)
	health := map[string]v1.ResourceHealth{}
	for _, r := range status.ContainerStatuses[0].AllocatedResourcesStatus {
		for _, d := range r.Resources {
			health[string(d.ResourceID)] = d
		}
	}
	return health, nil
}

func (n *Node) find(pod *v1.Pod, container string) (*kubelet, *v1.Pod, *v1.Container, error) {
	k, err := n.alive()
	if err != nil {
		return nil, nil, nil, err
	}
	pod = k.latest(pod)
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == container {
			return k, pod, &pod.Spec.Containers[i], nil
		}
	}
	return nil, nil, nil, fmt.Errorf("pod %s has no container %s", pod.Name, container)
}
