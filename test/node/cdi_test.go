//go:build node

package node

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"kata-device-plugin/test/peer"
)

// resolves waits until every device resolves to its present node.
func (n *node) resolves() {
	n.t.Helper()
	n.must(peer.Await(n.ctx, "all devices to resolve", func(context.Context) error {
		for _, id := range n.gpus() {
			path, err := n.Resolve(gpu + "=" + id)
			if err != nil {
				return err
			}
			if want, _ := n.nodeOf(id); path != want {
				return errors.New(id + " resolves to " + path + ", is " + want)
			}
		}
		return nil
	}))
}

// TestCDIWiped: the CDI directory is emptied while the plugin runs, and again while it is
// away. A pod in creation waits and then runs.
func TestCDIWiped(t *testing.T) {
	t.Run("plugin runs", func(t *testing.T) {
		n := ready(t, peer.Options{})
		held := n.run("train", 1)
		for range 5 {
			n.must(n.WipeCDI())
			n.resolves()
		}
		n.settled()
		n.apart(held, n.run("other", 7))
		n.holds("train", held)
	})
	t.Run("plugin is away", func(t *testing.T) {
		n := ready(t, peer.Options{})
		n.must(n.HoldPods())
		n.must(n.StaticPod(peer.NewPod("train", gpu, 2)))
		n.granted("train", 2)
		_, err := n.Plugin().Kill(n.ctx)
		n.must(err)
		n.must(n.WipeCDI())
		n.must(n.LetPods())
		_, err = n.AwaitPod(n.ctx, "train", "to wait for its CDI spec", waitsFor("CreateContainerError"))
		n.must(err)
		n.must(n.Plugin().Start(n.ctx))
		n.running("train", 2)
	})
	t.Run("directory is another one", func(t *testing.T) {
		n := ready(t, peer.Options{})
		n.must(n.ReplaceCDI())
		n.must(n.Plugin().AwaitFinding(n.ctx, "CDI014"))
		n.must(n.Plugin().AwaitReady(n.ctx, false))
		n.must(n.Plugin().Alive(n.ctx))
		n.must(n.AwaitAllocatable(n.ctx, gpu, nil))
		_, err := n.Plugin().Terminate(n.ctx)
		n.must(err)
		n.must(n.Plugin().Start(n.ctx))
		n.settled()
		n.run("train", 2)
	})
}

// TestCDIReadOnly: the spec cannot be written. Nothing is offered that does not resolve,
// and all is well as soon as it can be written again.
func TestCDIReadOnly(t *testing.T) {
	t.Run("from the start", func(t *testing.T) {
		n := newNode(t, peer.Options{})
		n.Plugin().ReadOnlyCDI = true
		n.must(n.Plugin().Start(n.ctx))
		n.must(n.Plugin().AwaitFinding(n.ctx, "CDI014"))
		n.must(n.Plugin().AwaitReady(n.ctx, false))
		n.must(n.Plugin().Alive(n.ctx))
		n.must(n.AwaitAllocatable(n.ctx, gpu, nil))
		n.Plugin().ReadOnlyCDI = false
		n.must(n.Plugin().Restart(n.ctx, syscall.SIGTERM))
		n.settled()
		n.run("train", 8)
	})
	t.Run("later", laterReadOnly)
}

func laterReadOnly(t *testing.T) {
	n := ready(t, peer.Options{})
	held := n.run("train", 1)
	n.must(n.Plugin().SetCDIReadOnly(n.ctx, true))
	lost := n.lost(held)
	n.must(n.Plugin().AwaitFinding(n.ctx, "CDI014"))
	n.must(n.Plugin().AwaitReady(n.ctx, false))
	n.must(n.Plugin().Alive(n.ctx))
	n.must(n.AwaitAllocatable(n.ctx, gpu, nil)) // kubelet had seven until then
	n.must(n.Plugin().SetCDIReadOnly(n.ctx, false))
	n.must(n.Plugin().AwaitReady(n.ctx, true))
	n.back(lost)
	n.apart(held, n.run("other", 7))
	n.holds("train", held)
}

// TestCDIFull: the same for a file system without room.
func TestCDIFull(t *testing.T) {
	n := ready(t, peer.Options{CDISize: "64k"})
	held := n.run("train", 1)
	n.must(n.FillCDI())
	lost := n.lost(held)
	n.must(n.Plugin().AwaitFinding(n.ctx, "CDI014"))
	n.must(n.Plugin().AwaitReady(n.ctx, false))
	n.must(n.Plugin().Alive(n.ctx))
	n.must(n.AwaitAllocatable(n.ctx, gpu, nil))
	n.must(n.EmptyCDI())
	n.must(n.Plugin().AwaitReady(n.ctx, true))
	n.back(lost)
	n.apart(held, n.run("other", 7))
	n.holds("train", held)
}

// lost unbinds a GPU that is not held, so that the spec has to change.
func (n *node) lost(held []string) string {
	n.t.Helper()
	for _, id := range n.gpus() {
		if id != held[0] {
			n.must(n.Machine.Unbind(n.address(id)))
			return id
		}
	}
	n.t.Fatal("there is no other GPU")
	return ""
}

// back binds it again.
func (n *node) back(id string) {
	n.t.Helper()
	n.must(n.Machine.Bind(n.address(id), "vfio-pci"))
	n.settled()
}
