package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

// PodResources asks kubelet's PodResources service. The connection is the caller's for
// as long as ask takes.
func (n *Node) PodResources(ask func(podresources.PodResourcesListerClient) error) error {
	socket := n.Path("/var/lib/kubelet/pod-resources/kubelet.sock")
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUnaryInterceptor(patient))
	if err != nil {
		return fmt.Errorf("connect to PodResources: %w", err)
	}
	defer conn.Close()
	return ask(podresources.NewPodResourcesListerClient(conn))
}

// patient asks again when kubelet says that it was asked too often: it allows 100 questions
// a second and a burst of 10 (pkg/kubelet/apis/podresources/constants.go).
func patient(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
	var err error
	wait := Await(ctx, "kubelet's rate limit", func(ctx context.Context) error {
		if err = invoke(ctx, method, req, reply, conn, o...); status.Code(err) == codes.ResourceExhausted {
			return err
		}
		return nil
	})
	return errors.Join(err, wait)
}

// Allocatable are the IDs of a resource's healthy devices, held or free, sorted.
func (n *Node) Allocatable(ctx context.Context, resource string) (ids []string, err error) {
	err = n.PodResources(func(c podresources.PodResourcesListerClient) error {
		resp, err := c.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
		if err != nil {
			return fmt.Errorf("ask for allocatable devices: %w", err)
		}
		ids = deviceIDs(resp.GetDevices(), resource)
		return nil
	})
	return ids, err
}

// AwaitAllocatable waits until just these devices of a resource are healthy.
func (n *Node) AwaitAllocatable(ctx context.Context, resource string, want []string) error {
	return Await(ctx, fmt.Sprintf("%s to be %v", resource, want), func(ctx context.Context) error {
		got, err := n.Allocatable(ctx, resource)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("allocatable are %v", got)
		}
		return err
	})
}

// Held are the IDs of the devices of a resource that a pod holds, sorted: what Get says,
// after a check that List says the same.
func (n *Node) Held(ctx context.Context, pod, resource string) (ids []string, err error) {
	err = n.PodResources(func(c podresources.PodResourcesListerClient) error {
		get, err := c.Get(ctx, &podresources.GetPodResourcesRequest{PodName: n.full(pod), PodNamespace: Namespace})
		if err != nil {
			return fmt.Errorf("ask for the devices of pod %s: %w", pod, err)
		}
		list, err := c.List(ctx, &podresources.ListPodResourcesRequest{})
		if err != nil {
			return fmt.Errorf("ask for the devices of all pods: %w", err)
		}
		ids = heldBy(get.GetPodResources(), resource)
		for _, p := range list.GetPodResources() {
			if p.GetName() == n.full(pod) && slices.Equal(heldBy(p, resource), ids) {
				return nil
			}
		}
		return fmt.Errorf("list and get of pod %s differ: %v, %v", pod, list, get)
	})
	return ids, err
}

func heldBy(p *podresources.PodResources, resource string) []string {
	var ids []string
	for _, c := range p.GetContainers() {
		ids = append(ids, deviceIDs(c.GetDevices(), resource)...)
	}
	slices.Sort(ids)
	return ids
}

func deviceIDs(devices []*podresources.ContainerDevices, resource string) []string {
	var ids []string
	for _, d := range devices {
		if d.GetResourceName() == resource {
			ids = append(ids, d.GetDeviceIds()...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Granted is the plugin's answer for a pod's devices of a resource, in kubelet's record,
// which is what every start of the container repeats: the names of CDI devices, sorted,
// and the paths of device nodes by themselves.
func (n *Node) Granted(podUID, resource string) (names, nodes []string, err error) {
	data, err := os.ReadFile(n.Path("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"))
	if err != nil {
		return nil, nil, fmt.Errorf("read kubelet's checkpoint: %w", err)
	}
	var file struct {
		Data struct {
			PodDeviceEntries []struct {
				PodUID, ResourceName string
				AllocResp            []byte
			}
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, nil, fmt.Errorf("read kubelet's checkpoint: %w", err)
	}
	for _, e := range file.Data.PodDeviceEntries {
		if e.PodUID != podUID || e.ResourceName != resource {
			continue
		}
		var answer pluginapi.ContainerAllocateResponse
		if err := proto.Unmarshal(e.AllocResp, &answer); err != nil {
			return nil, nil, fmt.Errorf("read the plugin's answer in kubelet's checkpoint: %w", err)
		}
		for _, d := range answer.GetCdiDevices() {
			names = append(names, d.GetName())
		}
		for _, d := range answer.GetDevices() {
			nodes = append(nodes, d.GetHostPath())
		}
	}
	slices.Sort(names)
	return names, nodes, nil
}

// Resolve finds the device node behind a CDI name, reading as containerd does.
func (n *Node) Resolve(name string) (string, error) {
	cache, err := cdi.NewCache(cdi.WithSpecDirs(n.Path("/run/cdi")), cdi.WithAutoRefresh(false))
	if err != nil {
		return "", fmt.Errorf("read CDI specs: %w", err)
	}
	d := cache.GetDevice(name)
	if d == nil {
		return "", errors.Join(fmt.Errorf("resolve %s: no CDI spec names it", name), cache.Refresh())
	}
	var nodes []string
	for _, dn := range d.ContainerEdits.DeviceNodes {
		nodes = append(nodes, dn.Path)
	}
	if len(nodes) != 1 {
		return "", fmt.Errorf("resolve %s: it has the nodes [%s]", name, strings.Join(nodes, " "))
	}
	return filepath.Clean(nodes[0]), nil
}
