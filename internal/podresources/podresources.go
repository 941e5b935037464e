// Package podresources asks kubelet which container has which device (API
// k8s.io/kubelet/pkg/apis/podresources/v1, kubelet 1.28 and later).
package podresources

import (
	"context"
	"fmt"
	"slices"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// SocketName is the service's socket in kubelet's directory for it.
const SocketName = "kubelet.sock"

// Pod is what the containers of a pod have. kubelet does not tell the pod's UID.
type Pod struct {
	Namespace, Name string
	Containers      []Container
}

// Container is what one container has.
type Container struct {
	Name    string
	Devices []Device // of device plugins, each once, sorted
	Claims  []Claim
}

// Device is one of a device plugin.
type Device struct{ Resource, ID string }

// Claim is a claim of a container, with its devices. kubelet names all devices of a claim for each
// container that has the claim, whichever of its requests the container asked for.
type Claim struct {
	Namespace, Name string
	Devices         []ClaimDevice
}

// ClaimDevice is a device as its driver published it. The three names are "" where kubelet is older
// than 1.31; CDI are the names that stand for it, some of them several times.
type ClaimDevice struct {
	Driver, Pool, Device string
	CDI                  []string
}

// Pods are the running pods.
func (c *Client) Pods(ctx context.Context) ([]Pod, error) {
	var all []Pod
	err := c.ask(ctx, func(client podresources.PodResourcesListerClient) error {
		list, err := client.List(ctx, &podresources.ListPodResourcesRequest{})
		for _, p := range list.GetPodResources() {
			all = append(all, pod(p))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask kubelet who has which device: %w", err)
	}
	return all, nil
}

func pod(p *podresources.PodResources) Pod {
	one := Pod{Namespace: p.GetNamespace(), Name: p.GetName()}
	for _, from := range p.GetContainers() {
		c := Container{Name: from.GetName(), Devices: devices(from.GetDevices())}
		for _, dynamic := range from.GetDynamicResources() {
			c.Claims = append(c.Claims, claim(dynamic))
		}
		one.Containers = append(one.Containers, c)
	}
	return one
}

// devices takes lists apart. A device that belongs to two NUMA nodes is in two of them.
func devices(lists []*podresources.ContainerDevices) []Device {
	var all []Device
	for _, list := range lists {
		for _, id := range list.GetDeviceIds() {
			all = append(all, Device{Resource: list.GetResourceName(), ID: id})
		}
	}
	slices.SortFunc(all, Device.compare)
	return slices.Compact(all)
}

func (d Device) compare(other Device) int {
	return slices.Compare([]string{d.Resource, d.ID}, []string{other.Resource, other.ID})
}

func claim(from *podresources.DynamicResource) Claim {
	c := Claim{Namespace: from.GetClaimNamespace(), Name: from.GetClaimName()}
	for _, r := range from.GetClaimResources() {
		d := ClaimDevice{Driver: r.GetDriverName(), Pool: r.GetPoolName(), Device: r.GetDeviceName()}
		for _, name := range r.GetCdiDevices() {
			d.CDI = append(d.CDI, name.GetName())
		}
		c.Devices = append(c.Devices, d)
	}
	return c
}

// Allocatable are the devices that device plugins offer, each once, sorted.
func (c *Client) Allocatable(ctx context.Context) ([]Device, error) {
	var all []Device
	err := c.ask(ctx, func(client podresources.PodResourcesListerClient) error {
		answer, err := client.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
		all = devices(answer.GetDevices())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask kubelet which devices are offered: %w", err)
	}
	return all, nil
}
