package draname

import (
	"testing"

	"kata-device-plugin/internal/pci"
)

func TestNames(t *testing.T) {
	for _, text := range []string{"0000:41:00.0", "0000:00:1f.7", "10000:01:00.0", "12345678:ff:1f.7"} {
		a, err := pci.ParseAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, uid := range []string{"", "1b9d8c5e-0f3a-4b1c-9d2e-7f6a5b4c3d2e", "u"} {
			name := Device("nvswitch", a)
			if uid != "" {
				name = uid + "-" + name
			}
			if gotUID, got, ok := Parse(name); gotUID != uid || got != a || !ok {
				t.Errorf("%s: %q %s %t", name, gotUID, got, ok)
			}
		}
	}
	for name, want := range map[string]string{
		SpecOwner("u-1") + "vfio.katacontainers.io-claim.json": "u-1", "kata.dra..json": "", "kata.nvidia.com-gpu.json": "", "kata.dra.u": "", "": "",
	} {
		if uid, ok := SpecClaim(name); ok != (want != "") || ok && uid != want {
			t.Errorf("the spec %q is of the claim %q %t, want %q", name, uid, ok, want)
		}
	}
	for _, name := range []string{
		"", "gpu", "0000-41-00-0", "-0000-41-00-0", "gpu-0000-41-00", "gpu-0000-41-00-8", "gpu-41-00-0", "gpu-0000:41:00.0", "gpu-0000-4G-00-0", "eth0",
	} {
		if uid, a, ok := Parse(name); ok {
			t.Errorf("%q: %q %s", name, uid, a)
		}
	}
}
