//go:build node

package node

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"kata-device-plugin/internal/pci"

	"kata-device-plugin/test/peer"
)

// gpu is the resource that most tests are about.
const (
	gpu      = "nvidia.com/gpu"
	nvswitch = "nvidia.com/nvswitch"
)

// programs are what the nodes run, made once for all tests.
var programs *peer.Programs

func TestMain(m *testing.M) { os.Exit(peer.Main(m, peer.Build, &programs)) }

// node is a node of a test.
type node struct {
	*peer.Node
	t   *testing.T
	ctx context.Context
}

// newNode starts a node without a plugin.
func newNode(t *testing.T, o peer.Options) *node {
	t.Helper()
	t.Parallel()
	o.Programs = programs
	n := peer.StartNode(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return &node{Node: n, t: t, ctx: ctx}
}

// ready starts a node and its plugin, and waits until all devices can be had.
func ready(t *testing.T, o peer.Options) *node {
	t.Helper()
	n := newNode(t, o)
	n.must(n.Plugin().Start(n.ctx))
	n.settled()
	return n
}

// settled waits until kubelet has every bound device, and the plugin says it is ready.
func (n *node) settled() {
	n.t.Helper()
	n.must(n.AwaitAllocatable(n.ctx, gpu, n.Machine.GPUs()))
	n.must(n.AwaitAllocatable(n.ctx, nvswitch, n.Machine.NVSwitches()))
	n.must(n.Plugin().AwaitReady(n.ctx, true))
	n.must(n.Plugin().Alive(n.ctx))
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) gpus() []string { return n.Machine.GPUs() }

func (n *node) address(id string) pci.Address {
	n.t.Helper()
	a, err := pci.ParseAddress(id)
	n.must(err)
	return a
}

// nodeOf is the present device node of a device: its path and its number.
func (n *node) nodeOf(id string) (path, number string) {
	n.t.Helper()
	path, number, err := n.DeviceNode(id)
	n.must(err)
	return path, number
}

// run starts a pod that asks for GPUs, and waits until its container runs with just the
// nodes of the devices that PodResources names. It returns their IDs.
func (n *node) run(name string, count int64) []string {
	n.t.Helper()
	n.must(n.StaticPod(peer.NewPod(name, gpu, count)))
	return n.running(name, int(count))
}

func (n *node) running(name string, count int) []string {
	n.t.Helper()
	_, held, err := n.AwaitDevices(n.ctx, name, gpu, count)
	n.must(err)
	return held
}

// holds complains if a pod does not hold just these devices, or has been restarted. A
// kubelet that has just started takes a moment to find its pods again.
func (n *node) holds(name string, want []string) {
	n.t.Helper()
	pod, _, err := n.AwaitRunning(n.ctx, name)
	n.must(err)
	var held []string
	n.must(peer.Await(n.ctx, "kubelet to know pod "+name, func(ctx context.Context) (err error) {
		held, err = n.Held(ctx, name, gpu)
		return err
	}))
	if !slices.Equal(held, want) {
		n.t.Errorf("pod %s holds %v, had %v", name, held, want)
	}
	if c := peer.Container(pod); c.State.Running == nil || c.RestartCount > 0 {
		n.t.Errorf("the container of pod %s did not go on: %+v", name, c)
	}
}

// apart complains if a device is in both lists.
func (n *node) apart(a, b []string) {
	n.t.Helper()
	for _, id := range a {
		if slices.Contains(b, id) {
			n.t.Errorf("%s was handed out twice: %v, %v", id, a, b)
		}
	}
}
