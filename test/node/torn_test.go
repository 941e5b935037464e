//go:build node

package node

import (
	"slices"
	"testing"

	"kata-device-plugin/test/peer"
)

// TestTornSysfs: what cannot be read is not gone. A device of which an attribute cannot be
// read stays announced, whether a pod holds it or not; it is not handed out before it can
// be read again.
func TestTornSysfs(t *testing.T) {
	n := ready(t, peer.Options{})
	held := n.run("train", 1)
	free := slices.DeleteFunc(n.gpus(), func(id string) bool { return id == held[0] })
	torn, other := free[0], free[1]
	for _, id := range []string{held[0], torn} {
		n.must(n.Machine.BreakAttribute(n.address(id), "class"))
	}
	n.must(n.Machine.Unbind(n.address(other))) // sysfs sends no event; this one has the plugin look
	n.must(n.Plugin().AwaitFinding(n.ctx, "HST031"))
	n.must(n.AwaitAllocatable(n.ctx, gpu, n.gpus()))
	if !slices.Contains(n.gpus(), torn) {
		t.Fatal("the simulated machine has lost the device: nothing is shown")
	}
	n.must(n.StaticPod(peer.NewPod("all", gpu, 6)))
	n.rejected("all", "UnexpectedAdmissionError")
	n.holds("train", held)

	for _, id := range []string{held[0], torn} {
		n.must(n.Machine.RestoreAttribute(n.address(id), "class"))
	}
	n.must(n.Machine.Bind(n.address(other), "vfio-pci"))
	n.settled()
	n.apart(held, n.run("again", 7))
}
