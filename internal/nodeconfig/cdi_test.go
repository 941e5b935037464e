package nodeconfig_test

import (
	"testing"

	"kata-device-plugin/internal/nodeconfig"
)

func TestCDIOf(t *testing.T) {
	for version, want := range map[string]nodeconfig.CDI{
		"containerd://1.6.33":         nodeconfig.CDINever,
		"containerd://1.7.27":         nodeconfig.CDIWhenAsked,
		"containerd://1.7.28-k3s1":    nodeconfig.CDIWhenAsked,
		"containerd://2.0.0":          nodeconfig.CDIUnlessOff,
		"containerd://v2.3.1":         nodeconfig.CDIUnlessOff,
		"containerd://2.4.0-rc.1":     nodeconfig.CDIAlways,
		"containerd://3.0.0":          nodeconfig.CDIAlways,
		"cri-o://1.26.4":              nodeconfig.CDINever,
		"cri-o://1.27.0":              nodeconfig.CDIAlways,
		"cri-o://2.0.0":               nodeconfig.CDIAlways,
		"docker://24.0.7":             nodeconfig.CDIUnknown,
		"containerd://unknown":        nodeconfig.CDIUnknown,
		"containerd":                  nodeconfig.CDIUnknown,
		"":                            nodeconfig.CDIUnknown,
		"containerd://2":              nodeconfig.CDIUnknown,
		"io.example.runtime://2.4.10": nodeconfig.CDIUnknown,
	} {
		if got := nodeconfig.CDIOf(version); got != want {
			t.Errorf("%q: %d, want %d", version, got, want)
		}
	}
}
