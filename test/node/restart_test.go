//go:build node

package node

import (
	"context"
	"syscall"
	"testing"
	"time"

	"kata-device-plugin/test/peer"
)

// registrations counts how often the plugin has registered a resource.
func (n *node) registrations(resource string) int {
	n.t.Helper()
	count, err := n.Plugin().Count(func(l peer.Line) bool {
		return l.Msg == "registered with kubelet" && l.Resource == resource
	})
	n.must(err)
	return count
}

// TestKubeletRestart: when kubelet comes back, the plugin registers again, once, and
// running pods notice nothing.
func TestKubeletRestart(t *testing.T) {
	for name, restart := range map[string]func(*peer.Kubelet, context.Context) error{
		"SIGTERM": (*peer.Kubelet).Restart,
		"SIGKILL": (*peer.Kubelet).Crash,
	} {
		t.Run(name, func(t *testing.T) {
			n := ready(t, peer.Options{})
			held := n.run("train", 2)
			for life := 2; life <= 4; life++ {
				n.must(restart(n.Kubelet(), n.ctx))
				n.settled()
				n.holds("train", held)
				if got := n.registrations(gpu); got != life {
					t.Errorf("registered %d times in %d lives of kubelet", got, life)
				}
			}
			n.apart(held, n.run("other", 6))
		})
	}
}

// TestKubeletAway: while kubelet is away the plugin says that it is not ready and lives,
// and what happens to devices meanwhile is known to the next kubelet at once.
func TestKubeletAway(t *testing.T) {
	n := ready(t, peer.Options{})
	_, err := n.Kubelet().Stop(n.ctx)
	n.must(err)
	n.must(n.Plugin().AwaitReady(n.ctx, false))
	n.must(n.Plugin().Alive(n.ctx))
	n.must(n.Machine.Unbind(n.address(n.gpus()[0])))
	n.must(n.Kubelet().Start(n.ctx))
	n.settled()
}

// TestStaleSocket: the plugin starts before kubelet, and finds the socket of a kubelet
// that has gone, beside one of a plugin that has gone.
func TestStaleSocket(t *testing.T) {
	n := ready(t, peer.Options{})
	_, err := n.Kubelet().Kill(n.ctx)
	n.must(err)
	_, err = n.Plugin().Kill(n.ctx)
	n.must(err)
	n.must(n.Plugin().Start(n.ctx))
	n.must(n.Plugin().AwaitReady(n.ctx, false))
	n.must(n.Plugin().Alive(n.ctx))
	n.must(n.Kubelet().Start(n.ctx))
	n.settled()
	n.run("train", 8)
	left, err := n.Sockets("kata-*.sock")
	n.must(err)
	if len(left) != 2 {
		t.Errorf("sockets %v, want one for each resource", left)
	}
}

// TestBeforeKubelet: on a fresh node the plugin is there before the first kubelet is.
func TestBeforeKubelet(t *testing.T) {
	n := newNode(t, peer.Options{Stopped: true})
	n.must(n.Plugin().Start(n.ctx))
	n.must(n.Plugin().AwaitReady(n.ctx, false))
	n.must(n.Plugin().Alive(n.ctx))
	n.must(n.Kubelet().Start(n.ctx))
	n.settled()
	n.run("train", 1)
}

// TestContainerdRestart: the plugin has nothing to do with it, and pods go on.
func TestContainerdRestart(t *testing.T) {
	for name, restart := range map[string]func(*peer.Containerd, context.Context) error{
		"SIGTERM": (*peer.Containerd).Restart,
		"SIGKILL": (*peer.Containerd).Crash,
	} {
		t.Run(name, func(t *testing.T) {
			n := ready(t, peer.Options{})
			held := n.run("train", 2)
			n.must(restart(n.Containerd(), n.ctx))
			n.settled()
			n.apart(held, n.run("other", 2))
			n.holds("train", held)
			if got := n.registrations(gpu); got != 1 {
				t.Errorf("registered %d times", got)
			}
		})
	}
}

// TestPluginRestart: the plugin goes and comes back while one pod holds devices and
// another was granted some and is being created.
func TestPluginRestart(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGKILL": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			n := ready(t, peer.Options{})
			held := n.run("train", 2)
			n.must(n.HoldPods())
			n.must(n.StaticPod(peer.NewPod("new", gpu, 2)))
			n.granted("new", 2)
			n.must(n.Plugin().Restart(n.ctx, signal))
			n.settled()
			n.must(n.LetPods())
			n.apart(held, n.running("new", 2))
			n.holds("train", held)
			n.settled()
			n.apart(held, n.run("later", 4))
		})
	}
}

// granted waits until kubelet has noted devices for a pod that does not run yet.
func (n *node) granted(name string, count int) {
	n.t.Helper()
	n.must(peer.Await(n.ctx, "devices to be granted to pod "+name, func(ctx context.Context) error {
		return n.complain(ctx, name, count)
	}))
}

// TestUpgrade: the old plugin goes, the new one comes. Between the two a pod that asks is
// refused, and not run without devices; before and after it is served.
func TestUpgrade(t *testing.T) {
	n := ready(t, peer.Options{})
	held := n.run("train", 2)
	exit, err := n.Plugin().Terminate(n.ctx)
	n.must(err)
	if exit != (peer.Exit{}) {
		t.Errorf("SIGTERM: %s", exit)
	}
	n.must(n.AwaitAllocatable(n.ctx, gpu, nil))
	n.must(n.StaticPod(peer.NewPod("between", gpu, 1)))
	n.rejected("between", "UnexpectedAdmissionError")
	successor := n.AnotherPlugin()
	n.must(successor.Start(n.ctx))
	n.must(n.AwaitAllocatable(n.ctx, gpu, n.gpus()))
	n.must(successor.AwaitReady(n.ctx, true))
	n.holds("train", held)
	n.apart(held, n.run("after", 6))
}

// TestTwoPlugins: a second copy waits for the first, not ready, and takes over when it
// goes. kubelet never has two.
func TestTwoPlugins(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGKILL": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			n := ready(t, peer.Options{})
			held := n.run("train", 2)
			second := n.AnotherPlugin()
			n.must(second.Start(n.ctx))
			n.must(second.AwaitFinding(n.ctx, "PLG018"))
			n.must(second.AwaitReady(n.ctx, false))
			n.must(second.Alive(n.ctx))
			sockets, err := n.Sockets("kata-gpu-*.sock")
			n.must(err)
			calls, err := second.Count(func(l peer.Line) bool { return l.Msg == "registered with kubelet" })
			n.must(err)
			if len(sockets) != 1 || calls > 0 {
				t.Errorf("while the second copy waits there are the sockets %v, and it has registered %d times", sockets, calls)
			}
			n.must(n.Plugin().Signal(n.ctx, signal))
			n.must(second.AwaitReady(n.ctx, true))
			n.must(n.AwaitAllocatable(n.ctx, gpu, n.gpus()))
			n.holds("train", held)
			n.apart(held, n.run("after", 6))
		})
	}
}

// TestSlowKubelet: kubelet stands still for some seconds. The plugin neither gives up nor
// tries again and again.
func TestSlowKubelet(t *testing.T) {
	t.Run("during registration", func(t *testing.T) {
		n := newNode(t, peer.Options{})
		n.must(n.Kubelet().Pause())
		n.must(n.Plugin().Start(n.ctx))
		n.must(n.Plugin().AwaitReady(n.ctx, false))
		n.must(n.Kubelet().PauseFor(n.ctx, 5*time.Second))
		n.settled()
		n.steady(1, 0)
	})
	t.Run("for longer than a registration may take", func(t *testing.T) {
		n := newNode(t, peer.Options{})
		n.must(n.Kubelet().Pause())
		n.must(n.Plugin().Start(n.ctx))
		n.must(n.Kubelet().PauseFor(n.ctx, 20*time.Second))
		n.settled()
		n.steady(1, 2)
		n.run("train", 8)
	})
	t.Run("during ListAndWatch", func(t *testing.T) {
		n := ready(t, peer.Options{})
		n.must(n.Kubelet().Pause())
		lost := n.gpus()[0]
		n.must(n.Machine.Unbind(n.address(lost)))
		n.must(n.Kubelet().PauseFor(n.ctx, 5*time.Second))
		n.settled()
		n.steady(1, 0)
		n.must(n.Machine.Bind(n.address(lost), "vfio-pci"))
		n.settled()
		n.steady(1, 0)
	})
}

// steady complains if the plugin has registered GPUs more often than it should have, or
// has lost its registration more often.
func (n *node) steady(registered, lost int) {
	n.t.Helper()
	if got := n.registrations(gpu); got != registered {
		n.t.Errorf("registered %d times, want %d", got, registered)
	}
	got, err := n.Plugin().Count(func(l peer.Line) bool { return l.Msg == "not registered with kubelet" && l.Resource == gpu })
	n.must(err)
	if got > lost {
		n.t.Errorf("lost the registration %d times, want %d at most", got, lost)
	}
}
