package dra

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"kata-device-plugin/internal/host"
)

// TestProducts holds the table against the rules for tables, and against the sizes in its own
// names.
func TestProducts(t *testing.T) {
	seen := map[product]string{}
	for _, rows := range [][]product{gpus(), switches(), adapters()} {
		for _, p := range rows {
			key := product{vendor: p.vendor, device: p.device, subVendor: p.subVendor, subDevice: p.subDevice}
			if other, twice := seen[key]; twice {
				t.Errorf("%s is %q and %q", p.device, other, p.name)
			}
			seen[key] = p.name
			whole := product{vendor: p.vendor, device: p.device}
			if _, both := seen[whole]; both && p.subDevice != 0 {
				t.Errorf("%s %q stands behind a row for every subsystem", p.device, p.name)
			}
			if p.name == "" || strings.TrimSpace(p.name) != p.name || len(p.name) > resourceapi.DeviceAttributeMaxValueLength {
				t.Errorf("%s is called %q", p.device, p.name)
			}
			if (p.subVendor == 0) != (p.subDevice == 0) {
				t.Errorf("%s has half a subsystem", p.name)
			}
			id := host.Identity{Vendor: p.vendor, Device: p.device, SubVendor: p.subVendor, SubDevice: p.subDevice}
			if got := productOf(id); got != p {
				t.Errorf("%+v is found as %+v", p, got)
			}
			sized(t, p)
		}
	}
	if len(seen) < 70 {
		t.Errorf("only %d products", len(seen))
	}
}

// sized compares the memory with the one in the name, where there is one.
func sized(t *testing.T, p product) {
	t.Helper()
	if p.device == 0x2342 {
		return // the name has the memory of the CPU
	}
	for _, size := range regexp.MustCompile(`\b(\d+)GB?\b`).FindAllStringSubmatch(p.name, -1) {
		if size[1] != strconv.FormatInt(p.gib, 10) {
			t.Errorf("%s has %d GiB", p.name, p.gib)
		}
	}
}
