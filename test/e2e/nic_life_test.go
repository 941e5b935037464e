package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/kubelet"
)

// The resources of everything that are used below.
const (
	nicVFIO = "intel.com/vfio"
	nicCdev = "intel.com/cdev"
	nicNet  = "intel.com/net"
	nicRDMA = "nvidia.com/rdma"
	nicHCA  = "rdma/hca"
)

// tenants are pods with a device of each of some resources, and what they got.
type tenants struct {
	pods map[string]*v1.Pod
	got  map[string]kubelet.Container
}

// occupied is a node with pods that have a VF on VFIO, one with its kernel driver, one with
// RDMA, and two shares.
func occupied(t *testing.T) (*nicNode, tenants) {
	t.Helper()
	n := adapters(t)
	n.run()
	n.all()
	all := tenants{map[string]*v1.Pod{}, map[string]kubelet.Container{}}
	for resource, count := range map[string]int64{nicVFIO: 1, nicNet: 1, nicRDMA: 1, nicHCA: 2} {
		pod := n.admit(resource, count)
		all.pods[resource], all.got[resource] = pod, n.container(pod)
		n.Options.Running = append(n.Options.Running, pod)
	}
	return n, all
}

// all waits until everything is allocatable.
func (n *nicNode) all() {
	n.t.Helper()
	for resource, ids := range map[string][]string{
		nicVFIO: {"0000:65:00.3"}, nicCdev: {"0000:65:00.4"}, nicRDMA: {"0000:65:00.7"}, "intel.com/vdpa": {"0000:65:00.5"},
		nicNet: {"0000:65:00.2"}, "intel.com/uio": {"0000:65:00.6"}, "intel.com/acc": {"0000:f7:00.0"}, "intel.com/sf": {"mlx5_core.sf.4"},
		nicHCA: {"0000:65:00.7::0", "0000:65:00.7::1", "0000:65:00.7::2"},
	} {
		n.await(resource, ids...)
	}
}

// same checks that each pod has what it had, that kubelet would hand the same to the runtime
// again, and that what it was given still means the same.
func (n *nicNode) same(all tenants) {
	n.t.Helper()
	for resource, pod := range all.pods {
		want := all.got[resource]
		if got := n.container(pod); !reflect.DeepEqual(got, want) {
			n.t.Errorf("a pod with %s starts again with %v, had %v", resource, got, want)
		}
		for _, name := range want.CDI {
			if _, err := n.Resolve(name); err != nil {
				n.t.Errorf("a pod with %s: %v", resource, err)
			}
		}
		for _, id := range n.held(pod, resource) {
			_, err := os.Stat(n.infoFile(resource, id))
			if resource != nicHCA && err != nil {
				n.t.Errorf("a pod with %s: %v", resource, err)
			}
			if health := n.health(pod, resource, id); health != v1.ResourceHealthStatusHealthy {
				n.t.Errorf("the status of a pod with %s says %s", resource, health)
			}
		}
	}
	for _, resource := range []string{nicVFIO, nicNet, nicRDMA} {
		n.refused(resource, 1, "UnexpectedAdmissionError") // it is not handed out twice
	}
	n.refused(nicHCA, 2, "UnexpectedAdmissionError")
}

// TestNICKubeletRestart: kubelet reads its checkpoint, the plugin registers again, and pods
// keep what they have.
func TestNICKubeletRestart(t *testing.T) {
	n, pods := occupied(t)
	for range 3 {
		n.restartKubelet()
		n.all()
		n.same(pods)
	}
	n.admit(nicCdev, 1)
	n.admit(nicHCA, 1)
}

// TestNICReboot: no container outlived the restart, so that kubelet admits each pod again, with
// what its checkpoint says. That takes healthy devices: shares and hidden ones too.
func TestNICReboot(t *testing.T) {
	n, pods := occupied(t)
	n.must(n.Kubelet.Stop())
	n.must(n.Plugin.Kill())
	n.Options.Running, n.Options.Known = nil, n.Options.Running
	n.run()
	n.all()
	for _, pod := range pods.pods {
		n.must(n.Kubelet.Admit(n.ctx, pod))
	}
	n.same(pods)
	if n.logged(`"msg":"allocated"`) != len(pods.pods) {
		t.Error("Allocate was called anew")
	}
}

// TestNICKilled: the plugin is killed and starts again, once beside kubelet and once after it.
func TestNICKilled(t *testing.T) {
	n, pods := occupied(t)
	for _, kubeletToo := range []bool{false, true} {
		n.must(n.Plugin.Kill())
		n.gone()
		n.files(pods)
		if kubeletToo {
			n.restartKubelet()
		}
		n.restarted()
		n.all()
		n.same(pods)
		if sockets, _ := filepath.Glob(filepath.Join(n.Roots.DevicePlugins, "kata-nic-*.sock")); len(sockets) != 9 {
			t.Errorf("sockets %v", sockets)
		}
	}
}

// gone waits until kubelet knows that the plugin has ended.
func (n *nicNode) gone() {
	n.t.Helper()
	for _, resource := range n.Kubelet.Resources() {
		n.await(resource)
	}
}

// files checks that what pods were given stays on disk while no plugin runs.
func (n *nicNode) files(all tenants) {
	n.t.Helper()
	for resource, pod := range all.pods {
		for _, name := range all.got[resource].CDI {
			if _, err := n.Resolve(name); err != nil {
				n.t.Errorf("between two lives: %v", err)
			}
		}
		for _, id := range n.held(pod, resource) {
			if _, err := os.Stat(n.infoFile(resource, id)); resource != nicHCA && err != nil {
				n.t.Errorf("between two lives: %v", err)
			}
		}
	}
}

// TestNICStop: SIGTERM ends the plugin within a second and with exit code 0. It leaves no
// socket, and all that pods were given.
func TestNICStop(t *testing.T) {
	n, pods := occupied(t)
	code, took, err := n.Plugin.Terminate(n.ctx)
	n.must(err)
	if code != 0 || took > time.Second {
		t.Errorf("exit code %d after %v", code, took)
	}
	n.gone()
	n.files(pods)
	if sockets, _ := filepath.Glob(filepath.Join(n.Roots.DevicePlugins, "kata-nic-*.sock")); len(sockets) > 0 {
		t.Errorf("left %v", sockets)
	}
	n.restarted()
	n.all()
	n.same(pods)
}

// TestNICAway: CNI plugins take interfaces, and in RDMA's exclusive mode RDMA devices, out of
// the host's sight. What pods have stays theirs and healthy, also for a plugin and a kubelet
// that start meanwhile. Shares of an RDMA device that is away are not.
func TestNICAway(t *testing.T) {
	n, pods := occupied(t)
	n.must(errors.Join(n.MoveToPod("0000:65:00.2", false), n.MoveToPod("0000:65:00.7", false)))
	n.happened()
	n.must(n.Plugin.Kill())
	n.gone()
	n.restarted()
	n.all()
	n.same(pods)

	n.must(n.MoveToPod("0000:65:00.7", true))
	n.Kubelet.Remove(pods.pods[nicHCA])
	delete(pods.pods, nicHCA)
	n.Options.Running = slices.DeleteFunc(n.Options.Running, func(p *v1.Pod) bool { return n.held(p, nicHCA) != nil })
	n.happened()
	n.await(nicHCA)
	n.restartKubelet()
	n.await(nicRDMA, "0000:65:00.7")
	for _, r := range []string{nicNet, nicRDMA} {
		id := n.held(pods.pods[r], r)[0]
		if health := n.health(pods.pods[r], r, id); health != v1.ResourceHealthStatusHealthy {
			t.Errorf("%s %s is %s", r, id, health)
		}
		n.Kubelet.Remove(pods.pods[r])
	}
	n.must(errors.Join(n.MoveToHost("0000:65:00.2"), n.MoveToHost("0000:65:00.7")))
	n.happened()
	n.all()
	n.admit(nicNet, 1)
	n.admit(nicHCA, 3)
	c := n.container(n.admit(nicRDMA, 1))
	if len(c.Nodes) != 4 {
		t.Errorf("after the return a pod gets %v", c)
	}
}

// TestNICAwayRestarted: in RDMA's exclusive mode the plugin starts while a pod has an RDMA
// device. The pod keeps it, healthy, and its container can start again: the nodes are there,
// and kubelet hands their CDI name to the runtime once more.
func TestNICAwayRestarted(t *testing.T) {
	n, pods := occupied(t)
	pod := pods.pods[nicRDMA]
	n.must(n.MoveToPod("0000:65:00.7", true))
	n.happened()
	n.await(nicHCA)
	n.must(n.Plugin.Kill())
	n.gone()
	n.restarted()
	n.await(nicNet, "0000:65:00.2")
	n.await(nicRDMA, "0000:65:00.7")
	n.awaitLog(`"msg":"ready"`)
	if health := n.health(pod, nicRDMA, "0000:65:00.7"); health != v1.ResourceHealthStatusHealthy {
		t.Errorf("the pod's status says %s", health)
	}
	for _, name := range n.container(pod).CDI {
		if _, err := n.Resolve(name); err != nil {
			t.Errorf("the container cannot start again: %v", err)
		}
	}
}

// TestNICFlags: what stands in the manifests of the plugins that this one replaces.
func TestNICFlags(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		code int
	}{
		{"an unknown flag", []string{"--what"}, 2},
		{"an argument", []string{"config.json"}, 2},
		{"the version", []string{"--version"}, 0},
		{"help", []string{"--help"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNICNode(t, sim.Platform{Name: "empty"})
			n.Args = c.args
			n.restarted()
			if code, err := n.Plugin.Wait(n.ctx); code != c.code || err != nil {
				t.Errorf("exit code %d, want %d: %v", code, c.code, err)
			}
		})
	}
}
