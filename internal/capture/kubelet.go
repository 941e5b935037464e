package capture

import (
	"encoding/json"
	"fmt"

	"kata-device-plugin/internal/podresources"
)

// Where kubelet's record and answers are in a capture. The answers are no files of the node.
const (
	CheckpointPath  = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
	PodsPath        = "/.capture/podresources/pods.json"
	AllocatablePath = "/.capture/podresources/allocatable.json"
)

// Checkpoint is kubelet's record of devices (its package devicemanager/checkpoint), with what
// containers were answered in words.
type Checkpoint struct {
	Data struct {
		PodDeviceEntries  []Given
		RegisteredDevices map[string][]string // those that are healthy, by resource
	}
	Checksum json.Number // of kubelet's own text
}

// Given are the devices that a container has of a resource.
type Given struct {
	PodUID, ContainerName, ResourceName string
	DeviceIDs                           map[string][]string // by NUMA node
	Answer                              *Answer             `json:",omitempty"`
}

// Answer is what a plugin answered to Allocate, without environment variables.
type Answer struct {
	CDI         []string          `json:",omitempty"`
	Devices     []string          `json:",omitempty"` // HOST:CONTAINER:PERMISSIONS
	Mounts      []string          `json:",omitempty"` // HOST:CONTAINER
	Annotations map[string]string `json:",omitempty"` // those of CDI
}

// Pods is kubelet's answer about who has which device.
type Pods struct {
	TookMilliseconds int64
	Pods             []podresources.Pod
}

// Allocatable is kubelet's answer about which devices plugins offer.
type Allocatable struct {
	TookMilliseconds int64
	Devices          []podresources.Device
}

// Checkpoint is kubelet's record. The error is fs.ErrNotExist where there was none, and
// ErrNotCaptured where nobody looked.
func (c *Capture) Checkpoint() (*Checkpoint, error) { return decode[Checkpoint](c, CheckpointPath) }

// Pods is kubelet's answer. The error is the one that kubelet gave, or ErrNotCaptured where it
// was not asked.
func (c *Capture) Pods() (*Pods, error) { return decode[Pods](c, PodsPath) }

// Allocatable is kubelet's answer, as Pods is.
func (c *Capture) Allocatable() (*Allocatable, error) { return decode[Allocatable](c, AllocatablePath) }

func decode[T any](c *Capture, name string) (*T, error) {
	_, e, err := c.find("open", name, true)
	var text []byte
	if err == nil {
		text, err = e.read(name)
	}
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(text, v); err != nil {
		return nil, fmt.Errorf("read %s of the capture: %w", name, err)
	}
	return v, nil
}
