package kubelet_test

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/test/kubelet"
)

const dev = "example.com/dev"

// start starts a kubelet for the test and logs to it.
func start(t *testing.T, dir string, o kubelet.Options) *kubelet.Kubelet {
	t.Helper()
	if o.Log == nil {
		o.Log = t.Output()
	}
	k, err := kubelet.Start(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Stop(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// limit bounds the waits of a test. It decides nothing unless the test fails.
func limit(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// awaitDevices waits for a capacity and allocatable of dev.
func awaitDevices(ctx context.Context, t *testing.T, k *kubelet.Kubelet, capacity, allocatable int64) {
	t.Helper()
	err := k.Await(ctx, func() bool {
		c, a, ok := k.Devices(dev)
		return ok && c == capacity && a == allocatable
	})
	if err != nil {
		t.Fatalf("want capacity %d and allocatable %d: %v", capacity, allocatable, err)
	}
}

// registered is a plugin whose list has arrived.
func registered(ctx context.Context, t *testing.T, k *kubelet.Kubelet, dir string, list ...*api.Device) *plugin {
	t.Helper()
	p := newPlugin(t, dir, dev, list...)
	if err := p.register(ctx); err != nil {
		t.Fatal(err)
	}
	awaitDevices(ctx, t, k, int64(len(list)), int64(len(list)))
	return p
}

func admit(ctx context.Context, t *testing.T, k *kubelet.Kubelet, name string, n int64) *v1.Pod {
	t.Helper()
	pod := kubelet.Pod(name, dev, n)
	if err := k.Admit(ctx, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// refused checks that kubelet rejects a pod, and why.
func refused(ctx context.Context, t *testing.T, k *kubelet.Kubelet, n int64, reason string) {
	t.Helper()
	err := k.Admit(ctx, kubelet.Pod("refused", dev, n))
	var r *kubelet.Rejection
	if !errors.As(err, &r) || r.Reason != reason {
		t.Errorf("a pod that asks for %d: got %v, want a rejection with reason %s", n, err, reason)
	}
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// TestVersion is there for its log: which kubelet the tests ran against.
func TestVersion(t *testing.T) {
	t.Logf("kubelet of Kubernetes %s", kubelet.Version())
	if !regexp.MustCompile(`^v1\.\d+\.\d+$`).MatchString(kubelet.Version()) {
		t.Errorf("that is no version")
	}
}

func TestAllocate(t *testing.T) {
	t.Parallel()
	ctx, dir := limit(t), t.TempDir()
	k := start(t, dir, kubelet.Options{})
	if _, _, ok := k.Devices(dev); ok || len(k.Resources()) > 0 {
		t.Errorf("before any plugin: %s", k)
	}
	p := registered(ctx, t, k, dir, device("a", api.Healthy), device("b", api.Healthy), device("c", api.Healthy))
	equal(t, "resources", k.Resources(), []string{dev})
	equal(t, "allocatable", k.Allocatable(dev), []string{"a", "b", "c"})

	one := admit(ctx, t, k, "one", 1)
	two := admit(ctx, t, k, "two", 2)
	held := append(k.Allocated(one, "c", dev), k.Allocated(two, "c", dev)...)
	equal(t, "held by both", slices.Sorted(slices.Values(held)), []string{"a", "b", "c"})
	for i, pod := range []*v1.Pod{one, two} {
		got := k.Allocated(pod, "c", dev)
		equal(t, "what Allocate was asked for", p.allocations()[i], got)
		cdi, nodes, err := k.RunOptions(ctx, pod, 0)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "CDI names", cdi, prefixed("example.com/dev=", got))
		equal(t, "device nodes", nodes, prefixed("/dev/", got))
	}
	refused(ctx, t, k, 1, "UnexpectedAdmissionError")
	k.Remove(two)
	admit(ctx, t, k, "three", 2)
	if _, _, err := k.RunOptions(ctx, one, 1); err == nil {
		t.Error("a container that the pod lacks was started")
	}
}

func prefixed(prefix string, names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, prefix+n)
	}
	return out
}

func TestPodResources(t *testing.T) {
	t.Parallel()
	ctx, dir := limit(t), t.TempDir()
	k := start(t, dir, kubelet.Options{NUMANodes: 2})
	registered(ctx, t, k, dir, device("a", api.Healthy, 0, 1), device("b", api.Healthy))
	socket := filepath.Join(dir, "pod-resources", "kubelet.sock")
	if err := k.PodResources(socket); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := podresources.NewPodResourcesListerClient(conn)

	pod := admit(ctx, t, k, "pair", 2)
	list, err := client.List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(list.GetPodResources()); n != 1 {
		t.Fatalf("List has %d pods, want 1", n)
	}
	got := list.GetPodResources()[0]
	if got.GetNamespace() != pod.Namespace || got.GetName() != pod.Name {
		t.Errorf("List has pod %s/%s", got.GetNamespace(), got.GetName())
	}
	equal(t, "devices in List", idsOf(got.GetContainers()[0].GetDevices()), []string{"a", "a", "b"}) // a is on two NUMA nodes
	one, err := client.Get(ctx, &podresources.GetPodResourcesRequest{PodNamespace: pod.Namespace, PodName: pod.Name})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "devices in Get", idsOf(one.GetPodResources().GetContainers()[0].GetDevices()), []string{"a", "a", "b"})
	all, err := client.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "allocatable devices", idsOf(all.GetDevices()), []string{"a", "a", "b"})

	k.Remove(pod)
	if list, err = client.List(ctx, &podresources.ListPodResourcesRequest{}); err != nil || len(list.GetPodResources()) != 0 {
		t.Errorf("List after the pod's end: %v, %v", list.GetPodResources(), err)
	}
}

func idsOf(devices []*podresources.ContainerDevices) []string {
	var ids []string
	for _, d := range devices {
		ids = append(ids, d.GetDeviceIds()...)
	}
	slices.Sort(ids)
	return ids
}

func TestHealth(t *testing.T) {
	t.Parallel()
	ctx, dir := limit(t), t.TempDir()
	k := start(t, dir, kubelet.Options{})
	p := registered(ctx, t, k, dir, device("a", api.Healthy))
	pod := admit(ctx, t, k, "holder", 1)
	p.announce(device("a", api.Unhealthy), device("b", api.Healthy))
	awaitDevices(ctx, t, k, 2, 1)
	equal(t, "allocatable", k.Allocatable(dev), []string{"b"})
	if h := k.Health(pod, "c", dev); len(h) != 1 || h["a"] != v1.ResourceHealthStatusUnhealthy {
		t.Errorf("the pod's status has %v, want a unhealthy", h)
	}
	other := admit(ctx, t, k, "other", 1)
	equal(t, "the other pod's devices", k.Allocated(other, "c", dev), []string{"b"})

	p.announce(device("a", api.Healthy), device("b", api.Healthy))
	awaitDevices(ctx, t, k, 2, 2)
	if h := k.Health(pod, "c", dev); h["a"] != v1.ResourceHealthStatusHealthy {
		t.Errorf("the pod's status has %v, want a healthy", h)
	}
	p.stop()
	awaitDevices(ctx, t, k, 2, 0)
	equal(t, "the pod's devices without a plugin", k.Allocated(pod, "c", dev), []string{"a"})
	refused(ctx, t, k, 1, "UnexpectedAdmissionError")
}

func TestTopology(t *testing.T) {
	t.Parallel()
	ctx, dir := limit(t), t.TempDir()
	k := start(t, dir, kubelet.Options{NUMANodes: 2, Policy: "single-numa-node"})
	registered(ctx, t, k, dir,
		device("0a", api.Healthy, 0), device("1a", api.Healthy, 1), device("0b", api.Healthy, 0), device("1b", api.Healthy, 1))
	refused(ctx, t, k, 3, "TopologyAffinityError")
	first := k.Allocated(admit(ctx, t, k, "first", 2), "c", dev)
	second := k.Allocated(admit(ctx, t, k, "second", 2), "c", dev)
	for _, got := range [][]string{first, second} {
		if len(got) != 2 || got[0][0] != got[1][0] {
			t.Errorf("%v are not two devices of one NUMA node", got)
		}
	}

	if _, err := kubelet.Start(ctx, t.TempDir(), kubelet.Options{Policy: "no-such-policy"}); err == nil {
		t.Error("a kubelet with an unknown policy started")
	}
}
