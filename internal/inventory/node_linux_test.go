package inventory_test

import (
	"testing"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/nic"
	"kata-device-plugin/internal/nicconfig"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sim/simtest"
)

func addr(t testing.TB, s string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(s)
	must(t, err)
	return a
}

// node lays out a machine and returns a source that looks at all that any program may want.
func node(t testing.TB, p sim.Platform) (*sim.Node, host.Source) {
	t.Helper()
	n, _ := simtest.Node(t, p)
	table, src := declare.Passthrough(), simtest.Source(t, n)
	src.Network, src.Links = nic.Wants, n.Links
	src.Wanted = func(id host.Identity) bool { return table.Wants(id) || nic.Wants(id) }
	return n, src
}

func platform(t testing.TB, name string) sim.Platform {
	t.Helper()
	if name == "adapters" {
		return sim.Adapters()
	}
	p, err := sim.PlatformByName(name)
	must(t, err)
	return p
}

// rules compile a configuration of nic-device-plugin.
func rules(t testing.TB, config string) *nic.Rules {
	t.Helper()
	c, err := nicconfig.Parse("config.json", []byte(config), nicconfig.Options{})
	must(t, err)
	return nic.New(c)
}

// network is a configuration that has something to say on every preset.
const network = `{
  "resourceList": [
    {"resourceName": "dpdk", "selectors": {"drivers": ["vfio-pci"]}},
    {"resourceName": "iavf", "selectors": {"drivers": ["iavf"], "isRdma": false}},
    {"resourceName": "fpga", "deviceType": "accelerator", "selectors": {"vendors": ["8086"], "devices": ["0d5c"]}}
  ],
  "configList": [{"resourceName": "hca", "rdmaHcaMax": 4, "selectors": {"vendors": ["15b3"]}}]
}`

// names are products of the presets, with one that is long.
func names(vendor, device pci.ID) string {
	return map[[2]pci.ID]string{
		{0x10de, 0x2330}: "GH100 [H100 SXM5 80GB]", {0x10de, 0x22a3}: "GH100 [H100 NVSwitch]",
		{0x10de, 0x2204}: "GA102 [GeForce RTX 3090]", {0x10de, 0x2941}: "GB200 [HGX GB200]",
		{0x15b3, 0x1021}: "MT2910 Family [ConnectX-7]", {0x15b3, 0x101d}: "MT2892 Family [ConnectX-6 Dx]",
		{0x15b3, 0x101e}: "ConnectX Family mlx5Gen Virtual Function", {0x8086, 0x1592}: "Ethernet Controller E810-C for QSFP",
		{0x8086, 0x1889}: "Ethernet Adaptive Virtual Function", {0x8086, 0x1521}: "I350 Gigabit Network Connection",
		{0x15b3, 0xa2dc}: "MT43244 BlueField-3 integrated ConnectX-7 network controller",
	}[[2]pci.ID{vendor, device}]
}

func take(t testing.TB, src host.Source, in inventory.Input) *inventory.Inventory {
	t.Helper()
	if in.Name == nil {
		in.Name = names
	}
	return inventory.New(src.Look(nil), in)
}
