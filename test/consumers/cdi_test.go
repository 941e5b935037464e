package consumers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/container-orchestrated-devices/container-device-interface/pkg/cdi"
)

// golden is a spec that internal/cdi writes, as one of its own tests sees to.
const golden = "../../internal/cdi/testdata/kata.nvidia.com-gpu.json"

// place puts the spec into a CDI directory, as a version, with what else we keep there.
func place(t *testing.T, version string) (dir string) {
	t.Helper()
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for name, content := range map[string]string{
		filepath.Base(golden):          strings.Replace(string(data), `"0.5.0"`, `"`+version+`"`, 1),
		"kata.nvidia.com-gpu.lock":     "no spec",
		".kata.nvidia.com-gpu.json123": "no spec",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestKataGoShim: the library of Kata's Go shim, CDI 0.6.0, finds our devices, and no error
// in the directory, for which the shim would refuse every CDI device on the node.
func TestKataGoShim(t *testing.T) {
	cache, err := cdi.NewCache(cdi.WithSpecDirs(place(t, "0.5.0")), cdi.WithAutoRefresh(false))
	if err != nil {
		t.Fatal(err)
	}
	if err := cache.Refresh(); err != nil {
		t.Errorf("refresh: %v", err)
	}
	if errs := cache.GetErrors(); len(errs) > 0 {
		t.Errorf("errors: %v", errs)
	}
	want := []string{"nvidia.com/gpu=0000:53:00.0", "nvidia.com/gpu=0008:06:00.0", "nvidia.com/gpu=10000:01:00.0"}
	if got := cache.ListDevices(); !slices.Equal(got, want) {
		t.Fatalf("devices %v, want %v", got, want)
	}
	for i, name := range want {
		nodes := cache.GetDevice(name).ContainerEdits.DeviceNodes
		if len(nodes) != 1 || nodes[0].Path != fmt.Sprintf("/dev/vfio/devices/vfio%d", i) || nodes[0].HostPath != "" || nodes[0].Major != 0 {
			t.Errorf("%s: %+v", name, nodes)
		}
	}
}

// TestKataGoShimRefusesLaterVersions: this is why our specs say 0.5.0, and why the plugin
// reports other owners' later ones (finding CDI005).
func TestKataGoShimRefusesLaterVersions(t *testing.T) {
	for version, refused := range map[string]bool{"0.5.0": false, "0.6.0": false, "0.7.0": true, "0.8.0": true, "1.0.0": true, "1.1.0": true} {
		_, err := cdi.ReadSpec(filepath.Join(place(t, version), filepath.Base(golden)), 0)
		if (err != nil) != refused {
			t.Errorf("%s: %v", version, err)
		}
	}
}
