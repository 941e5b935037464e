package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
	apigrpc "k8s.io/kubernetes/pkg/kubelet/apis/grpc"
	"k8s.io/kubernetes/pkg/kubelet/apis/podresources"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
)

// PodResources serves kubelet's PodResources API, v1, on a socket until Stop, with
// kubelet's rate limit: a burst of 10 calls, then 100 in a second. A socket that
// an earlier kubelet left there is replaced.
func (k *Kubelet) PodResources(socketPath string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.alive(); err != nil {
		return fmt.Errorf("serve PodResources on %s: %w", socketPath, err)
	}
	if err := os.MkdirAll(filepath.Dir(socketPath), 0o750); err != nil {
		return fmt.Errorf("make the directory of the PodResources socket: %w", err)
	}
	if err := os.Remove(socketPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the old PodResources socket: %w", err)
	}
	l, err := listen(socketPath)
	if err != nil {
		return err
	}
	ctx := klog.NewContext(context.Background(), k.log)
	s := grpc.NewServer(
		apigrpc.WithRateLimiter(ctx, "podresources", podresources.DefaultQPS, podresources.DefaultBurstTokens),
		grpc.ChainUnaryInterceptor(logInto(k.log)),
	)
	api.RegisterPodResourcesListerServer(s, podresources.NewV1PodResourcesServer(ctx, providers(activePods{k}, devices{k.manager})))
	k.servers = append(k.servers, s)
	k.serving.Go(func() {
		if err := s.Serve(l); err != nil {
			k.log.Error(err, "PodResources ended", "socket", socketPath)
		}
	})
	return nil
}

// activePods is the kubelet's pods as PodResources sees them.
type activePods struct{ k *Kubelet }

func (a activePods) GetActivePods() []*v1.Pod { return a.k.active() }
func (a activePods) GetPods() []*v1.Pod       { return a.k.active() }

func (a activePods) GetPodByName(namespace, name string) (*v1.Pod, bool) {
	for _, pod := range a.k.active() {
		if pod.Namespace == namespace && pod.Name == name {
			return pod, true
		}
	}
	return nil, false
}

// devices is the device manager as PodResources sees it. Kubelet's container
// manager translates between the two, in a package that drags in half of kubelet.
type devices struct{ m *manager }

func (d devices) UpdateAllocatedDevices(log klog.Logger) { d.m.UpdateAllocatedDevices(log) }

func (d devices) GetDevices(uid, container string) []*api.ContainerDevices {
	return containerDevices(d.m.GetDevices(uid, container))
}

func (d devices) GetAllocatableDevices(log klog.Logger) []*api.ContainerDevices {
	return containerDevices(d.m.GetAllocatableDevices(log))
}

// containerDevices lists a device once for each of its NUMA nodes. A device with a
// topology but no node in it therefore vanishes, as it does on a node.
func containerDevices(instances devicemanager.ResourceDeviceInstances) []*api.ContainerDevices {
	var list []*api.ContainerDevices
	for resource, devices := range instances {
		for id, device := range devices {
			if device.GetTopology() == nil {
				list = append(list, &api.ContainerDevices{ResourceName: resource, DeviceIds: []string{id}})
				continue
			}
			for _, node := range device.GetTopology().GetNodes() {
				list = append(list, &api.ContainerDevices{
					ResourceName: resource,
					DeviceIds:    []string{id},
					Topology:     &api.TopologyInfo{Nodes: []*api.NUMANode{{ID: node.GetID()}}},
				})
			}
		}
	}
	return list
}
