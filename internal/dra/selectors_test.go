package dra_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"

	"kata-device-plugin/internal/dra"
)

// own begins the name of an attribute of the driver's.
const own = `device.attributes["` + dra.Driver + `"].`

// class is the selector of a DeviceClass.
func class(of dra.Type) string {
	return fmt.Sprintf(`device.driver == %q && %stype == %q`, dra.Driver, own, of)
}

// selector compiles an expression as the API server does for a stored object.
func selector(t *testing.T, expression string) func(resourceapi.Device) (bool, error) {
	t.Helper()
	compiled := cel.GetCompiler(cel.Features{}).CompileCELExpression(expression, cel.Options{})
	if compiled.Error != nil {
		t.Fatalf("%s: %v", expression, compiled.Error)
	}
	if compiled.MaxCost > resourceapi.CELSelectorExpressionMaxCost {
		t.Fatalf("%s costs %d", expression, compiled.MaxCost)
	}
	return func(d resourceapi.Device) (bool, error) {
		matches, _, err := compiled.DeviceMatches(t.Context(), cel.Device{Driver: dra.Driver, Attributes: d.Attributes, Capacity: d.Capacity})
		return matches, err
	}
}

// published are the devices of a pool.
func published(i *dra.Inventory) []resourceapi.Device {
	var all []resourceapi.Device
	for _, s := range dra.Pool(offers(i)).Slices {
		all = append(all, s.Devices...)
	}
	return all
}

// TestClasses: the selector of a class can be evaluated on every device, whatever is known of
// it, and takes those of its type. An error in a selector would fail the allocation.
func TestClasses(t *testing.T) {
	inventories := map[string]*dra.Inventory{}
	for name, src := range machines(t) {
		inventories[name] = dra.Take(src.Look(nil))
	}
	start := seed(t)
	for step := range 20 {
		s := anything(t, rand.New(rand.NewPCG(start, uint64(step))))
		inventories[fmt.Sprintf("SEED=%d, step %d", start, step)] = dra.Take(s)
	}
	matched := map[dra.Type]int{}
	for _, of := range []dra.Type{dra.GPU, dra.NVSwitch, dra.NIC, dra.VF} {
		matches := selector(t, class(of))
		for name, i := range inventories {
			for k, d := range published(i) {
				got, err := matches(d)
				if err != nil || got != (i.Devices[k].Type == of) {
					t.Errorf("%s: class %s on %s: %v, %v", name, of, d.Name, got, err)
				}
				if got {
					matched[of]++
				}
			}
		}
		if matched[of] == 0 {
			t.Errorf("no device is of type %s", of)
		}
	}
}

// TestSelectors are those of claims: a class has chosen the type before.
func TestSelectors(t *testing.T) {
	all := machines(t)
	for _, tt := range []struct {
		machine, expression string
		of                  dra.Type
		want                int
	}{
		{"hgx-h100", own + `deviceID == "2330" && ` + own + `iommufd && device.capacity["` + dra.Driver + `"].memory.compareTo(quantity("79Gi")) >= 0`, dra.GPU, 8},
		{"hgx-h100", `device.capacity["` + dra.Driver + `"].memory.compareTo(quantity("81Gi")) >= 0`, dra.GPU, 0},
		{"hgx-h200", own + `productName.startsWith("H200")`, dra.GPU, 8},
		{"hgx-h200", own + `groupSize == 9`, dra.NVSwitch, 1},
		{"hgx-h100", `device.attributes["resource.kubernetes.io"].numaNode == 0`, dra.GPU, 4},
		{"hgx-h100", `device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:50"`, dra.GPU, 1},
		{"hgx-h100-nics", own + `vendorID == "15b3" && ` + own + `pcieLinkMTs >= 32000`, dra.NIC, 8},
		{"hgx-h100-nics", own + `pcieLinkMTs * ` + own + `pcieLinkWidth > 600000`, dra.NIC, 0},
		{"sriov-cpu", own + `parentAddress == "0000:31:00.0" && ` + own + `vfIndex < 1`, dra.VF, 1},
		{"sriov-cpu", `device.attributes["k8s.cni.cncf.io"].resourceName == "vfio.katacontainers.io/vf"`, dra.VF, 5},
		// What not every device has, asked for in the way that is no error.
		{"gb200", own + `?pcieSwitch.orValue("") == ""`, dra.GPU, 4},
		{"gb300", own + `?pcieSwitch.orValue("") != ""`, dra.GPU, 4},
		{"workstation", `has(device.attributes["resource.kubernetes.io"].numaNode)`, dra.GPU, 0},
	} {
		src, ok := all[tt.machine]
		if !ok {
			t.Fatalf("no machine %s", tt.machine)
		}
		matches, count := selector(t, tt.expression), 0
		i := dra.Take(src.Look(nil))
		for k, d := range published(i) {
			if i.Devices[k].Type != tt.of {
				continue
			}
			got, err := matches(d)
			if err != nil {
				t.Errorf("%s: %s on %s: %v", tt.machine, tt.expression, d.Name, err)
			}
			if got {
				count++
			}
		}
		if count != tt.want {
			t.Errorf("%s: %s takes %d, want %d", tt.machine, tt.expression, count, tt.want)
		}
	}
}
