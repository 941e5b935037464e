//go:build node

package node

import (
	"syscall"
	"testing"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"kata-device-plugin/test/peer"
)

// TestContested: another plugin registers the resource, and kubelet believes it. The
// plugin says so, is not ready, and serves on; when the other has gone, in whatever way,
// kubelet has the right list again.
func TestContested(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGKILL": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			n := ready(t, peer.Options{})
			held := n.run("train", 2)
			rival, err := n.StartRival(n.ctx, gpu, "rival-0", "rival-1")
			n.must(err)
			n.must(n.AwaitAllocatable(n.ctx, gpu, []string{"rival-0", "rival-1"}))
			n.must(n.Plugin().AwaitFinding(n.ctx, "PLG007"))
			n.must(n.Plugin().AwaitReady(n.ctx, false))
			n.must(n.Plugin().Alive(n.ctx))
			n.resolves()
			n.holds("train", held)
			sockets, err := n.Sockets("kata-gpu-*.sock")
			n.must(err)
			if len(sockets) != 1 {
				t.Errorf("it no longer serves: sockets %v", sockets)
			}
			n.must(n.AwaitAllocatable(n.ctx, nvswitch, n.Machine.NVSwitches()))
			n.must(rival.Signal(n.ctx, signal))
			n.settled()
			n.apart(held, n.run("after", 6))
			n.holds("train", held)
			// Once at the start, and once more so that kubelet asks us again.
			if got := n.registrations(gpu); got > 2 {
				t.Errorf("registered %d times: it fights", got)
			}
		})
	}
}

// TestSocketRemoved: somebody removes the plugin's socket, or kubelet's.
func TestSocketRemoved(t *testing.T) {
	t.Run("the plugin's", func(t *testing.T) {
		n := ready(t, peer.Options{})
		held := n.run("train", 2)
		sockets, err := n.Sockets("kata-gpu-*.sock")
		n.must(err)
		n.must(n.RemoveSocket(sockets[0]))
		n.must(n.Plugin().AwaitLine(n.ctx, "a second registration", func(peer.Line) bool { return n.registrations(gpu) > 1 }))
		n.settled()
		n.apart(held, n.run("after", 6))
		n.holds("train", held)
	})
	t.Run("kubelet's", func(t *testing.T) {
		n := ready(t, peer.Options{})
		n.must(n.RemoveSocket("kubelet.sock"))
		n.run("train", 2) // the connections are there
		n.must(n.Kubelet().Restart(n.ctx))
		n.settled()
		n.run("other", 6)
	})
}

// TestContestedChange: while another plugin has the resource, our list changes, so that
// kubelet believes ours again. It would still have the other one answer for our devices:
// the plugin must not say that all is well.
func TestContestedChange(t *testing.T) {
	n := ready(t, peer.Options{})
	rival, err := n.StartRival(n.ctx, gpu, "rival-0")
	n.must(err)
	n.must(n.Plugin().AwaitFinding(n.ctx, "PLG007"))
	n.must(n.Plugin().AwaitReady(n.ctx, false))
	n.must(n.Machine.Unbind(n.address(n.gpus()[0])))
	n.must(n.AwaitAllocatable(n.ctx, gpu, n.gpus()))
	n.must(n.StaticPod(peer.NewPod("train", gpu, 1)))
	_, seen, err := n.AwaitRunning(n.ctx, "train")
	n.must(err)
	if len(seen) > 0 {
		t.Fatalf("the rival granted %v: nothing is shown", seen)
	}
	status, err := n.Plugin().Health(n.ctx, "")
	n.must(err)
	if status == healthpb.HealthCheckResponse_SERVING {
		t.Error("a pod runs without the device it was promised, since kubelet has another plugin answer for it, and the plugin says it is ready")
	}
	n.must(rival.Signal(n.ctx, syscall.SIGKILL))
	n.settled()
	n.run("after", 6)
}
