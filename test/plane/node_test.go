//go:build !kubernetes134

package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
)

func (p *Plane) claim(t *testing.T, namespace, name string) *resourceapi.ResourceClaim {
	t.Helper()
	c, err := p.client.ResourceV1().ResourceClaims(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// testPodResources: kubelet's socket shows claims and plugin devices, and what Kata's
// readers would make of them.
func testPodResources(t *testing.T, p *Plane) {
	n := p.Node(t, "podresources", NodeOptions{})
	d := startDriver(t, n, p.Config())
	d.publish(t, pairs(1))
	d.ready(t)
	pod := p.AwaitBound(t, p.Pod(t, On(ClaimPod("podresources", "pair"), n.Name)))
	if err := n.Prepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	n.PluginDevices(pod, "c", "example.com/other", "one")
	n.PluginAllocatable("example.com/other", "one", "two")
	conn, err := grpc.NewClient("unix://"+n.PodResources(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := api.NewPodResourcesListerClient(conn)
	got, err := client.Get(t.Context(), &api.GetPodResourcesRequest{PodName: pod.Name, PodNamespace: pod.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	c := got.GetPodResources().GetContainers()[0]
	if len(c.GetDynamicResources()) != 1 || len(c.GetDynamicResources()[0].GetClaimResources()) != 2 {
		t.Fatalf("PodResources shows %v, want a claim of two devices", c)
	}
	if held := c.GetDevices(); len(held) != 1 || held[0].GetDeviceIds()[0] != "one" {
		t.Errorf("plugin devices are %v, want one", held)
	}
	all, err := client.GetAllocatableResources(t.Context(), &api.AllocatableResourcesRequest{})
	if err != nil || len(all.GetDevices()) != 2 {
		t.Errorf("allocatable is %v, %v, want two", all, err)
	}
	c.Devices = nil // which has no CDI spec
	nodes, err := KataResolves([]string{n.CDI}, c)
	slices.Sort(nodes)
	if err != nil || !slices.Equal(nodes, []string{"/dev/null", "/dev/zero"}) {
		t.Errorf("Kata would plug %v, %v", nodes, err)
	}
	list, err := client.List(t.Context(), &api.ListPodResourcesRequest{})
	if err != nil || len(list.GetPodResources()) != 1 {
		t.Errorf("PodResources lists %v, %v, want the pod", list, err)
	}
}

// testRestart: a kubelet that starts removes all slices, the driver restores its own, and
// what was prepared stays.
func testRestart(t *testing.T, p *Plane) {
	n := p.Node(t, "restart", NodeOptions{})
	d := startDriver(t, n, p.Config())
	d.publish(t, pairs(2))
	before := d.ready(t)
	pod := p.AwaitBound(t, p.Pod(t, On(ClaimPod("restart", "pair"), n.Name)))
	if err := n.Prepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	n.Restart(t)
	p.AwaitSlices(t, driverName, n.Name, "new ones", func(list []resourceapi.ResourceSlice) error {
		if len(list) != 1 || list[0].UID == before[0].UID {
			return fmt.Errorf("there are %d", len(list))
		}
		return nil
	})
	names, err := n.CDIDevices(pod, "c")
	if err != nil || len(names) != 2 {
		t.Errorf("CDI devices after the restart: %v, %v, want those of the checkpoint", names, err)
	}
	p.ForceDelete(t, pod)
	// The new kubelet has to meet the driver before it can release anything.
	Await(t, "the release", func(ctx context.Context) error {
		if err := n.Reconcile(ctx); err != nil {
			return err
		}
		claim := *pod.Status.ResourceClaimStatuses[0].ResourceClaimName
		if !d.called("unprepare " + claim) {
			return fmt.Errorf("the driver was not asked to release %s", claim)
		}
		return nil
	})
}

// testWipe: the slices of a driver that does not come back are removed after the delay.
func testWipe(t *testing.T, p *Plane) {
	n := p.Node(t, "wipe", NodeOptions{Wiping: time.Millisecond})
	d := startDriver(t, n, p.Config())
	d.publish(t, pairs(1))
	d.ready(t)
	d.helper.Stop()
	p.AwaitSlices(t, driverName, n.Name, "removed", func(list []resourceapi.ResourceSlice) error {
		if len(list) > 0 {
			return fmt.Errorf("there are %d", len(list))
		}
		return nil
	})
}

// testHealth: what the driver reports of a device gets to the pod's status.
func testHealth(t *testing.T, p *Plane) {
	n := p.Node(t, "health", NodeOptions{})
	n.Run()
	d := startDriver(t, n, p.Config())
	d.publish(t, pairs(1))
	d.ready(t)
	pod := p.AwaitPhase(t, p.Pod(t, On(ClaimPod("health", "pair"), n.Name)), v1.PodRunning)
	for _, sick := range []bool{false, true} {
		report, want := kubeletplugin.HealthStatusHealthy, v1.ResourceHealthStatusHealthy
		if sick {
			report, want = kubeletplugin.HealthStatusUnhealthy, v1.ResourceHealthStatusUnhealthy
		}
		d.report(t, "gpu-0", report)
		p.AwaitPod(t, pod, "told "+string(want), func(now *v1.Pod) error {
			for _, c := range now.Status.ContainerStatuses {
				for _, r := range c.AllocatedResourcesStatus {
					for _, h := range r.Resources {
						if h.Health == want {
							return nil
						}
					}
				}
			}
			return fmt.Errorf("its status says %v", now.Status.ContainerStatuses)
		})
		health, err := n.Health(pod, "c")
		if err != nil || len(health) != 2 {
			t.Errorf("health is %v, %v, want that of two devices", health, err)
		}
	}
}

// testEviction: a taint with NoExecute ends the pod that has the device.
func testEviction(t *testing.T, p *Plane) {
	n := p.Node(t, "eviction", NodeOptions{})
	n.Run()
	d := startDriver(t, n, p.Config())
	devices := pairs(1)
	d.publish(t, devices)
	d.ready(t)
	pod := p.AwaitPhase(t, p.Pod(t, On(ClaimPod("eviction", "pair"), n.Name)), v1.PodRunning)
	devices[0].Taints = []resourceapi.DeviceTaint{{Key: driverName + "/gone", Effect: resourceapi.DeviceTaintEffectNoExecute}}
	d.publish(t, devices)
	p.AwaitGone(t, pod)
}

// testRun: the life of pods on a node that runs them, each end of which frees the devices
// for the next pod.
func testRun(t *testing.T, p *Plane) {
	n := p.Node(t, "run", NodeOptions{})
	n.Run()
	d := startDriver(t, n, p.Config())
	d.publish(t, pairs(1))
	d.ready(t)
	for name, end := range map[string]func(*v1.Pod){
		"delete": func(pod *v1.Pod) { p.Delete(t, pod) },
		"force":  func(pod *v1.Pod) { p.ForceDelete(t, pod) },
		"fail": func(pod *v1.Pod) {
			if err := n.Exit(pod, v1.PodFailed); err != nil {
				t.Fatal(err)
			}
			p.AwaitPhase(t, pod, v1.PodFailed)
		},
	} {
		pod := p.AwaitPhase(t, p.Pod(t, On(ClaimPod("run-"+name, "pair"), n.Name)), v1.PodRunning)
		next := p.Pod(t, On(ClaimPod("run-after-"+name, "pair"), n.Name))
		p.AwaitPending(t, next, "cannot allocate all claims")
		end(pod)
		next = p.AwaitPhase(t, next, v1.PodRunning)
		claim := *pod.Status.ResourceClaimStatuses[0].ResourceClaimName
		Await(t, "the release of "+claim, func(context.Context) error {
			if !d.called("unprepare " + claim) {
				return errors.New("the driver was not asked")
			}
			return nil
		})
		p.Delete(t, next)
		p.AwaitGone(t, next)
	}
}

// testReboot: after a reboot pods are prepared anew, after a restart of kubelet they are not.
func testReboot(t *testing.T, p *Plane) {
	n := p.Node(t, "reboot", NodeOptions{})
	n.Run()
	d := startDriver(t, n, p.Config())
	d.publish(t, pairs(1))
	d.ready(t)
	pod := p.AwaitPhase(t, p.Pod(t, On(ClaimPod("reboot", "pair"), n.Name)), v1.PodRunning)
	claim := *pod.Status.ResourceClaimStatuses[0].ResourceClaimName
	prepared := func() (count int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, call := range d.calls {
			if call == "prepare "+claim {
				count++
			}
		}
		return count
	}
	n.Restart(t)
	// A second pod shows that the new kubelet works on its pods.
	p.AwaitPhase(t, p.Pod(t, On(podOf("reboot-bare"), n.Name)), v1.PodRunning)
	if got := prepared(); got != 1 {
		t.Errorf("prepared %d times, want once: a sandbox outlives kubelet", got)
	}
	n.Reboot(t)
	Await(t, "the second preparation", func(context.Context) error {
		if got := prepared(); got != 2 {
			return fmt.Errorf("prepared %d times", got)
		}
		return nil
	})
	entries, err := os.ReadDir(n.CDI)
	if err != nil || len(entries) != 1 {
		t.Errorf("CDI specs after the reboot: %v, %v, want one", entries, err)
	}
}

// testCut: without the API server kubelet cannot prepare, and with it again it can.
func testCut(t *testing.T, p *Plane) {
	n := p.Node(t, "cut", NodeOptions{})
	d := startDriver(t, n, p.Config())
	d.publish(t, pairs(1))
	d.ready(t)
	pod := p.AwaitBound(t, p.Pod(t, On(ClaimPod("cut", "pair"), n.Name)))
	if err := n.Prepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := n.Unprepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	for range 3 { // the first one also meets the end of its connection
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // the client would try again for long
		if err := n.Prepare(ctx, pod); err == nil {
			t.Error("prepared a claim that could not be read")
		}
		cancel()
	}
	p.Mend()
	Await(t, "kubelet to prepare", func(ctx context.Context) error { return n.Prepare(ctx, pod) })
}

// testRestore: what came after a backup is gone, what was before is there, and the cluster
// works. It is the last part.
func testRestore(t *testing.T, p *Plane) {
	n := p.Node(t, "restore", NodeOptions{})
	d := startDriver(t, n, p.Config())
	d.publish(t, pairs(1))
	d.ready(t)
	before := p.AwaitBound(t, p.Pod(t, On(ClaimPod("restore-before", "pair"), n.Name)))
	backup := p.Backup(t)
	p.ForceDelete(t, before)
	after := p.AwaitBound(t, p.Pod(t, On(ClaimPod("restore-after", "pair"), n.Name)))
	p.Restore(t, backup)
	p.AwaitGone(t, after)
	if again := p.AwaitBound(t, before); again.UID != before.UID {
		t.Error("the pod of the backup is another one")
	}
	p.AwaitPending(t, p.Pod(t, On(ClaimPod("restore-new", "pair"), n.Name)), "cannot allocate all claims")
}
