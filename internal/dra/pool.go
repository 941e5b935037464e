package dra

import (
	"cmp"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// Offer is a device as it is to be published.
type Offer struct {
	Device *Device
	// Taints are published as they are; the API takes 16.
	Taints []resourceapi.DeviceTaint
	// ResourceName is the attribute k8s.cni.cncf.io/resourceName of a network controller or VF,
	// by which Multus finds the device of a network: it has to equal the annotation
	// k8s.v1.cni.cncf.io/resourceName of the NetworkAttachmentDefinition, and, where the pod
	// asks for an extended resource, the name of that. Only who writes those knows it. "" stands
	// for DefaultResourceName. One that the API would refuse, of more than 64 bytes, is not
	// published. Other devices have no such attribute.
	ResourceName string
}

// DefaultResourceName is how networks call the devices of a type: vfio.katacontainers.io/vf.
func DefaultResourceName(t Type) string { return Driver + "/" + string(t) }

// Pool is what the slice controller makes ResourceSlices of. The order of the devices is the
// order in which the scheduler takes them. The same offers give equal values, so that nothing is
// written again which has not changed.
func Pool(offers []Offer) resourceslice.Pool {
	sorted := slices.SortedStableFunc(slices.Values(offers), func(a, b Offer) int {
		return a.Device.Function.Address.Compare(b.Device.Function.Address)
	})
	devices := make([]resourceapi.Device, 0, len(sorted))
	for _, o := range sorted {
		devices = append(devices, o.published())
	}
	var pool resourceslice.Pool
	// 64 is what a slice takes once a device in it has a taint. It is the limit always: the first
	// taint would otherwise move devices to other slices.
	for part := range slices.Chunk(devices, resourceapi.ResourceSliceMaxDevicesWithAdvancedFeatures) {
		pool.Slices = append(pool.Slices, resourceslice.Slice{Devices: part})
	}
	if len(pool.Slices) == 0 {
		// That the driver is there and has no device is something else than no driver.
		pool.Slices = []resourceslice.Slice{{}}
	}
	return pool
}

// published is a device in the API's words.
func (o Offer) published() resourceapi.Device {
	d := o.Device
	a := attributes(d.Attributes())
	if d.networked() {
		a.text("k8s.cni.cncf.io/resourceName", cmp.Or(o.ResourceName, DefaultResourceName(d.Type)))
	}
	return resourceapi.Device{Name: d.Name, Attributes: a, Capacity: d.Capacity(), Taints: slices.Clone(o.Taints)}
}
