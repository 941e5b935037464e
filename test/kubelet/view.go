package kubelet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
)

// Devices is what the node's status shows of a resource. ok says whether it shows
// it at all: the key of a resource whose plugin has left stays, at first with its
// capacity and 0 allocatable.
func (k *Kubelet) Devices(resource string) (capacity, allocatable int64, ok bool) {
	all, healthy, _ := k.manager.GetCapacity(k.log)
	total, ok := all[v1.ResourceName(resource)]
	free := healthy[v1.ResourceName(resource)]
	return total.Value(), free.Value(), ok
}

// Resources are the names for which the node's status has a capacity, sorted.
func (k *Kubelet) Resources() []string {
	all, _, _ := k.manager.GetCapacity(k.log)
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return names
}

// Allocatable are the IDs of a resource's healthy devices, held or free, sorted.
func (k *Kubelet) Allocatable(resource string) []string {
	return ids(k.manager.GetAllocatableDevices(k.log)[resource])
}

// Allocated are the IDs of the devices of a resource that a container holds,
// sorted. After a restart they come from the checkpoint.
func (k *Kubelet) Allocated(pod *v1.Pod, container, resource string) []string {
	return ids(k.manager.GetDevices(string(pod.UID), container)[resource])
}

func ids(devices devicemanager.DeviceInstances) []string {
	return slices.Sorted(maps.Keys(devices))
}

// Health is what the pod's status says (allocatedResourcesStatus) of the devices
// of a resource that a container holds, by device ID. Kubelet calls a device
// healthy unless its plugin says otherwise, also when nobody announces it.
func (k *Kubelet) Health(pod *v1.Pod, container, resource string) map[string]v1.ResourceHealthStatus {
	status := v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: container}}}
	k.manager.UpdateAllocatedResourcesStatus(k.log, pod, &status)
	health := map[string]v1.ResourceHealthStatus{}
	for _, r := range status.ContainerStatuses[0].AllocatedResourcesStatus {
		if r.Name != v1.ResourceName(resource) {
			continue
		}
		for _, d := range r.Resources {
			health[string(d.ResourceID)] = d.Health
		}
	}
	return health
}

// String is the node's status in a line, for messages.
func (k *Kubelet) String() string {
	var parts []string
	for _, name := range k.Resources() {
		capacity, allocatable, _ := k.Devices(name)
		parts = append(parts, fmt.Sprintf("%s %d of %d allocatable", name, allocatable, capacity))
	}
	if parts == nil {
		return "no resources"
	}
	return strings.Join(parts, ", ")
}
