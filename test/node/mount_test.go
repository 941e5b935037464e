//go:build node

package node

import (
	"strings"
	"syscall"
	"testing"

	"kata-device-plugin/test/peer"
)

// TestMissingMount: the manifest has lost one of its mounts. The plugin says what it
// cannot do, offers nothing that would not work, and is alive; with the mount all is well.
func TestMissingMount(t *testing.T) {
	found := func(id string) func(peer.Line) bool {
		return func(l peer.Line) bool { return l.Msg == "found" && l.Finding == id }
	}
	for mount, says := range map[string]func(peer.Line) bool{
		"/dev/vfio":    found("HST033"),
		"/var/run/cdi": found("CDI014"),
		"/var/lib/kubelet/device-plugins": func(l peer.Line) bool {
			return l.Msg == "not registered with kubelet" && l.Resource == gpu && strings.Contains(l.Reason, "kubelet.sock")
		},
	} {
		t.Run(strings.ReplaceAll(mount, "/", " "), func(t *testing.T) {
			n := newNode(t, peer.Options{})
			n.Plugin().Without = mount
			n.must(n.Plugin().Start(n.ctx))
			n.must(n.Plugin().AwaitLine(n.ctx, "what is the matter", says))
			n.must(n.Plugin().AwaitReady(n.ctx, false))
			n.must(n.Plugin().Alive(n.ctx))
			n.must(n.AwaitAllocatable(n.ctx, gpu, nil))
			// No other part is blamed.
			blamed, err := n.Plugin().Count(func(l peer.Line) bool { return l.Msg == "found" && l.Level == "ERROR" && !says(l) })
			n.must(err)
			if blamed > 0 {
				lines, err := n.Plugin().Lines()
				t.Errorf("%d other findings: %+v, %v", blamed, lines, err)
			}
			n.withMount()
		})
	}
	t.Run("health socket", func(t *testing.T) {
		n := newNode(t, peer.Options{})
		n.Plugin().Without = "/run/kata-device-plugin"
		n.must(n.Plugin().Start(n.ctx))
		n.must(n.AwaitAllocatable(n.ctx, gpu, n.gpus())) // without probes, and for pods as ever
		n.run("train", 8)
		n.must(n.RemovePod(n.ctx, "train"))
		n.withMount()
	})
}

// withMount starts the plugin again as its manifest has it.
func (n *node) withMount() {
	n.t.Helper()
	n.Plugin().Without = ""
	n.must(n.Plugin().Restart(n.ctx, syscall.SIGTERM))
	n.settled()
	n.run("after", 8)
}
