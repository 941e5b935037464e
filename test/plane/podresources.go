//go:build !kubernetes134

package plane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
	apigrpc "k8s.io/kubernetes/pkg/kubelet/apis/grpc"
	"k8s.io/kubernetes/pkg/kubelet/apis/podresources"
)

// servePodResources serves kubelet's PodResources API with kubelet's rate limit. A socket
// that an earlier life left is replaced, and this one's stays, as on a node.
func (k *kubelet) servePodResources(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the old PodResources socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen on %s (a path of %d bytes, of which a unix socket takes 107): %w", path, len(path), err)
	}
	l.SetUnlinkOnClose(false)
	ctx := klog.NewContext(k.ctx, k.log)
	k.server = grpc.NewServer(
		apigrpc.WithRateLimiter(ctx, "podresources", podresources.DefaultQPS, podresources.DefaultBurstTokens),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			return handle(klog.NewContext(ctx, k.log), request)
		}),
	)
	api.RegisterPodResourcesListerServer(k.server, podresources.NewV1PodResourcesServer(ctx, podresources.PodResourcesProviders{
		Pods: k, Devices: k, Cpus: nothing{}, Memory: nothing{}, DynamicResources: k,
	}))
	k.running.Go(func() {
		if err := k.server.Serve(l); err != nil {
			k.log.Error(err, "PodResources ended", "socket", path)
		}
	})
	return nil
}

// GetDynamicResources translates as kubelet's container manager does, in a package that
// drags in half of kubelet (cm/container_manager_linux.go). The list of CDI devices of a
// driver grows from one device to the next there too, and is not cut to what the container
// requested: readers have to live with both.
func (k *kubelet) GetDynamicResources(log klog.Logger, pod *v1.Pod, container *v1.Container) []*api.DynamicResource {
	infos, err := k.manager.GetContainerClaimInfos(pod, container)
	if err != nil {
		log.Error(err, "Claims of a container are not known", "pod", klog.KObj(pod), "container", container.Name)
		return []*api.DynamicResource{}
	}
	var list []*api.DynamicResource
	for _, info := range infos {
		claim := &api.DynamicResource{ClaimName: info.ClaimName, ClaimNamespace: info.Namespace}
		for driver, state := range info.DriverState {
			var names []*api.CDIDevice
			for _, device := range state.Devices {
				for _, id := range device.CDIDeviceIDs {
					names = append(names, &api.CDIDevice{Name: id})
				}
				claim.ClaimResources = append(claim.ClaimResources, &api.ClaimResource{
					CdiDevices: names, DriverName: driver, PoolName: device.PoolName,
					DeviceName: device.DeviceName, ShareId: (*string)(device.ShareID),
				})
			}
		}
		list = append(list, claim)
	}
	return list
}

// plugins is what a device manager beside the DRA manager would know.
type plugins struct {
	allocatable map[string][]string // resource to device IDs
	held        map[holder]map[string][]string
}

type holder struct {
	pod       types.UID
	container string
}

// PluginDevices makes PodResources show that a container holds devices of a device plugin.
// Without IDs it holds none any more. They are free again when the pod is gone.
func (n *Node) PluginDevices(pod *v1.Pod, container, resource string, ids ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := holder{pod.UID, container}
	if n.plugins.held == nil {
		n.plugins.held = map[holder]map[string][]string{}
	}
	if n.plugins.held[h] == nil {
		n.plugins.held[h] = map[string][]string{}
	}
	n.plugins.held[h][resource] = ids
}

// PluginAllocatable makes PodResources show devices that a device plugin offers.
func (n *Node) PluginAllocatable(resource string, ids ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.plugins.allocatable == nil {
		n.plugins.allocatable = map[string][]string{}
	}
	n.plugins.allocatable[resource] = ids
}

// UpdateAllocatedDevices forgets what pods held that have ended.
func (k *kubelet) UpdateAllocatedDevices(klog.Logger) {
	active := map[types.UID]bool{}
	for _, pod := range k.GetActivePods() {
		active[pod.UID] = true
	}
	n := k.node
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.plugins.held, func(h holder, _ map[string][]string) bool { return !active[h.pod] })
}

// GetDevices are the plugin devices of a container.
func (k *kubelet) GetDevices(pod, container string) []*api.ContainerDevices {
	n := k.node
	n.mu.Lock()
	defer n.mu.Unlock()
	return containerDevices(n.plugins.held[holder{types.UID(pod), container}])
}

// GetAllocatableDevices are all plugin devices.
func (k *kubelet) GetAllocatableDevices(klog.Logger) []*api.ContainerDevices {
	n := k.node
	n.mu.Lock()
	defer n.mu.Unlock()
	return containerDevices(n.plugins.allocatable)
}

// containerDevices has an entry for each device, as kubelet's answer has.
func containerDevices(devices map[string][]string) []*api.ContainerDevices {
	var list []*api.ContainerDevices
	for _, resource := range slices.Sorted(maps.Keys(devices)) {
		for _, id := range devices[resource] {
			list = append(list, &api.ContainerDevices{ResourceName: resource, DeviceIds: []string{id}})
		}
	}
	return list
}

// nothing stands for the managers that this kubelet lacks.
type nothing struct{}

func (nothing) GetCPUs(*v1.Pod, *v1.Container) []int64 { return nil }
func (nothing) GetPodCPUs(string) []int64              { return nil }
func (nothing) GetAllocatableCPUs() []int64            { return nil }

func (nothing) GetMemory(klog.Logger, *v1.Pod, *v1.Container) []*api.ContainerMemory { return nil }
func (nothing) GetPodMemory(klog.Logger, string) []*api.ContainerMemory              { return nil }
func (nothing) GetAllocatableMemory(klog.Logger) []*api.ContainerMemory              { return nil }
