package dradriver

import (
	"errors"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// errNoSlice: a driver without devices has a slice without devices.
var errNoSlice = errors.New("the API server has no ResourceSlice of the node, and one was published: it is written anew")

// compare says how the devices at the API server differ from those that were published, nil when
// they do not. The same difference is the same text.
func compare(there, published []resourceapi.Device, tainted bool) error {
	there = byName(there)
	if !tainted {
		there, published = bare(there), bare(published)
	}
	// It passes over the time that the API server adds to a taint.
	if resourceslice.DevicesDeepEqual(there, published) {
		return nil
	}
	return fmt.Errorf("the API server has %d devices of the node, and %d were published, the first difference is at %s: they are written anew",
		len(there), len(published), firstDifference(there, published))
}

// firstDifference is the name of the first device that is another one, or in one of two sorted
// lists only.
func firstDifference(a, b []resourceapi.Device) string {
	for i := range min(len(a), len(b)) {
		if !resourceslice.DevicesDeepEqual(a[i:i+1], b[i:i+1]) {
			return min(a[i].Name, b[i].Name)
		}
	}
	if len(a) > len(b) {
		return a[len(b)].Name
	}
	return b[len(a)].Name
}

// bare are devices without their taints.
func bare(devices []resourceapi.Device) []resourceapi.Device {
	all := make([]resourceapi.Device, len(devices))
	for i := range devices {
		all[i] = devices[i]
		all[i].Taints = nil
	}
	return all
}
