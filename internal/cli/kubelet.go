package cli

import (
	"errors"
	"fmt"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/nodeview"
	"kata-device-plugin/internal/podresources"
)

// podResources is where kubelet's socket is.
const podResources = "var/lib/kubelet/pod-resources/" + podresources.SocketName

// capturedKubelet is what the kubelet of a captured node said. A directory has no capture.
func capturedKubelet(c *capture.Capture) nodeview.Kubelet {
	if c == nil {
		return nodeview.Silent(errors.New("a directory does not have kubelet's answer: want a file that snapshot wrote"))
	}
	pods, err := c.Pods()
	if errors.Is(err, capture.ErrNotCaptured) {
		return nodeview.Silent(errors.New("kubelet did not say who has which device when it was taken"))
	}
	if err != nil {
		return nodeview.Silent(fmt.Errorf("read who has which device: %w", err))
	}
	k := nodeview.Kubelet{Pods: pods.Pods}
	allocatable, err := c.Allocatable()
	if err != nil {
		k.AllocatableErr = err // who has something is known all the same
	} else {
		k.Allocatable = allocatable.Devices
	}
	return k
}
