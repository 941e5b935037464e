package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"kata-device-plugin/internal/sim"
)

// virtualFunctions are PFs with VFs, count in all: those with even numbers on vfio-pci, the
// others on their kernel driver.
func virtualFunctions(count int) sim.Platform {
	const most = 128
	p := sim.Platform{Name: "VFs", DefaultRoute: "eno1"}
	for i := range (count + most - 1) / most {
		f := sim.Function{
			Path:   fmt.Sprintf("pci%04x:20/%04x:20:01.0/%04x:21:00.0", i, i, i),
			Vendor: 0x15b3, Device: 0x101d, SubVendor: 0x15b3, Class: 0x020000, Driver: "mlx5_core",
			TotalVFs: most, VFOffset: 2, VFStride: 1, VFDevice: 0x101e, Group: fmt.Sprint(i),
			NIC: &sim.NIC{Interfaces: []sim.Interface{{Name: fmt.Sprint("p", i)}}, VFInterface: fmt.Sprint("p", i) + "v%d"},
		}
		for k := range min(most, count-i*most) {
			f.VFs = append(f.VFs, sim.VF{Driver: []string{"vfio-pci", "mlx5_core"}[k%2]})
		}
		p.Functions = append(p.Functions, f)
	}
	return p
}

// pools has a pool for each of the two drivers, and one more that takes a VF.
func pools(extra string) string {
	return fmt.Sprintf(`{"resourceList": [{"resourceName": %q, "selectors": {"pciAddresses": ["0000:21:00.2"]}},
		{"resourceName": "vfio", "selectors": {"drivers": ["vfio-pci"]}}, {"resourceName": "net", "selectors": {"pfNames": ["p0", "p1", "p2", "p3"]}}]}`, extra)
}

// allocatable waits until so many devices of a resource are.
func (n *nicNode) allocatable(resource string, count int) {
	n.t.Helper()
	n.must(n.Kubelet.Await(n.ctx, func() bool { return len(n.Kubelet.Allocatable(resource)) == count }))
}

// BenchmarkNICReload measures the time from the replacement of the configuration file until a
// resource that is new in it is allocatable, and turn by turn with it what the old plugins
// need for the same: the start of the program. Run it with -benchtime=1x.
func BenchmarkNICReload(b *testing.B) {
	for _, count := range []int{8, 2048} {
		b.Run(fmt.Sprintf("VFs=%d", count), func(b *testing.B) {
			n := newNICNode(b, virtualFunctions(count))
			n.Options.Listed = nil // to judge each list would be timed too
			n.configure(pools("first"))
			n.run()
			n.allocatable(nicVFIO, count/2-1)
			var reload, start []time.Duration
			for b.Loop() {
				for i := range 20 {
					extra := fmt.Sprint("pool-", i)
					begun := time.Now()
					n.configure(pools(extra))
					n.allocatable("intel.com/"+extra, 1)
					reload = append(reload, time.Since(begun))

					n.must(n.Plugin.Kill())
					n.gone()
					begun = time.Now()
					n.must(n.StartPlugin(n.ctx))
					n.allocatable("intel.com/"+extra, 1)
					start = append(start, time.Since(begun))
				}
			}
			b.ReportMetric(median(reload)/1000, "reload-p50-ms")
			b.ReportMetric(median(start)/1000, "start-p50-ms")
			b.ReportMetric(median(start)/median(reload), "start/reload")
		})
	}
}

// BenchmarkNICAllocate measures an allocation of a VF against an empty call on the same
// connection, turn by turn. The device-info file, which is written before the first answer, is
// there. Run it with -benchtime=1x.
func BenchmarkNICAllocate(b *testing.B) {
	for _, count := range []int{8, 2048} {
		for _, vf := range [][2]string{{nicVFIO, "0000:21:00.4"}, {nicNet, "0000:21:00.3"}} {
			resource, id := vf[0], vf[1]
			b.Run(fmt.Sprintf("VFs=%d/%s", count, filepath.Base(resource)), func(b *testing.B) {
				n := newNICNode(b, virtualFunctions(count))
				n.Options.Listed = nil // to judge each list would be timed too
				n.Options.Listed = nil // to judge each list would be timed too
				n.configure(pools("first"))
				n.run()
				n.allocatable(nicVFIO, count/2-1)
				n.awaitLog(`"msg":"ready"`)
				client := n.plugin(resource)
				request := &api.AllocateRequest{ContainerRequests: []*api.ContainerAllocateRequest{{DevicesIds: []string{id}}}}
				var allocate, empty []time.Duration
				for b.Loop() {
					for range 1000 {
						begun := time.Now()
						_, err := client.PreStartContainer(n.ctx, &api.PreStartContainerRequest{})
						n.must(err)
						between := time.Now()
						_, err = client.Allocate(n.ctx, request)
						n.must(err)
						empty, allocate = append(empty, between.Sub(begun)), append(allocate, time.Since(between))
					}
				}
				b.ReportMetric(median(allocate), "allocate-p50-us")
				b.ReportMetric(median(empty), "empty-p50-us")
				b.ReportMetric(median(allocate)/median(empty), "allocate/empty")
			})
		}
	}
}

// plugin connects to the plugin's socket for a resource.
func (n *nicNode) plugin(resource string) api.DevicePluginClient {
	n.t.Helper()
	dir, name := filepath.Split(resource)
	sockets, err := filepath.Glob(filepath.Join(n.Roots.DevicePlugins, "kata-nic-"+filepath.Clean(dir)+"_"+name+"-*.sock"))
	n.must(err)
	if len(sockets) != 1 {
		n.t.Fatalf("sockets of %s: %v", resource, sockets)
	}
	conn, err := grpc.NewClient("unix://"+sockets[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	n.must(err)
	n.t.Cleanup(func() { conn.Close() })
	return api.NewDevicePluginClient(conn)
}

// median is in microseconds.
func median(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/2].Nanoseconds()) / 1000
}
