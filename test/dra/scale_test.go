//go:build !kubernetes134

package dra

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sysfs"

	"kata-device-plugin/test/plane"
)

// How large the cluster is, and how many pods with a claim come at once.
const (
	scaleNodes   = 1000
	scaleDevices = 20
	scalePods    = 300
	// scaleLook is how often it is looked how far things are, which is work for the machine too.
	scaleLook = time.Second
)

// BenchmarkScale measures a cluster of a thousand nodes with twenty devices each, with the slice
// controller that the driver uses and the slices that it makes: what it takes to publish, what a
// restart of all drivers writes, and how many claims a second are allocated. Everything shares the
// processors of one machine, so the figures are for comparison and not for planning.
func BenchmarkScale(b *testing.B) {
	for range b.N {
		begun := time.Now()
		f := newFleet(b)
		b.Logf("%d nodes after %s", scaleNodes, time.Since(begun))
		begun = time.Now()
		f.startAll()
		f.awaitSlices(func(s *resourceapi.ResourceSlice) bool { return len(s.Spec.Devices) == scaleDevices })
		b.ReportMetric(time.Since(begun).Seconds()/scaleNodes*1000, "publish-ms/node")
		b.ReportMetric(float64(f.size()), "bytes/slice")
		b.ReportMetric(float64(f.written()), "writes-to-publish")

		b.Logf("published after %s", time.Since(begun))
		f.stopAll()
		before := f.written()
		begun = time.Now()
		f.startAll() // with the same devices, as after an update of the DaemonSet
		f.change()   // and then each has a device less, so that the end can be seen
		f.awaitSlices(func(s *resourceapi.ResourceSlice) bool { return len(s.Spec.Devices) == scaleDevices-1 })
		after := f.written() - before
		b.ReportMetric(float64(after-scaleNodes), "writes-to-restart")
		if after != scaleNodes {
			b.Errorf("a restart and a change of %d nodes made %d writes", scaleNodes, after)
		}
		b.Logf("restarted and changed after %s", time.Since(begun))
		begun = time.Now()
		f.claim()
		b.Logf("allocated after %s", time.Since(begun))
		b.ReportMetric(scalePods/time.Since(begun).Seconds(), "claims/s")
		f.stopAll()
	}
}

// fleet are many nodes, of which only the slice controllers run.
type fleet struct {
	b           testing.TB
	plane       *plane.Plane
	client      kubernetes.Interface
	pool        resourceslice.Pool
	less        resourceslice.Pool
	owners      []resourceslice.Owner
	controllers []*resourceslice.Controller
	cancel      context.CancelFunc
}

func newFleet(b *testing.B) *fleet {
	b.Helper()
	p := plane.Start(b, plane.Options{})
	for _, o := range objects() {
		p.Create(b, o)
	}
	config := p.Config()
	config.QPS, config.Burst = -1, 0 // each driver would have a limit of its own
	// Twenty thousand devices as text would take longer to read than to publish.
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	must(b, err)
	f := &fleet{b: b, plane: p, client: client}
	inventory := lookAt(b, sim.Many(scaleDevices))
	var offers []dra.Offer
	for i := range inventory.Devices {
		offers = append(offers, dra.Offer{Device: &inventory.Devices[i]})
	}
	f.pool, f.less = dra.Pool(offers), dra.Pool(offers[1:])
	for i := range scaleNodes {
		f.owners = append(f.owners, f.node(fmt.Sprintf("node-%04d", i)))
	}
	return f
}

func lookAt(t testing.TB, shape sim.Platform) *dra.Inventory {
	t.Helper()
	dir, err := sim.TempDir()
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	hw, err := sim.New(filepath.Join(dir, "n"), shape)
	must(t, err)
	roots := hw.Roots("test")
	sys, err := sysfs.Open(roots.Sys)
	must(t, err)
	defer sys.Close()
	return dra.Take(host.Source{Sys: sys, Dev: devfs.Dir(roots.Dev), Wanted: dra.Wants, PCIeLink: dra.Wants}.Look(nil))
}

// node makes the object of a node.
func (f *fleet) node(name string) resourceslice.Owner {
	f.b.Helper()
	ctx := f.b.Context()
	n, err := f.client.CoreV1().Nodes().Create(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(f.b, err)
	n.Spec.Taints = nil
	n, err = f.client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
	must(f.b, err)
	room := v1.ResourceList{v1.ResourceCPU: resource.MustParse("64"), v1.ResourceMemory: resource.MustParse("256Gi"), v1.ResourcePods: resource.MustParse("110")}
	n.Status.Capacity, n.Status.Allocatable = room, room
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	_, err = f.client.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{})
	must(f.b, err)
	return resourceslice.Owner{APIVersion: "v1", Kind: "Node", Name: name, UID: n.UID}
}

func (f *fleet) startAll() {
	f.b.Helper()
	ctx, cancel := context.WithCancel(f.b.Context())
	f.cancel = cancel
	f.controllers = make([]*resourceslice.Controller, len(f.owners))
	var wg sync.WaitGroup
	room := make(chan struct{}, 32) // a rollout does not start all of them at once either
	for i := range f.owners {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			c, err := resourceslice.StartController(ctx, resourceslice.Options{
				DriverName: dra.Driver, KubeClient: f.client, Owner: &f.owners[i],
				Resources: &resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{f.owners[i].Name: f.pool}},
			})
			if err != nil {
				f.b.Error(err)
			}
			f.controllers[i] = c
		})
	}
	wg.Wait()
}

func (f *fleet) stopAll() {
	f.cancel()
	for _, c := range f.controllers {
		c.Stop()
	}
}

// change takes a device from each node.
func (f *fleet) change() {
	for i, c := range f.controllers {
		c.Update(&resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{f.owners[i].Name: f.less}})
	}
}

// written is how many writes to slices there were.
func (f *fleet) written() int { return len(f.plane.Writes(f.b, "resourceslices")) }

// awaitSlices waits until there is a slice of each node, and all are as they should be.
func (f *fleet) awaitSlices(right func(*resourceapi.ResourceSlice) bool) {
	f.b.Helper()
	f.await("slices as they should be", scaleNodes, func(ctx context.Context) (n int, err error) {
		list, err := f.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return 0, err
		}
		for i := range list.Items {
			if right(&list.Items[i]) {
				n++
			}
		}
		return n, nil
	})
}

// await counts until there are enough. An answer of a server that has too much to do may fail.
func (f *fleet) await(what string, want int, count func(context.Context) (int, error)) {
	f.b.Helper()
	ctx, cancel := context.WithTimeout(f.b.Context(), 10*time.Minute)
	defer cancel()
	tick := time.NewTicker(scaleLook)
	defer tick.Stop()
	for {
		n, err := count(ctx)
		if n == want {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.b.Fatalf("%d of %d %s: %v", n, want, what, err)
		}
	}
}

// size is what a slice takes in JSON.
func (f *fleet) size() int {
	f.b.Helper()
	list, err := f.client.ResourceV1().ResourceSlices().List(f.b.Context(), metav1.ListOptions{Limit: 1})
	must(f.b, err)
	text, err := json.Marshal(list.Items[0])
	must(f.b, err)
	return len(text)
}

// claim makes pods with a claim each, and waits until all claims are allocated.
func (f *fleet) claim() {
	f.b.Helper()
	f.plane.Create(f.b, oneGPU)
	for i := range scalePods {
		f.plane.Pod(f.b, plane.ClaimPod(fmt.Sprintf("pod-%d", i), "one-gpu"))
	}
	f.await("allocated claims", scalePods, func(ctx context.Context) (n int, err error) {
		list, err := f.client.ResourceV1().ResourceClaims(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return 0, err
		}
		for i := range list.Items {
			if list.Items[i].Status.Allocation != nil {
				n++
			}
		}
		return n, nil
	})
}
