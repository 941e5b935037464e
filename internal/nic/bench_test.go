package nic_test

import (
	"fmt"
	"testing"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
)

// many are PFs with VFs on every kind of driver, 2,048 in all, and a shared pool over them.
func many() *host.Snapshot {
	var all []host.Function
	for p := range 8 {
		name := fmt.Sprintf("%04x:01:00.0", p)
		var vfs []string
		for v := range 256 {
			address := fmt.Sprintf("%04x:%02x:%02x.%d", p, 2+v/256, v/8%32, v%8)
			vfs = append(vfs, address)
			changes := []func(*host.Function){vf(name, v), ether(fmt.Sprintf("v%d", v)), rdma(p*256 + v)}
			driver := "mlx5_core"
			if v%2 == 1 {
				driver, changes = "vfio-pci", []func(*host.Function){vf(name, v), vfio(fmt.Sprint(p*256 + v))}
			}
			all = append(all, function(address, 0x15b3, 0x101e, 0x020000, driver, changes...))
		}
		all = append(all, function(name, 0x15b3, 0x101d, 0x020000, "mlx5_core", ether(fmt.Sprintf("p%d", p)), rdma(3000+p), pf(vfs...)))
	}
	return snapshot(all)
}

// BenchmarkDeclare applies six pools to 2,048 VFs that were announced before.
func BenchmarkDeclare(b *testing.B) {
	r := rules(b, `{"resourceList":[{"resourceName":"a","selectors":{"pfNames":["p0#0-63","p1#0-63"],"linkTypes":["ether"],"isRdma":true}},
		{"resourceName":"b","selectors":{"pciAddresses":["0001:02:00.1"]}},{"resourceName":"c","selectors":{"drivers":["vfio-pci"],"linkTypes":["ether"]}},
		{"resourceName":"d","selectors":{"vendors":["15b3"],"isRdma":true}},{"resourceName":"e","selectors":{"vendors":["8086"]}}],
		"configList":[{"resourceName":"s","rdmaHcaMax":1000,"selectors":{"deviceIDs":["101d"]}}]}`)
	s := many()
	last := r.Declare(s, declare.Past{}).Resources
	held := map[string][]string{}
	count := 0
	for _, res := range last {
		for i := range res.Devices {
			if count++; i%2 == 0 {
				held[res.Name] = append(held[res.Name], res.Devices[i].ID)
			}
		}
	}
	if count != 2048+1000 {
		b.Fatalf("%d devices", count)
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Declare(s, declare.Past{Announced: last, Held: held})
	}
}
