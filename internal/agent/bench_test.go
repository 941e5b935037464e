package agent

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
)

// quantiles reports the median and the 99th percentile in microseconds.
func quantiles(b *testing.B, name string, times []time.Duration) {
	slices.Sort(times)
	at := func(q float64) float64 { return float64(times[int(q*float64(len(times)-1))].Nanoseconds()) / 1000 }
	b.ReportMetric(at(0.5), name+"-p50-us")
	b.ReportMetric(at(0.99), name+"-p99-us")
}

// BenchmarkChange measures the time from the disappearance or appearance of a device's
// node until kubelet has the list that says so. The debounce, 5 ms, is in it.
func BenchmarkChange(b *testing.B) {
	for _, count := range []int{8, 2048} {
		b.Run(fmt.Sprintf("devices=%d", count), func(b *testing.B) {
			n := newNode(b, sim.Many(count))
			n.Tamper(true) // to read the spec at every message is the tests' business
			n.Start()
			n.run(b)
			n.Await("all devices", func() bool { return len(n.Healthy(gpu)) == count })
			a := n.address(n.Bound(0x0302)[count/2])
			var times []time.Duration
			for b.Loop() {
				steps, err := n.UnbindSteps(a)
				want := count - 1
				if len(times)%2 == 1 {
					steps, err = n.BindSteps(a, "vfio-pci")
					want = count
				}
				if err != nil {
					b.Fatal(err)
				}
				var begun time.Time
				for _, s := range steps {
					if s.Name == sim.StepNode { // what inotify tells of
						begun = time.Now()
					}
					if err := s.Do(); err != nil {
						b.Fatal(err)
					}
				}
				n.Await("the change", func() bool { return n.Plugins[gpu].HealthyCount == want })
				n.Mu.Lock()
				times = append(times, n.Plugins[gpu].Arrived.Sub(begun))
				n.Mu.Unlock()
			}
			quantiles(b, "change", times)
		})
	}
}

// BenchmarkAllocate measures an allocation against an empty call on the same connection,
// turn by turn.
func BenchmarkAllocate(b *testing.B) {
	for _, count := range []int{8, 2048} {
		b.Run(fmt.Sprintf("devices=%d", count), func(b *testing.B) {
			n := newNode(b, sim.Many(count))
			n.Tamper(true) // to read the spec at every message is the tests' business
			n.Start()
			n.run(b)
			n.Await("all devices", func() bool { return len(n.Healthy(gpu)) == count })
			client, id, ctx := n.Client(gpu), n.Bound(0x0302)[count/2], context.Background()
			req := &pluginapi.AllocateRequest{ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: []string{id}}}}
			var allocate, empty []time.Duration
			for b.Loop() {
				begun := time.Now()
				if _, err := client.PreStartContainer(ctx, &pluginapi.PreStartContainerRequest{}); err != nil {
					b.Fatal(err)
				}
				between := time.Now()
				if _, err := client.Allocate(ctx, req); err != nil {
					b.Fatal(err)
				}
				empty = append(empty, between.Sub(begun))
				allocate = append(allocate, time.Since(between))
			}
			quantiles(b, "allocate", allocate)
			quantiles(b, "empty", empty)
			var sum [2]time.Duration
			for i := range allocate {
				sum[0], sum[1] = sum[0]+allocate[i], sum[1]+empty[i]
			}
			b.ReportMetric(float64(sum[0])/float64(sum[1]), "allocate/empty")
		})
	}
}

func (n *node) address(s string) pci.Address {
	a, err := pci.ParseAddress(s)
	if err != nil {
		n.t.Fatal(err)
	}
	return a
}
