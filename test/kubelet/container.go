package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// Container is what kubelet hands to the container runtime of a container's devices: the
// plugins' answers, put together.
type Container struct {
	Env         map[string]string
	Annotations map[string]string
	Nodes       []DeviceNode // sorted by path on the host
	Mounts      []string     // host's paths
	CDI         []string     // names of CDI devices, sorted
}

// DeviceNode is a device node of a container.
type DeviceNode struct{ Host, Container, Permissions string }

// String is the node in a word or two, for messages and tables.
func (n DeviceNode) String() string {
	if n.Host == n.Container {
		return n.Host + " " + n.Permissions
	}
	return n.Host + " as " + n.Container + " " + n.Permissions
}

// StartContainer is what happens at a start of the pod's container with that index. It calls
// PreStartContainer if the plugin asked for it, and allocates only if the pod was never
// admitted here.
func (k *Kubelet) StartContainer(ctx context.Context, pod *v1.Pod, container int) (Container, error) {
	if container < 0 || container >= len(pod.Spec.Containers) {
		return Container{}, fmt.Errorf("start container %d of pod %s: it has %d", container, klog.KObj(pod), len(pod.Spec.Containers))
	}
	k.admission.Lock()
	defer k.admission.Unlock()
	if err := k.alive(); err != nil {
		return Container{}, fmt.Errorf("start container %d of pod %s: %w", container, klog.KObj(pod), err)
	}
	options, err := k.manager.GetDeviceRunContainerOptions(klog.NewContext(ctx, k.log), pod, &pod.Spec.Containers[container])
	if err != nil {
		return Container{}, fmt.Errorf("start container %d of pod %s: %w", container, klog.KObj(pod), err)
	}
	c := Container{Env: map[string]string{}, Annotations: map[string]string{}}
	if options == nil { // the container holds no device
		return c, nil
	}
	for _, e := range options.Envs {
		c.Env[e.Name] = e.Value
	}
	for _, a := range options.Annotations {
		c.Annotations[a.Name] = a.Value
	}
	for _, m := range options.Mounts {
		c.Mounts = append(c.Mounts, m.HostPath)
	}
	for _, d := range options.CDIDevices {
		c.CDI = append(c.CDI, d.Name)
	}
	for _, d := range options.Devices {
		c.Nodes = append(c.Nodes, DeviceNode{d.PathOnHost, d.PathInContainer, d.Permissions})
	}
	slices.Sort(c.CDI)
	slices.SortFunc(c.Nodes, func(a, b DeviceNode) int { return cmp.Compare(a.Host, b.Host) })
	return c, nil
}

// RunOptions is a part of what StartContainer says: the names of CDI devices and the host's
// paths of device nodes, both sorted.
func (k *Kubelet) RunOptions(ctx context.Context, pod *v1.Pod, container int) (cdi, nodes []string, err error) {
	c, err := k.StartContainer(ctx, pod, container)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range c.Nodes {
		nodes = append(nodes, n.Host)
	}
	return c.CDI, nodes, nil
}
