package picture_test

import (
	"testing"

	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/picture"
)

// FuzzTexts: whatever names a machine has, the picture is a whole one, and has nothing in it
// that is not drawn.
func FuzzTexts(f *testing.F) {
	f.Add("GH100 [H100 SXM5 80GB]", uint32(0))
	f.Add(`"><script>&]]>`, uint32(0x10000))
	f.Add("\xff\x00\u202e\ufffe", uint32(0xffffffff))
	f.Fuzz(func(t *testing.T, text string, domain uint32) {
		i := &inventory.Inventory{
			Node: text, Resources: []inventory.Resource{{Name: text}}, Findings: []inventory.Finding{{ID: text, Title: text}},
			Functions: []inventory.Function{{
				Address: pci.Address{Domain: domain}, Name: text, Driver: text, PCIeRoot: text, Interfaces: []string{text},
				State: inventory.Healthy, Devices: []inventory.Device{{Resource: text, Healthy: true}},
			}},
		}
		sound(t, i, draw(t, i, picture.Options{}))
	})
}
