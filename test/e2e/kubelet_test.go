package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/harness"
	"kata-device-plugin/test/kubelet"
)

// TestPlatforms: kubelet shows every platform's devices, and no key for what is absent.
func TestPlatforms(t *testing.T) {
	for _, p := range sim.Platforms() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, p.Name)
			n.start()
			for resource, want := range map[string]int{harness.GPU: p.GPUs, harness.NVSwitch: p.NVSwitches} {
				capacity, allocatable, shown := n.Kubelet.Devices(resource)
				if capacity != int64(want) || allocatable != int64(want) || shown != (want > 0) {
					t.Errorf("%s: capacity %d, allocatable %d, shown %v, want %d", resource, capacity, allocatable, shown, want)
				}
			}
		})
	}
}

// TestAllocate: what a pod gets is what PodResources tells Kata, and what CDI resolves.
func TestAllocate(t *testing.T) {
	n := newNode(t, "hgx-h100")
	n.Options.Policy = "single-numa-node"
	n.start()
	pod := kubelet.Pod("train", harness.GPU, 4)
	n.must(n.Kubelet.Admit(n.ctx, pod))
	ids := n.Kubelet.Allocated(pod, "c", harness.GPU)
	if len(ids) != 4 {
		t.Fatalf("got %v", ids)
	}
	onNode := map[int]int{}
	for _, f := range n.Functions() {
		if slices.Contains(ids, f.Address().String()) {
			onNode[f.NUMA]++
		}
	}
	if len(onNode) != 1 {
		t.Errorf("NUMA nodes %v", onNode)
	}
	names, nodes, err := n.Kubelet.RunOptions(n.ctx, pod, 0)
	n.must(err)
	var want, resolved []string
	for _, id := range ids {
		want = append(want, harness.GPU+"="+id)
		found, err := n.Resolve(harness.GPU + "=" + id)
		n.must(err)
		resolved = append(resolved, found...)
	}
	slices.Sort(resolved)
	if !slices.Equal(names, want) || !slices.Equal(nodes, resolved) {
		t.Errorf("names %v, nodes %v; want %v, %v", names, nodes, want, resolved)
	}
	if got := n.podResources(pod); !slices.Equal(got, want) {
		t.Errorf("PodResources: %v, want %v", got, want)
	}
	if err := n.Kubelet.Admit(n.ctx, kubelet.Pod("too-much", harness.GPU, 5)); err == nil {
		t.Error("five of four free GPUs were handed out")
	}
}

// podResources asks as Kata's shim does: resource name and device ID make the CDI name.
func (n *node) podResources(pod *v1.Pod) []string {
	n.t.Helper()
	socket := filepath.Join(n.Dir, "podresources.sock")
	n.must(n.Kubelet.PodResources(socket))
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	n.must(err)
	defer conn.Close()
	resp, err := podresources.NewPodResourcesListerClient(conn).Get(n.ctx, &podresources.GetPodResourcesRequest{PodName: pod.Name, PodNamespace: pod.Namespace})
	n.must(err)
	var names []string
	for _, c := range resp.GetPodResources().GetContainers() {
		for _, d := range c.GetDevices() {
			for _, id := range d.GetDeviceIds() {
				names = append(names, d.GetResourceName()+"="+id)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestKubeletRestart: a pod keeps its devices, and all devices come back.
func TestKubeletRestart(t *testing.T) {
	n := newNode(t, "hgx-h100")
	n.start()
	pod := kubelet.Pod("train", harness.GPU, 3)
	n.must(n.Kubelet.Admit(n.ctx, pod))
	held := n.Kubelet.Allocated(pod, "c", harness.GPU)
	n.Options.Running = []*v1.Pod{pod}
	for range 5 {
		n.must(n.Kubelet.Stop())
		n.must(n.StartKubelet(n.ctx))
		n.must(n.AwaitAll(n.ctx))
		if got := n.Kubelet.Allocated(pod, "c", harness.GPU); !slices.Equal(got, held) {
			t.Fatalf("the pod holds %v, had %v", got, held)
		}
	}
	other := kubelet.Pod("other", harness.GPU, 5)
	n.must(n.Kubelet.Admit(n.ctx, other))
	for _, id := range n.Kubelet.Allocated(other, "c", harness.GPU) {
		if slices.Contains(held, id) {
			t.Errorf("%s was handed out twice", id)
		}
	}
}

// TestHeldDeviceLeaves: the pod's status says so, the device is not handed out, and
// comes back when it is bound again, under another number.
func TestHeldDeviceLeaves(t *testing.T) {
	n := newNode(t, "gb300")
	n.start()
	pod := kubelet.Pod("train", harness.GPU, 1)
	n.must(n.Kubelet.Admit(n.ctx, pod))
	held := n.Kubelet.Allocated(pod, "c", harness.GPU)[0]
	before := n.Cdevs()[held]
	n.must(n.UnbindBusy(n.address(held)))
	n.must(n.AwaitDevices(n.ctx, harness.GPU, n.GPUs()))
	if health := n.Kubelet.Health(pod, "c", harness.GPU)[held]; health != v1.ResourceHealthStatusUnhealthy {
		t.Errorf("the pod's status says %q", health)
	}
	if capacity, allocatable, _ := n.Kubelet.Devices(harness.GPU); capacity != 4 || allocatable != 3 {
		t.Errorf("capacity %d, allocatable %d", capacity, allocatable)
	}
	// Another device is bound to the number that becomes free, so this one gets another.
	other := n.GPUs()[0]
	n.must(n.Unbind(n.address(other)))
	n.must(n.Release(n.address(held)))
	n.must(n.Bind(n.address(other), "nvgrace_gpu_vfio_pci"))
	n.must(n.Bind(n.address(held), "nvgrace_gpu_vfio_pci"))
	n.must(n.AwaitAll(n.ctx))
	if held < other && n.Cdevs()[held] == before {
		t.Errorf("%s is still %s: nothing was shown", held, before)
	}
	if health := n.Kubelet.Health(pod, "c", harness.GPU)[held]; health != v1.ResourceHealthStatusHealthy {
		t.Errorf("the pod's status says %q", health)
	}
}

// TestSwappedNumbers: two devices that exchange their numbers keep their names.
func TestSwappedNumbers(t *testing.T) {
	n := newNode(t, "hgx-h100")
	n.start()
	a, b := n.GPUs()[0], n.GPUs()[1]
	before := n.Cdevs()
	n.must(n.Unbind(n.address(a)))
	n.must(n.Unbind(n.address(b)))
	n.must(n.Bind(n.address(b), "vfio-pci"))
	n.must(n.Bind(n.address(a), "vfio-pci"))
	if now := n.Cdevs(); now[a] != before[b] || now[b] != before[a] {
		t.Fatalf("the numbers are not swapped: %v, %v", before, now)
	}
	n.must(n.AwaitAll(n.ctx))
	pod := kubelet.Pod("all", harness.GPU, 8)
	n.must(n.Kubelet.Admit(n.ctx, pod))
	_, nodes, err := n.Kubelet.RunOptions(n.ctx, pod, 0)
	n.must(err)
	if len(nodes) != 8 || !n.Resolves(harness.GPU, n.GPUs()) {
		t.Errorf("nodes %v", nodes)
	}
}

// TestStop: SIGTERM ends the plugin within a second, with exit code 0, and leaves the
// CDI specs. Capacity stays for the next life, as after every rolling update.
func TestStop(t *testing.T) {
	n := newNode(t, "hgx-h100")
	n.start()
	pod := kubelet.Pod("train", harness.GPU, 2)
	n.must(n.Kubelet.Admit(n.ctx, pod))
	names, _, err := n.Kubelet.RunOptions(n.ctx, pod, 0)
	n.must(err)
	ctx, cancel := context.WithTimeout(n.ctx, 5*time.Second)
	defer cancel()
	code, took, err := n.Plugin.Terminate(ctx)
	n.must(err)
	if code != 0 || took > time.Second {
		t.Errorf("exit code %d after %v", code, took)
	}
	n.must(n.Kubelet.Await(n.ctx, func() bool { return len(n.Kubelet.Allocatable(harness.GPU)) == 0 }))
	for _, name := range names {
		if _, err := n.Resolve(name); err != nil {
			t.Errorf("between two lives: %v", err)
		}
	}
	n.must(n.StartPlugin(n.ctx))
	n.must(n.AwaitAll(n.ctx))
	if left, _ := filepath.Glob(filepath.Join(n.Roots.DevicePlugins, "kata-*.sock")); len(left) != 2 {
		t.Errorf("sockets %v", left)
	}
	if _, err := os.Stat(filepath.Join(n.Roots.Run, "health.sock")); err != nil {
		t.Error(err)
	}
}
