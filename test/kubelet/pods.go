package kubelet

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
)

// Rejection is the error of a pod that kubelet refused. On a node the pod's phase
// turns Failed, with this reason and message in its status.
type Rejection struct {
	Pod     string // namespace/name
	Reason  string // such as UnexpectedAdmissionError or TopologyAffinityError
	Message string
}

// Error implements error.
func (r *Rejection) Error() string {
	return fmt.Sprintf("pod %s rejected: %s: %s", r.Pod, r.Reason, r.Message)
}

// Pod makes a pod with one container, "c", that asks for n devices of a resource.
// Each call makes a new pod, with a UID of its own, even under the same name.
func Pod(name, resourceName string, n int64) *v1.Pod {
	list := v1.ResourceList{v1.ResourceName(resourceName): *resource.NewQuantity(n, resource.DecimalSI)}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, UID: uuid.NewUUID()},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name:      "c",
			Resources: v1.ResourceRequirements{Limits: list, Requests: list},
		}}},
	}
}

// Admit admits a pod: the topology manager merges the hints for each container and
// then has the device manager allocate, which calls the plugins. A refused pod is
// a *Rejection and holds nothing.
func (k *Kubelet) Admit(ctx context.Context, pod *v1.Pod) error {
	k.admission.Lock()
	defer k.admission.Unlock()
	if err := k.alive(); err != nil {
		return fmt.Errorf("admit pod %s: %w", klog.KObj(pod), err)
	}
	k.add(pod)
	result := admit(klog.NewContext(ctx, k.log), k.topology, pod)
	if !result.Admit {
		k.Remove(pod)
		return &Rejection{Pod: klog.KObj(pod).String(), Reason: result.Reason, Message: result.Message}
	}
	k.changes.broadcast()
	return nil
}

// readmit admits the pods that outlived the last kubelet, as each start of kubelet
// does, before it takes new ones.
func (k *Kubelet) readmit(ctx context.Context, pods []*v1.Pod) error {
	for _, pod := range pods {
		if err := k.Admit(ctx, pod); err != nil {
			return fmt.Errorf("admit a running pod again: %w", err)
		}
	}
	k.sources.seen.Store(true)
	return nil
}

// Remove ends a pod. As on a node its devices are free at the next look, which is
// the next admission or PodResources List; plugins are not told.
func (k *Kubelet) Remove(pod *v1.Pod) {
	k.mu.Lock()
	k.pods = slices.DeleteFunc(k.pods, func(p *v1.Pod) bool { return p.UID == pod.UID })
	k.mu.Unlock()
	k.changes.broadcast()
}

func (k *Kubelet) add(pod *v1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.ContainsFunc(k.pods, func(p *v1.Pod) bool { return p.UID == pod.UID }) {
		k.pods = append(k.pods, pod)
	}
}

// active are the pods that hold devices.
func (k *Kubelet) active() []*v1.Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.pods)
}

// sources answers whether kubelet has heard of all its pods. Until then it frees
// no device, and lets a container that runs keep what it has.
type sources struct{ seen atomic.Bool }

func (s *sources) AddSource(string) {}
func (s *sources) AllReady() bool   { return s.seen.Load() }

// containersOf is the container runtime's answer to what it runs.
func containersOf(pods []*v1.Pod) (containermap.ContainerMap, sets.Set[string]) {
	containers, running := containermap.NewContainerMap(), sets.New[string]()
	for _, pod := range pods {
		for _, c := range pod.Spec.Containers {
			id := string(pod.UID) + "/" + c.Name
			containers.Add(string(pod.UID), c.Name, id)
			running.Insert(id)
		}
	}
	return containers, running
}
