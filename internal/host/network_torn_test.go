package host_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/sim"
)

// parts says in short what a look sees of a function.
func parts(s *host.Snapshot, f *host.Function) string {
	n := f.Network
	words := []string{f.Driver}
	node := func(c host.CharDevice) string {
		name := c.Path[strings.LastIndexByte(c.Path, '/')+1:]
		if c.Fault != "" {
			name += "!"
		}
		return name
	}
	for _, i := range n.Interfaces {
		words = append(words, i.Name)
	}
	for _, d := range n.RDMA {
		words = append(words, d.Name)
		for _, list := range [][]host.CharDevice{d.UVerbs, d.UMAD, d.ISSM} {
			for _, c := range list {
				words = append(words, node(c))
			}
		}
	}
	for _, c := range n.UIO {
		words = append(words, node(c))
	}
	if n.GroupNode != nil {
		words = append(words, node(*n.GroupNode))
	}
	if s.Torn() {
		words = append(words, "torn")
	}
	return strings.TrimRight(strings.Join(words, " "), " ")
}

// follow does steps one by one, and looks after each. want has a line for each step: its
// name, and what is seen then; a step that is not in it changes nothing.
func follow(t *testing.T, r *rig, address, want string, steps []sim.Step, err error) {
	t.Helper()
	must(t, err)
	before := r.src.Look(nil)
	var got []string
	last := parts(before, function(t, before, address))
	for _, step := range steps {
		must(t, step.Do())
		s, fresh := r.src.Look(before), r.src.Look(nil)
		same(t, step.Name, s.Functions, fresh.Functions)
		if s.Partial() || s.Torn() != fresh.Torn() {
			t.Errorf("%s: unread %v, torn %v, %v", step.Name, s.Unread, s.Torn(), fresh.Torn())
		}
		again, ok := r.src.Again(before, addr(t, address))
		if !ok && function(t, before, address).Cdev == nil {
			t.Errorf("%s: again: gone", step.Name)
		} else if ok && function(t, s, address).Cdev == nil {
			same(t, step.Name+": again", again, *function(t, s, address))
		}
		if now := parts(s, function(t, s, address)); now != last {
			got = append(got, strings.TrimRight(step.Name+": "+now, " "))
			last = now
		}
	}
	same(t, "steps", strings.Join(got, "\n"), strings.TrimSpace(want))
}

// TestNetworkSteps follows binds and unbinds of every kind of driver. While something is
// half there, the look is torn, unless an event is still to come that tells of it.
func TestNetworkSteps(t *testing.T) {
	r, _ := netRig(t, sim.Adapters())
	a := addr(t, rdmaVF)
	steps, err := r.UnbindSteps(a)
	follow(t, r, rdmaVF, `
driver:  ens1f0v5 mlx5_7 uverbs7 umad7 issm7
infiniband_mad/issm7/node:  ens1f0v5 mlx5_7 uverbs7 umad7 issm7! torn
infiniband_mad/issm7:  ens1f0v5 mlx5_7 uverbs7 umad7
infiniband_mad/umad7/node:  ens1f0v5 mlx5_7 uverbs7 umad7! torn
infiniband_mad/umad7:  ens1f0v5 mlx5_7 uverbs7
infiniband_verbs/uverbs7/node:  ens1f0v5 mlx5_7 uverbs7! torn
infiniband_verbs/uverbs7:  ens1f0v5 mlx5_7
infiniband/mlx5_7/ports:  ens1f0v5 torn
infiniband/mlx5_7:  ens1f0v5
net/ens1f0v5:`, steps, err)
	steps, err = r.BindSteps(a, "mlx5_core")
	follow(t, r, rdmaVF, `
driver: mlx5_core
net/ens1f0v5: mlx5_core ens1f0v5
infiniband/mlx5_7: mlx5_core ens1f0v5 torn
infiniband/mlx5_7/ports: mlx5_core ens1f0v5 mlx5_7
infiniband_verbs/uverbs7: mlx5_core ens1f0v5 mlx5_7 uverbs7! torn
infiniband_verbs/uverbs7/node: mlx5_core ens1f0v5 mlx5_7 uverbs7
infiniband_mad/umad7: mlx5_core ens1f0v5 mlx5_7 uverbs7 umad7! torn
infiniband_mad/umad7/node: mlx5_core ens1f0v5 mlx5_7 uverbs7 umad7
infiniband_mad/issm7: mlx5_core ens1f0v5 mlx5_7 uverbs7 umad7 issm7! torn
infiniband_mad/issm7/node: mlx5_core ens1f0v5 mlx5_7 uverbs7 umad7 issm7`, steps, err)

	steps, err = r.UnbindSteps(addr(t, uioVF))
	follow(t, r, uioVF, `
driver:  uio7
uio/uio7/node:  uio7! torn
uio/uio7:`, steps, err)
	steps, err = r.BindSteps(addr(t, uioVF), "uio_pci_generic")
	follow(t, r, uioVF, `
driver: uio_pci_generic
uio/uio7: uio_pci_generic uio7! torn
uio/uio7/node: uio_pci_generic uio7`, steps, err)

	steps, err = r.UnbindSteps(addr(t, vfioVF))
	follow(t, r, vfioVF, `
driver:  torn
class:`, steps, err)
	steps, err = r.BindSteps(addr(t, vfioVF), "vfio-pci")
	follow(t, r, vfioVF, `
driver: vfio-pci 41! torn
group node: vfio-pci 41
class: vfio-pci 41 torn
node: vfio-pci 41`, steps, err)
}

// TestNamespace moves a VF into a pod and back: of its interface, and of its RDMA device in
// exclusive mode, nothing is seen from the host then. What is left says nothing of it.
func TestNamespace(t *testing.T) {
	r, _ := netRig(t, sim.Adapters())
	before := r.src.Look(nil)
	steps, err := r.MoveToPodSteps(rdmaVF, false)
	follow(t, r, rdmaVF, "net/ens1f0v5: mlx5_core mlx5_7 uverbs7 umad7 issm7", steps, err)
	steps, err = r.MoveToHostSteps(rdmaVF)
	follow(t, r, rdmaVF, "net/ens1f0v5: mlx5_core ens1f0v5 mlx5_7 uverbs7 umad7 issm7", steps, err)
	same(t, "back", r.src.Look(nil), before)

	steps, err = r.MoveToPodSteps(rdmaVF, true)
	follow(t, r, rdmaVF, `
net/ens1f0v5: mlx5_core mlx5_7 uverbs7 umad7 issm7
infiniband_mad/issm7/node: mlx5_core mlx5_7 uverbs7 umad7 issm7! torn
infiniband_mad/issm7: mlx5_core mlx5_7 uverbs7 umad7
infiniband_mad/umad7/node: mlx5_core mlx5_7 uverbs7 umad7! torn
infiniband_mad/umad7: mlx5_core mlx5_7 uverbs7
infiniband_verbs/uverbs7/node: mlx5_core mlx5_7 uverbs7! torn
infiniband_verbs/uverbs7: mlx5_core mlx5_7
infiniband/mlx5_7: mlx5_core
infiniband_verbs/uverbs7: mlx5_core torn
infiniband_verbs/uverbs7/node: mlx5_core
infiniband_mad/umad7: mlx5_core torn
infiniband_mad/umad7/node: mlx5_core
infiniband_mad/issm7: mlx5_core torn
infiniband_mad/issm7/node: mlx5_core`, steps, err)
	if !r.src.HasNode("/dev/infiniband/uverbs7") {
		t.Error("the node is not there for the pod")
	}
	same(t, "away", function(t, r.src.Look(nil), rdmaVF).Network, &host.Network{VFIndex: 5, Hidden: []host.CharDevice{
		{Path: "/dev/infiniband/issm7"}, {Path: "/dev/infiniband/umad7"}, {Path: "/dev/infiniband/uverbs7"},
	}})
	must(t, r.MoveToHost(rdmaVF))
	same(t, "back", r.src.Look(nil), before)

	// Without its driver it is nowhere.
	must(t, r.MoveToPod(rdmaVF, true), r.Unbind(addr(t, rdmaVF)))
	same(t, "unbound", function(t, r.src.Look(nil), rdmaVF).Network, &host.Network{VFIndex: 5})
}

// TestUnregistering has an interface whose directory is still there: it answers EINVAL then.
func TestUnregistering(t *testing.T) {
	r, faults := netRig(t, sim.Adapters())
	before := r.src.Look(nil)
	for _, end := range []string{"ens1f0v5/ifindex", "ens1f0v5/type"} {
		faults.end, faults.err = end, unix.EINVAL
		s := r.src.Look(before)
		if f := function(t, s, rdmaVF); len(f.Network.Interfaces) > 0 || f.Err != nil || !s.Torn() || s.Partial() {
			t.Errorf("%s: %+v, %v, torn %v", end, f.Network, f.Err, s.Torn())
		}
	}
}

// TestDirectoryGone has a function leave between its identity and the rest.
func TestDirectoryGone(t *testing.T) {
	r, faults := netRig(t, sim.Adapters())
	before := r.src.Look(nil)
	faults.end, faults.err = "devices/pci0000:64/0000:64:01.0/"+rdmaVF, fs.ErrNotExist
	s := r.src.Look(before)
	if _, ok := s.Function(addr(t, rdmaVF)); ok || len(s.Functions) != len(before.Functions)-1 || s.Partial() {
		t.Errorf("it is there: %d functions, partial %v", len(s.Functions), s.Partial())
	}
	if f, ok := r.src.Again(before, addr(t, rdmaVF)); ok {
		t.Errorf("again: %+v", f)
	}
}

// TestNoGroupNodes has a kernel without the nodes of groups: what is absent there stays so.
func TestNoGroupNodes(t *testing.T) {
	r, _ := netRig(t, sim.Adapters())
	must(t, os.Remove(filepath.Join(r.roots.Sys, "class/vfio/41")), os.Remove(filepath.Join(r.roots.Dev, "vfio/41")))
	s := r.src.Look(nil)
	if c := function(t, s, vfioVF).Network.GroupNode; c == nil || c.Fault != "no /sys/class/vfio/41/dev" || s.Torn() {
		t.Errorf("%+v, torn %v", c, s.Torn())
	}
}

// TestRename follows an interface that gets another name.
func TestRename(t *testing.T) {
	r, _ := netRig(t, sim.Adapters())
	index := function(t, r.src.Look(nil), netVF).Network.Interfaces[0].Index
	steps, err := r.RenameInterfaceSteps("ens1f0v0", "net1")
	follow(t, r, netVF, "net/net1: mlx5_core net1", steps, err)
	if i := function(t, r.src.Look(nil), netVF).Network.Interfaces[0]; i.Index != index {
		t.Errorf("%+v, was %d", i, index)
	}
}

// TestAgainDriver has a function change its driver behind a snapshot.
func TestAgainDriver(t *testing.T) {
	r, _ := netRig(t, sim.Adapters())
	s := r.src.Look(nil)
	a, b := addr(t, netVF), addr(t, vfioVF)
	must(t, r.Unbind(a), r.Bind(a, "vfio-pci"), r.Unbind(b), r.Bind(b, "mlx5_core"))
	f, ok := r.src.Again(s, a)
	if !ok || f.Driver != "vfio-pci" || f.Network.GroupNode == nil || len(f.Network.Interfaces) > 0 || f.Network.VFIndex != 0 {
		t.Errorf("%v, %+v, %+v", ok, f, f.Network)
	}
	if f, ok := r.src.Again(s, b); ok {
		t.Errorf("its character device has gone: %+v", f)
	}
	must(t, r.Unbind(a), r.SetVFs(addr(t, nicPF), 0, ""))
	if f, ok := r.src.Again(s, a); ok {
		t.Errorf("it has gone: %+v", f)
	}
	if f, ok := r.src.Again(s, addr(t, nicPF)); !ok || len(f.VFs) != 0 {
		t.Errorf("%v, %+v", ok, f)
	}
}
