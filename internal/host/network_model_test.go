package host_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
)

// netModel is a node with adapters and what was done to it.
type netModel struct {
	*rig
	t        *testing.T
	rand     *rand.Rand
	broken   map[[2]string]bool
	children []string
	count    int
}

// TestNetworkModel does to a node with adapters whatever comes, and holds a chain of looks
// against looks that remember nothing, fresh looks at one function against both, and the
// interfaces that are seen against those that the node has.
func TestNetworkModel(t *testing.T) {
	s := seed(t)
	r, _ := netRig(t, sim.Adapters())
	m := &netModel{rig: r, t: t, rand: rand.New(rand.NewPCG(s, 1)), broken: map[[2]string]bool{}}
	done := map[string]int{}
	var log []string
	seen := r.src.Look(nil)
	for step := range 400 {
		name := pick(m.rand, m.actions())
		err := m.do(name)
		if err == nil {
			done[name]++
		}
		log = append(log, fmt.Sprintf("%d: %s: %v", step, name, err))
		if err != nil && !expectedErr(err) && !errors.Is(err, unix.EOPNOTSUPP) {
			t.Fatalf("SEED=%d, step %d: %s: %v", s, step, name, err)
		}
		seen = m.check(seen)
		if t.Failed() {
			t.Fatalf("SEED=%d, after\n%s", s, log[max(0, len(log)-12):])
		}
	}
	for _, name := range m.actions() {
		if done[name] == 0 {
			t.Errorf("SEED=%d: %s was never done", s, name)
		}
	}
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func (m *netModel) actions() []string {
	return []string{
		"bind", "rebind", "unbind", "set VFs", "switchdev", "to pod", "to host", "rename", "SF", "vDPA", "remove child",
		"shared", "route", "master", "break", "restore",
	}
}

func (m *netModel) address() pci.Address {
	var list []pci.Address
	for _, f := range m.Functions() {
		if adapters(host.Identity{Class: f.Class}) {
			list = append(list, f.Address())
		}
	}
	return pick(m.rand, list)
}

// kernel is a function on mlx5_core, or any.
func (m *netModel) kernel() pci.Address {
	var list []pci.Address
	for _, f := range m.Functions() {
		if f.Driver == "mlx5_core" {
			list = append(list, f.Address())
		}
	}
	return pick(m.rand, append(list, m.address()))
}

func (m *netModel) interfaces() map[string]int {
	links, err := m.Links()
	must(m.t, err)
	names := map[string]int{}
	for _, l := range links.Links {
		if l.Name != "lo" && l.Kind == "" {
			names[l.Name] = l.Index
		}
	}
	return names
}

// do does one thing.
func (m *netModel) do(name string) error {
	a, pf := m.address(), addr(m.t, pick(m.rand, []string{nicPF, idlePF}))
	m.count++
	if slices.Contains([]string{"set VFs", "switchdev"}, name) && m.rand.IntN(2) == 0 {
		for _, err := range []error{m.Bind(pf, "mlx5_core"), m.MoveToHost(pf.String())} {
			if err != nil && !expectedErr(err) {
				return err
			}
		}
	}
	if len(m.broken) > 0 && slices.Contains([]string{"rename", "to pod", "to host"}, name) {
		return unix.EBUSY // what is unreadable would be so by another name
	}
	drivers := []string{"mlx5_core", "mlx5_core", "vfio-pci", "igb_uio", "uio_pci_generic", "pci-stub"}
	switch name {
	case "bind":
		return m.Bind(a, pick(m.rand, drivers))
	case "rebind":
		return errors.Join(m.Unbind(a), m.Bind(a, pick(m.rand, drivers)))
	case "unbind":
		return m.Unbind(a)
	case "set VFs":
		return m.SetVFs(pf, m.rand.IntN(7), pick(m.rand, append(drivers, "")))
	case "switchdev":
		return m.SetSwitchdev(pf, m.rand.IntN(2) == 0)
	case "to pod":
		return m.MoveToPod(m.kernel().String(), m.rand.IntN(2) == 0)
	case "to host":
		return m.MoveToHost(m.kernel().String())
	case "shared":
		path := pick(m.rand, host.SharedNodes()[1:])
		if err := m.RemoveShared(path); err != nil {
			return m.AddShared(path)
		}
		return nil
	case "route", "master", "rename":
		return m.network(name)
	case "break", "restore":
		return m.damage(name, a)
	}
	return m.child(name, m.kernel())
}

// network changes what only netlink shows, and names.
func (m *netModel) network(name string) error {
	interfaces := m.interfaces()
	names := make([]string, 0, len(interfaces))
	for name := range interfaces {
		names = append(names, name)
	}
	if slices.Sort(names); len(names) == 0 {
		return unix.ENODEV
	}
	switch one := pick(m.rand, names); name {
	case "route":
		m.RemoveDefaultRoutes()
		m.AddDefaultRoute(one, "inet")
	case "master":
		m.SetMaster(one, pick(m.rand, append(names, "")))
	default:
		return m.RenameInterface(one, fmt.Sprintf("net%d", m.count))
	}
	return nil
}

// child adds and removes subfunctions and vDPA devices.
func (m *netModel) child(name string, a pci.Address) error {
	switch name {
	case "SF":
		child, err := m.AddSF(a, sim.SF{ID: m.rand.IntN(5), Number: m.rand.Uint32(), NIC: &sim.NIC{
			Interfaces: []sim.Interface{{Name: fmt.Sprintf("sf%d", m.count)}}, RDMA: []sim.RDMA{{Name: "mlx5_%d"}},
		}})
		m.children = append(m.children, child)
		return err
	case "vDPA":
		child := fmt.Sprintf("vdpa%d", m.rand.IntN(5))
		m.children = append(m.children, child)
		return m.AddVDPA(a, child, pick(m.rand, []string{"vhost_vdpa", "virtio_vdpa", ""}))
	}
	removed := error(unix.ENODEV)
	for _, child := range m.children {
		if m.RemoveChild(child) == nil {
			removed = nil
		}
	}
	m.children = nil
	return removed
}

// damage makes something unreadable, or all of it readable again.
func (m *netModel) damage(name string, a pci.Address) error {
	if name == "restore" {
		for b := range m.broken {
			if err := m.RestoreAttribute(addr(m.t, b[0]), b[1]); err != nil && !expectedErr(err) {
				return err
			}
		}
		clear(m.broken)
		return nil
	}
	if m.rand.IntN(2) == 0 {
		return unix.EINVAL // be whole most of the time
	}
	broken := pick(m.rand, []string{"driver", "sriov_totalvfs", "acpi_index", "virtfn0", "uio/uio7/dev", "class"})
	if entries, err := os.ReadDir(filepath.Join(m.roots.Sys, "bus/pci/devices", a.String(), "net")); err == nil && len(entries) > 0 {
		broken = "net/" + entries[0].Name() + "/" + pick(m.rand, []string{"ifindex", "type"})
	}
	err := m.BreakAttribute(a, broken)
	if err == nil {
		m.broken[[2]string{a.String(), broken}] = true
	}
	return err
}

// alone leaves out what a function has from its PF, where that may be unreadable.
func alone(f host.Function, whole bool) host.Function {
	if !whole && f.Network != nil {
		n := *f.Network
		n.VFIndex, f.Network = 0, &n
	}
	return f
}

// check looks, compares, and returns what the next look is based on.
func (m *netModel) check(seen *host.Snapshot) *host.Snapshot {
	m.t.Helper()
	kept, fresh := m.src.Look(seen), m.src.Look(nil)
	whole := len(m.broken) == 0
	if whole {
		same(m.t, "look", kept, fresh)
		if kept.Torn() || fresh.Torn() || fresh.Partial() {
			m.t.Errorf("torn %v, %v; partial %v", kept.Torn(), fresh.Torn(), fresh.Partial())
		}
	}
	found := map[string]int{}
	for i := range fresh.Functions {
		f := &fresh.Functions[i]
		now, ok := kept.Function(f.Address)
		if !ok {
			m.t.Errorf("%s is lost", f.Address)
			continue
		}
		if f.Err == nil {
			same(m.t, "function", alone(*now, whole), alone(*f, whole))
		}
		if again, ok := m.src.Again(kept, f.Address); !ok {
			m.t.Errorf("again: %s is lost", f.Address)
		} else if f.Err == nil {
			same(m.t, "again", again, *now)
		}
		if f.Network == nil {
			continue // of which only that it is unreadable is known
		}
		for _, i := range f.Network.Interfaces {
			found[i.Name] = i.Index
		}
		for _, sf := range f.Network.Subfunctions {
			for _, i := range sf.Interfaces {
				found[i.Name] = i.Index
			}
		}
	}
	if whole {
		same(m.t, "interfaces", found, m.interfaces())
	}
	return kept
}
