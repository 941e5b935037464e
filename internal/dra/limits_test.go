package dra_test

import (
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"kata-device-plugin/internal/dra"
)

// inLimits holds a pool against what an API server takes: its own declarative rules, and those
// that it has in code which is no library.
func inLimits(t *testing.T, pool resourceslice.Pool) {
	t.Helper()
	if len(pool.Slices) == 0 {
		t.Error("no slice at all")
	}
	seen := map[string]bool{}
	last := ""
	for i, slice := range pool.Slices {
		if len(slice.Devices) > 64 || len(slice.Devices) == 0 && len(pool.Slices) > 1 {
			t.Errorf("slice %d has %d devices", i, len(slice.Devices))
		}
		spec := resourceapi.ResourceSliceSpec{
			Driver: dra.Driver, NodeName: new("node"), Devices: slice.Devices,
			Pool: resourceapi.ResourcePool{Name: "node", ResourceSliceCount: int64(len(pool.Slices))},
		}
		// The option is a feature that is off by default.
		create := operation.Operation{Type: operation.Create, Options: map[string]bool{"DRAPartitionableDevicesType": false}}
		for _, err := range resourceapi.Validate_ResourceSliceSpec(t.Context(), create, field.NewPath("spec"), &spec, nil) {
			t.Errorf("slice %d: %v", i, err)
		}
		for _, d := range slice.Devices {
			if seen[d.Name] {
				t.Errorf("%s twice", d.Name)
			}
			seen[d.Name] = true
			deviceInLimits(t, d)
			// Names of one type and domain width sort as addresses do.
			if address, _ := strings.CutPrefix(d.Name, "gpu-0000-"); address != d.Name {
				if address < last {
					t.Errorf("%s behind %s", address, last)
				}
				last = address
			}
		}
	}
}

func deviceInLimits(t *testing.T, d resourceapi.Device) {
	t.Helper()
	for _, wrong := range validation.IsDNS1123Label(d.Name) {
		t.Errorf("name %s: %s", d.Name, wrong)
	}
	if n := len(d.Attributes) + len(d.Capacity); n > resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice || n < 8 {
		t.Errorf("%s has %d attributes and capacities", d.Name, n)
	}
	if len(d.Taints) > resourceapi.DeviceTaintsMaxLength {
		t.Errorf("%s has %d taints", d.Name, len(d.Taints))
	}
	for name, a := range d.Attributes {
		qualified(t, d.Name, string(name))
		if a.StringValue != nil && (*a.StringValue == "" || len(*a.StringValue) > resourceapi.DeviceAttributeMaxValueLength) {
			t.Errorf("%s: %s = %q", d.Name, name, *a.StringValue)
		}
	}
	for name := range d.Capacity {
		qualified(t, d.Name, string(name))
	}
}

func qualified(t *testing.T, device, name string) {
	t.Helper()
	domain, id, ok := strings.Cut(name, "/")
	if !ok {
		domain, id = dra.Driver, name
	}
	for _, wrong := range append(validation.IsDNS1123Subdomain(domain), validation.IsCIdentifier(id)...) {
		t.Errorf("%s: attribute %s: %s", device, name, wrong)
	}
	if len(domain) > resourceapi.DeviceMaxDomainLength || len(id) > resourceapi.DeviceMaxIDLength || domain == dra.Driver && ok {
		t.Errorf("%s: attribute %s is too long, or names the domain that it has anyway", device, name)
	}
}
