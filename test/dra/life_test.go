//go:build !kubernetes134

package dra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/test/plane"
)

// The questions that whoever moves to DRA asks of a driver: each is a test of its own, named by
// what it asks.

// oneGPU is a template for any one GPU.
const oneGPU = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu, namespace: default}
spec:
  spec:
    devices:
      requests:
      - {name: gpu, exactly: {deviceClassName: gpu.vfio.katacontainers.io}}
`

// single is a template for one certain GPU.
func single(address string) string {
	return strings.NewReplacer("name: one-gpu", "name: that-gpu", "gpu.vfio.katacontainers.io}", `gpu.vfio.katacontainers.io, selectors: [{cel: {expression: 'device.attributes["resource.kubernetes.io"].pciBusID == "`+address+`"'}}]}`).Replace(oneGPU)
}

// claimOf is the claim of a pod that was made from a template.
func claimOf(t *testing.T, p *plane.Plane, pod *v1.Pod) *resourceapi.ResourceClaim {
	t.Helper()
	var claim *resourceapi.ResourceClaim
	plane.Await(t, "the claim of pod "+pod.Name, func(ctx context.Context) error {
		now, err := p.Client().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(now.Status.ResourceClaimStatuses) == 0 || now.Status.ResourceClaimStatuses[0].ResourceClaimName == nil {
			return errors.New("it has none yet")
		}
		claim, err = p.Client().ResourceV1().ResourceClaims(pod.Namespace).Get(ctx, *now.Status.ResourceClaimStatuses[0].ResourceClaimName, metav1.GetOptions{})
		return err
	})
	return claim
}

// allocated are the names of a claim's devices.
func allocated(c *resourceapi.ResourceClaim) []string {
	var all []string
	if c.Status.Allocation != nil {
		for _, r := range c.Status.Allocation.Devices.Results {
			all = append(all, r.Device)
		}
	}
	return all
}

// TestWhenCreated: the claim of a template is there with its pod, before any node is chosen, and
// goes with it.
func TestWhenCreated(t *testing.T) {
	p := start(t, plane.Options{})
	p.Create(t, oneGPU)
	pod := p.Pod(t, plane.ClaimPod("early", "one-gpu")) // there is no node yet
	claim := claimOf(t, p, pod)
	if claim.Status.Allocation != nil {
		t.Errorf("it is allocated to %v", allocated(claim))
	}
	m := join(t, p, "node-a", "hgx-h100")
	m.run()
	p.AwaitPhase(t, pod, v1.PodRunning)
	p.Delete(t, pod)
	p.AwaitGone(t, pod)
	m.awaitEmpty()
}

// TestWhenSelected: devices are chosen with the node, by the scheduler; the driver gets them when the
// pod starts, and nothing of them is on disk before.
func TestWhenSelected(t *testing.T) {
	p := start(t, plane.Options{})
	m := join(t, p, "node-a", "hgx-h100")
	m.run()
	p.Create(t, oneGPU)
	m.Stop() // kubelet does not start pods for a while
	pod := p.AwaitBound(t, p.Pod(t, plane.ClaimPod("chosen", "one-gpu")))
	before := allocated(claimOf(t, p, pod))
	if len(before) != 1 || len(m.records())+len(m.specs()) > 0 {
		t.Errorf("allocated %v; on disk are %v, %v", before, m.records(), m.specs())
	}
	must(t, m.Start())
	p.AwaitPhase(t, pod, v1.PodRunning)
	if after := allocated(claimOf(t, p, pod)); !slices.Equal(after, before) {
		t.Errorf("chosen were %v, and are %v", before, after)
	}
	if nodes := m.nodes(pod); len(nodes) != 1 || !strings.HasPrefix(nodes[0], "/dev/vfio/devices/vfio") {
		t.Errorf("it has the nodes %v", nodes)
	}
	names, err := m.CDIDevices(pod, "c")
	must(t, err)
	if want := fmt.Sprintf("%s/claim=%s-%s", driver, claimOf(t, p, pod).UID, before[0]); len(names) != 1 || names[0] != want {
		t.Errorf("the CDI names are %v, want %s", names, want)
	}
}

// TestReuse: a device goes from pod to pod, after deletion, after a pod that failed, and to a pod of
// the same name.
func TestReuse(t *testing.T) {
	p := start(t, plane.Options{})
	m := join(t, p, "node-a", "hgx-h100")
	m.run()
	p.Create(t, single(gpuA))
	for i, end := range []func(*v1.Pod){
		func(pod *v1.Pod) { p.Delete(t, pod); p.AwaitGone(t, pod) },
		func(pod *v1.Pod) { must(t, m.Exit(pod, v1.PodFailed)); p.AwaitPhase(t, pod, v1.PodFailed) },
		func(pod *v1.Pod) { must(t, m.Exit(pod, v1.PodSucceeded)); p.AwaitPhase(t, pod, v1.PodSucceeded) },
	} {
		pod := p.AwaitPhase(t, p.Pod(t, plane.ClaimPod(fmt.Sprintf("user-%d", i), "that-gpu")), v1.PodRunning)
		if got := allocated(claimOf(t, p, pod)); !slices.Equal(got, []string{deviceName("gpu", gpuA)}) {
			t.Errorf("it has %v", got)
		}
		end(pod)
	}
	m.awaitEmpty()
	again := p.AwaitPhase(t, p.Pod(t, plane.ClaimPod("again", "that-gpu")), v1.PodRunning)
	p.Delete(t, again)
	p.AwaitGone(t, again)
	p.AwaitPhase(t, p.Pod(t, plane.ClaimPod("again", "that-gpu")), v1.PodRunning)
}

// TestDriverRestart: a driver that is killed, stopped or replaced writes nothing to the API server
// when it is back, and what pods have stays theirs; pods that ended meanwhile are cleared up.
func TestDriverRestart(t *testing.T) {
	p := start(t, plane.Options{})
	m := join(t, p, "node-a", "hgx-h100")
	d := m.run()
	p.Create(t, oneGPU)
	stays := p.AwaitPhase(t, p.Pod(t, plane.ClaimPod("stays", "one-gpu")), v1.PodRunning)
	goes := p.AwaitPhase(t, p.Pod(t, plane.ClaimPod("goes", "one-gpu")), v1.PodRunning)
	nodes, writes := m.nodes(stays), len(p.Writes(t, "resourceslices"))
	for _, end := range []func(){func() { must(t, d.Kill()) }, func() { d.stop() }, func() { must(t, d.Kill()) }} {
		end()
		d = m.run()
		if got := m.nodes(stays); !slices.Equal(got, nodes) {
			t.Errorf("the pod's nodes were %v, and are %v", nodes, got)
		}
	}
	must(t, d.Kill())
	p.Delete(t, goes)
	d = m.run()
	p.AwaitGone(t, goes)
	if got := len(m.records()); got != 1 {
		t.Errorf("there are %d records", got)
	}
	next := m.run() // a rolling update: both are there for a while
	d.stop()
	p.AwaitPhase(t, p.Pod(t, plane.ClaimPod("new", "one-gpu")), v1.PodRunning)
	if got := p.Writes(t, "resourceslices"); len(got) != writes {
		t.Errorf("slices were written: %v", got[writes:])
	}
	if lines := next.log.Lines(`"level":"ERROR"`); len(lines) > 0 {
		t.Errorf("%v", lines)
	}
}

// TestNotReady: a node that is not heard of keeps what its pods have, and gets nothing new.
func TestNotReady(t *testing.T) {
	p := start(t, plane.Options{})
	m := join(t, p, "node-a", "hgx-h100")
	m.run()
	p.Create(t, oneGPU)
	pod := p.AwaitPhase(t, p.Pod(t, plane.ClaimPod("stays", "one-gpu")), v1.PodRunning)
	m.SetReady(t, false)
	waits := p.AwaitPending(t, p.Pod(t, plane.ClaimPod("waits", "one-gpu")), "untolerated taint")
	if got := allocated(claimOf(t, p, pod)); len(got) != 1 || len(m.records()) != 1 {
		t.Errorf("it has %v, and there are the records %v", got, m.records())
	}
	m.SetReady(t, true)
	p.AwaitPhase(t, waits, v1.PodRunning)
}

// TestWholeBoard: all devices of a board are one pod's, or nobody's part of them is.
func TestWholeBoard(t *testing.T) {
	p := start(t, plane.Options{})
	m := join(t, p, "node-a", "hgx-h100")
	m.run()
	p.Create(t, oneGPU)
	p.Create(t, `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: board, namespace: default}
spec:
  spec:
    devices:
      requests:
      - {name: gpus, exactly: {deviceClassName: gpu.vfio.katacontainers.io, allocationMode: All}}
      - {name: switches, exactly: {deviceClassName: nvswitch.vfio.katacontainers.io, allocationMode: All}}
`)
	one := p.AwaitPhase(t, p.Pod(t, plane.ClaimPod("one", "one-gpu")), v1.PodRunning)
	board := p.AwaitPending(t, p.Pod(t, plane.ClaimPod("board", "board")), "cannot allocate all claims")
	p.Delete(t, one)
	p.AwaitPhase(t, board, v1.PodRunning)
	if got := len(m.nodes(board)); got != 12 {
		t.Errorf("it has %d nodes", got)
	}
	p.AwaitPending(t, p.Pod(t, plane.ClaimPod("late", "one-gpu")), "cannot allocate all claims")
}

// TestWhenFree: to the scheduler a device is free when its pod has gone, and to the driver when
// kubelet has torn the pod down. A pod that is deleted by force may be between the two: the next
// one waits for the old one to end, and never shares its device.
func TestWhenFree(t *testing.T) {
	p := start(t, plane.Options{})
	m := join(t, p, "node-a", "hgx-h100")
	d := m.run()
	p.Create(t, single(gpuA))
	old := p.AwaitPhase(t, p.Pod(t, plane.ClaimPod("old", "that-gpu")), v1.PodRunning)
	m.Hold(old) // it takes its time to end
	p.ForceDelete(t, old)
	next := p.AwaitBound(t, p.Pod(t, plane.ClaimPod("next", "that-gpu")))
	d.await(`"msg":"not prepared"`, "is held by claim default/old")
	if got := len(m.records()); got != 1 {
		t.Errorf("there are %d records", got)
	}
	m.Release(old)
	p.AwaitPhase(t, next, v1.PodRunning)
}

// TestRestore: the control plane is set back to an earlier day. What it has forgotten is held on the
// node until kubelet and the driver have found out, and nothing is handed out twice.
func TestRestore(t *testing.T) {
	p := start(t, plane.Options{})
	m := join(t, p, "node-a", "hgx-h100")
	d := m.run()
	p.Create(t, single(gpuA))
	backup := p.Backup(t)
	lost := p.AwaitPhase(t, p.Pod(t, plane.ClaimPod("lost", "that-gpu")), v1.PodRunning)
	m.Hold(lost)
	p.Restore(t, backup)
	m.Restart(t) // versions of objects have gone backwards, which no kubelet gets over by itself
	next := p.AwaitBound(t, p.Pod(t, plane.ClaimPod("next", "that-gpu")))
	d.await(`"msg":"not prepared"`, "is held by claim default/lost")
	m.Release(lost)
	p.AwaitPhase(t, next, v1.PodRunning)
	if got := len(m.records()); got != 1 {
		t.Errorf("there are %d records", got)
	}
}
