package peer

import (
	"context"
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"

	"kata-device-plugin/internal/pci"
)

// DeviceNode is the present device node of a device: its path and its number.
func (n *Node) DeviceNode(id string) (path, number string, err error) {
	a, err := pci.ParseAddress(id)
	if err != nil {
		return "", "", err
	}
	cdev, ok := n.Machine.Cdev(a)
	if !ok {
		return "", "", fmt.Errorf("%s has no device node", id)
	}
	major, minor := n.Machine.DevNumber(cdev)
	return fmt.Sprintf("/dev/vfio/devices/vfio%d", cdev), fmt.Sprintf("%d:%d", major, minor), nil
}

// AwaitDevices waits until a pod of NewPod runs, and returns the IDs of the devices that it
// holds. That its container sees other nodes than those of the devices that PodResources
// names, or that they are not as many as wanted, is an error.
func (n *Node) AwaitDevices(ctx context.Context, name, resource string, count int) (pod *v1.Pod, held []string, err error) {
	pod, seen, err := n.AwaitRunning(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	if held, err = n.Held(ctx, name, resource); err != nil {
		return nil, nil, err
	}
	if len(held) != count {
		return nil, nil, fmt.Errorf("pod %s holds %v, want %d devices", name, held, count)
	}
	want := map[string]string{}
	for _, id := range held {
		path, number, err := n.DeviceNode(id)
		if err != nil {
			return nil, nil, err
		}
		want[path] = number
	}
	if !maps.Equal(seen, want) {
		return nil, nil, fmt.Errorf("the container of pod %s sees %v, want %v for %v", name, seen, want, held)
	}
	return pod, held, nil
}
