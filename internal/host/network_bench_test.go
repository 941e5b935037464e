package host_test

import (
	"fmt"
	"testing"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sim/simtest"
)

// BenchmarkNetwork measures a full look at a node with 2,048 VFs: half of them on the kernel's
// driver, with an interface and an RDMA device, half on vfio-pci.
func BenchmarkNetwork(b *testing.B) {
	const count = 2048
	src := networkNode(b, count)
	b.ReportAllocs()
	for b.Loop() {
		if s := src.Look(nil); len(s.Functions) < count || s.Partial() || s.Torn() {
			b.Fatalf("%d functions, unread %v", len(s.Functions), s.Unread)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count), "ns/device")
}

// BenchmarkNetworkAgain measures the fresh look at one VF that an allocation makes.
func BenchmarkNetworkAgain(b *testing.B) {
	src := networkNode(b, 2048)
	s := src.Look(nil)
	for b.Loop() {
		if _, ok := src.Again(s, s.Functions[1000].Address); !ok {
			b.Fatal("gone")
		}
	}
}

// networkNode has PFs of 128 VFs each, and one default route.
func networkNode(b *testing.B, count int) host.Source {
	b.Helper()
	const each = 128
	var functions []sim.Function
	for i := range count / each {
		f := sim.Function{
			Path:   fmt.Sprintf("pci%04x:20/%04x:20:01.0/%04x:21:00.0", i, i, i),
			Vendor: 0x15b3, Device: 0x101d, SubVendor: 0x15b3, Class: 0x020000, Driver: "mlx5_core",
			TotalVFs: each, VFOffset: 2, VFStride: 1, VFDevice: 0x101e, Group: fmt.Sprint(i),
			NIC: &sim.NIC{
				Interfaces:  []sim.Interface{{Name: fmt.Sprintf("p%d", i)}},
				VFInterface: fmt.Sprintf("p%dv", i) + "%d",
			},
		}
		for k := range each {
			vf := sim.VF{Driver: "vfio-pci"}
			if k%2 == 0 {
				number := i*each + k + 1
				vf.Driver = "mlx5_core"
				vf.NIC = &sim.NIC{
					Interfaces: []sim.Interface{{Name: fmt.Sprintf("p%dv%d", i, k)}},
					RDMA:       []sim.RDMA{{Name: fmt.Sprintf("mlx5_%d", number), Number: number}},
				}
			}
			f.VFs = append(f.VFs, vf)
		}
		functions = append(functions, f)
	}
	n, _ := simtest.Node(b, sim.Platform{Name: "VFs", Functions: functions, DefaultRoute: "p0"})
	src := simtest.Source(b, n)
	src.Wanted, src.Network, src.Links = adapters, adapters, n.Links
	return src
}
