// Package peer runs real nodes for tests: kubelet and containerd as they ship, in
// namespaces of their own, beside a simulated machine and the shipped plugin; and real
// control planes that they can join.
//
// A node has its own processes, mounts, network, host name and control group, and its
// own files in place of the few values of the kernel that kubelet sets. Several nodes
// may run at once. Everything it is made of ends when its first process does, which is
// when the test ends, in whatever way.
package peer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/peer/wire"
)

// Options say what a node is to be.
type Options struct {
	Programs *Programs
	Name     string        // host name and node name; empty is Hostname
	Platform string        // of the simulated machine; empty is "hgx-h100"
	CDISize  string        // CDI specs get a file system of this size; empty is enough of everything
	Stopped  bool          // kubelet is not started yet
	Join     *ControlPlane // nil is a kubelet that stands alone
}

// Hostname is the name of a node that was given none.
const Hostname = "peer-node"

// Node is a machine with kubelet and containerd.
type Node struct {
	*box
	// Machine is the simulated hardware.
	Machine *sim.Node

	options Options
	machine string // the simulated machine's directory
	cgroup  string

	containerd *Containerd
	kubelet    *Kubelet
	plugin     *Plugin
	plugins    int
	stopped    bool
}

// StartNode starts a node. It ends with the test; if the test failed, its logs are kept
// and the test says where.
func StartNode(t testing.TB, o Options) *Node {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	n := &Node{box: &box{t: t}, options: o}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	steps := newSteps()
	if err := n.bring(ctx, steps.done); err != nil {
		t.Fatalf("start a node: %v", err)
	}
	t.Logf("node %s was started: %s", n.name, steps)
	return n
}

// bring starts everything, in order, and tells of each step that is done.
func (n *Node) bring(ctx context.Context, done func(step string)) error {
	if err := n.lay(); err != nil {
		return err
	}
	done("machine")
	n.containerd = &Containerd{service{box: n.box, name: "containerd"}}
	n.kubelet = &Kubelet{service: service{box: n.box, name: "kubelet"}, node: n}
	n.plugin = n.AnotherPlugin()
	if err := n.boot(ctx, done); err != nil {
		return err
	}
	if err := n.containerd.load(ctx, n.options.Programs); err != nil {
		return err
	}
	done("images")
	if n.options.Stopped {
		return nil
	}
	if err := n.kubelet.Start(ctx); err != nil {
		return err
	}
	done("kubelet")
	return nil
}

// lay makes the directories and files of a node.
func (n *Node) lay() (err error) {
	o := n.options
	if o.Name == "" {
		o.Name = Hostname
	}
	n.box, err = newBox(n.t, o.Name, "manifests", "log/pods", "log/containers",
		"lib/containerd", "lib/kubelet/device-plugins", "lib/kubelet/volumeplugins")
	if err != nil {
		return err
	}
	n.cgroup = cgroupPrefix + strings.TrimPrefix(filepath.Base(n.dir), statePrefix)
	files := map[string]string{
		"kubelet.yaml":  kubeletConfig(n.cgroup, o.Join != nil),
		"containerd":    containerdConfig(o.Programs.paths["runc"], n.dir),
		"peer.conflist": `{"cniVersion":"1.0.0","name":"peer","plugins":[{"type":"peer-cni"}]}`,
	}
	if o.Join != nil {
		if err := o.Join.admit(n.name, files); err != nil {
			return err
		}
	}
	if err := n.configure(files); err != nil {
		return err
	}
	platform := o.Platform
	if platform == "" {
		platform = "hgx-h100"
	}
	p, err := sim.PlatformByName(platform)
	if err != nil {
		return err
	}
	if n.machine, err = sim.TempDir(); err != nil {
		return err
	}
	if n.Machine, err = sim.New(n.machine, p); err != nil {
		return err
	}
	// Where runc mounts control groups in a container whose /sys is this one.
	return os.MkdirAll(filepath.Join(n.machine, "sys/fs/cgroup"), 0o755)
}

// boot makes what a machine has anew each time it is switched on, and starts containerd.
func (n *Node) boot(ctx context.Context, done func(step string)) error {
	if err := makeCgroup(n.cgroup); err != nil {
		return err
	}
	o := n.options
	spec := wire.Spec{Machine: n.machine, CDISize: o.CDISize, Network: wire.Alone, BootID: bootID()}
	if o.Join != nil {
		spec.Network = wire.Joined
	}
	if err := n.enter(ctx, o.Programs, spec); err != nil {
		return err
	}
	if o.Join != nil {
		if err := o.Join.connect(ctx, n); err != nil {
			return err
		}
	}
	done("namespaces")
	if err := n.containerd.Start(ctx); err != nil {
		return err
	}
	done("containerd")
	return nil
}

// PowerOff ends every process of the node at once, as the power going does. What is on
// disk stays: kubelet's and containerd's directories. /run is gone, and with it the CDI
// specs.
func (n *Node) PowerOff(ctx context.Context) error {
	err := n.leave()
	for _, s := range []*service{&n.containerd.service, &n.kubelet.service, &n.plugin.service} {
		if s.proc != nil {
			<-s.proc.exited // at once: the other end of its connection has gone
		}
	}
	if err := errors.Join(err, removeCgroups(ctx, n.cgroup)); err != nil {
		return fmt.Errorf("switch %s off: %w", n.name, err)
	}
	return nil
}

// PowerOn ends PowerOff: another boot, with containerd and without kubelet.
func (n *Node) PowerOn(ctx context.Context) error {
	if err := n.boot(ctx, func(string) {}); err != nil {
		return fmt.Errorf("switch %s on: %w", n.name, err)
	}
	return nil
}

// bootID is a random UUID, like the kernel's.
func bootID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x\n", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Containerd is the node's container runtime.
func (n *Node) Containerd() *Containerd { return n.containerd }

// Kubelet is the node's kubelet.
func (n *Node) Kubelet() *Kubelet { return n.kubelet }

// Plugin is the node's device plugin. It is not started with the node.
func (n *Node) Plugin() *Plugin { return n.plugin }

// Name is the node's host name, and that of its Node object.
func (n *Node) Name() string { return n.name }
