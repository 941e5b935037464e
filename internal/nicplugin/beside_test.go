package nicplugin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ourcdi "kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/nodelock"
	"kata-device-plugin/internal/sim"
)

// beside is the same node for a second copy of the plugin, with a configuration of its own.
func (n *node) beside(text string) *node {
	n.t.Helper()
	other := &node{
		Node: n.Node, Witness: n.Witness, t: n.t, roots: n.roots,
		config: filepath.Join(n.t.TempDir(), "config.json"), info: n.info, events: make(chan struct{}, 1),
	}
	other.roots.Run = n.t.TempDir()
	other.configure(text)
	return other
}

// TestOtherConfiguration: of two copies whose resources have no name in common one offers, and
// the other waits until that has gone.
func TestOtherConfiguration(t *testing.T) {
	const elsewhere = `{"resourceList": [{"resourceName": "dpdk", "selectors": {"drivers": ["vfio-pci"]}}]}`
	n := newNode(t, sim.Adapters())
	n.configure(all)
	n.Start()
	first := n.run()
	n.awaitLog(first, "msg=ready")
	other := n.beside(elsewhere)
	second := other.run()
	n.awaitLog(second, "PLG018", "intel.com/dpdk", nodelock.FileName(nodelock.NICs), "held by nic-device-plugin in ")
	n.awaitHealthy(vfio, "0000:65:00.3", "0000:65:00.4")
	if len(second.log.Lines("msg=ready")) > 0 || len(second.log.Lines("registered with kubelet")) > 0 {
		t.Error("the second copy offers beside the first")
	}
	must(t, first.stop())
	n.awaitLog(second, "msg=ready")
	n.awaitHealthy("intel.com/dpdk", "0000:65:00.3", "0000:65:00.4")
	n.awaitHealthy(vfio)
}

// TestBesideDriver: while the DRA driver has the network functions of a node nothing is offered,
// whatever the resources are called, and the other way round.
func TestBesideDriver(t *testing.T) {
	n := newNode(t, sim.Adapters())
	n.configure(all)
	n.Start()
	driver, err := nodelock.TakeShared(n.roots.CDI, nodelock.NICs, "kata-dra-driver in a pod")
	must(t, err)
	p := n.run()
	for _, resource := range []string{vfio, net, rdma} {
		n.awaitLog(p, "level=WARN", "PLG018", resource, "held by kata-dra-driver in a pod")
	}
	if len(p.log.Lines("msg=ready")) > 0 || len(p.log.Lines("registered with kubelet")) > 0 {
		t.Error("it offers beside the driver")
	}
	must(t, driver.Release())
	n.awaitLog(p, "msg=ready")
	n.awaitHealthy(vfio, "0000:65:00.3", "0000:65:00.4")
	if _, err := nodelock.TakeShared(n.roots.CDI, nodelock.NICs, "kata-dra-driver in a pod"); !errors.Is(err, nodelock.ErrHeld) {
		t.Errorf("the driver gets the lock: %v", err)
	}
}

// TestClaimed: a device that a DRA claim holds is not handed out, nor are shares of it.
func TestClaimed(t *testing.T) {
	n := newNode(t, sim.Adapters())
	n.configure(`{"resourceList": [{"resourceName": "vfio", "selectors": {"drivers": ["vfio-pci"], "vendors": ["15b3"]}}],
		"configList": [{"resourceName": "hca", "rdmaHcaMax": 2, "selectors": {"drivers": ["mlx5_core"]}}]}`)
	n.Start()
	p := n.run()
	n.awaitLog(p, "msg=ready")
	n.awaitHealthy(vfio, "0000:65:00.3", "0000:65:00.4")
	n.awaitHealthy(hca, "0000:65:00.7::0", "0000:65:00.7::1")
	file := ourcdi.NewFile(n.roots.CDI, "kata.dra.u-1.", draname.ClaimKind)
	nodes := []ourcdi.Node{{Path: "/dev/vfio/devices/vfio0", Permissions: "rw"}}
	_, err := file.Sync([]ourcdi.Device{{Name: "u-1-vf-0000-65-00-3", Nodes: nodes}, {Name: "u-1-nic-0000-65-00-7", Nodes: nodes}})
	must(t, err)
	n.awaitHealthy(vfio, "0000:65:00.4")
	n.awaitHealthy(hca)
	for device, name := range map[string]string{
		"0000:65:00.3": "u-1-vf-0000-65-00-3", "0000:65:00.7::0": "u-1-nic-0000-65-00-7", "0000:65:00.7::1": "u-1-nic-0000-65-00-7",
	} {
		n.awaitLog(p, "msg=unhealthy", "HST046", "device="+device, file.Path(), name)
	}
	if _, err := n.Allocate(hca, "0000:65:00.7::1"); err == nil || !strings.Contains(err.Error(), "HST046") {
		t.Errorf("got %v", err)
	}
	must(t, os.Remove(file.Path()))
	n.awaitHealthy(vfio, "0000:65:00.3", "0000:65:00.4")
	n.awaitHealthy(hca, "0000:65:00.7::0", "0000:65:00.7::1")
}
