package agent

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tags.cncf.io/container-device-interface/pkg/cdi"

	ourcdi "kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
)

var (
	seed  = flag.Uint64("seed", 0, "seed of the random sequences; 0 takes the time")
	steps = flag.Int("steps", 1000, "length of the random sequences")
)

// model is what the random sequence has done to the node.
type model struct {
	*node
	rand *rand.Rand
	held map[pci.Address]bool // unbound while in use
	away map[pci.Address]sim.Function
	was  []string
}

// TestRandomNode: whatever happens to a node, and in which order, what kubelet has been
// told in the end is what is there; and on the way no invariant is broken.
func TestRandomNode(t *testing.T) {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: go test -run TestRandomNode -args -seed=%d", s, s)
	p := platform(t, "hgx-h100")
	n := newNode(t, p)
	n.Start()
	n.run(t)
	n.awaitAll()
	m := &model{node: n, rand: rand.New(rand.NewPCG(s, 1)), held: map[pci.Address]bool{}, away: map[pci.Address]sim.Function{}}
	for i := range *steps {
		what := m.step()
		m.was = append(m.was, what)
		if m.rand.IntN(3) == 0 && i < *steps-1 {
			// Let changes pile up. A list may then arrive when the spec is a step ahead.
			m.Tamper(true)
			continue
		}
		m.converge(fmt.Sprintf("step %d: %s", i, what))
		m.Tamper(false)
	}
}

// step does one thing to the node.
func (m *model) step() string {
	a := m.pick()
	_, bound := m.Cdev(a)
	var what string
	var err error
	switch r := m.rand.IntN(100); {
	case r < 30 && bound:
		what, err = "unbind "+a.String(), m.Unbind(a)
	case r < 38 && bound:
		what, err = "unbind in use "+a.String(), m.UnbindBusy(a)
		m.held[a] = true
	case r < 60 && m.held[a]:
		what, err = "release "+a.String(), m.Release(a)
		delete(m.held, a)
	case r < 70 && a != (pci.Address{}) && !bound && !m.held[a]:
		what, err = "bind "+a.String(), m.Bind(a, "vfio-pci")
	case r < 76 && bound:
		f := m.function(a)
		what, err = "remove "+a.String(), m.Remove(a)
		m.away[a] = f
	case r < 82 && len(m.away) > 0:
		a = slices.SortedFunc(maps.Keys(m.away), pci.Address.Compare)[0]
		what, err = "add "+a.String(), m.Add(m.away[a])
		delete(m.away, a)
	case r < 86:
		m.Tamper(true)
		what, err = m.swap()
	case r < 89:
		m.Tamper(true)
		what, err = "delete CDI specs", m.deleteSpecs()
	case r < 92:
		m.Tamper(true)
		what, err = "edit a CDI spec", os.WriteFile(m.spec(gpu), []byte("{}"), 0o644)
	case r < 95:
		what = "restart kubelet"
		m.Stop()
		m.Start()
	case r < 97:
		what, err = "stray file", m.PlaceFile("vfio00", "junk")
	default:
		what = "nothing"
	}
	if err != nil {
		m.t.Fatalf("%s: %v", what, err)
	}
	return what
}

// pick chooses a function that is on the bus.
func (m *model) pick() pci.Address {
	var all []pci.Address
	for _, f := range m.Functions() {
		if f.Vendor == 0x10de && f.Class.Sub() != 0x0604 {
			all = append(all, f.Address())
		}
	}
	if len(all) == 0 {
		return pci.Address{}
	}
	return all[m.rand.IntN(len(all))]
}

func (m *model) function(a pci.Address) sim.Function {
	for _, f := range m.Functions() {
		if f.Address() == a {
			return f
		}
	}
	return sim.Function{}
}

// swap unbinds two functions and binds them in the other order, so that each gets the
// other's number, if nothing lower is free.
func (m *model) swap() (string, error) {
	a, b := m.pick(), m.pick()
	_, ok1 := m.Cdev(a)
	_, ok2 := m.Cdev(b)
	if a == b || !ok1 || !ok2 {
		return "nothing to swap", nil
	}
	for _, f := range []func() error{
		func() error { return m.Unbind(a) }, func() error { return m.Unbind(b) },
		func() error { return m.Bind(b, "vfio-pci") }, func() error { return m.Bind(a, "vfio-pci") },
	} {
		if err := f(); err != nil {
			return "swap", err
		}
	}
	return fmt.Sprintf("swap %s and %s", a, b), nil
}

func (m *model) spec(resource string) string {
	return filepath.Join(m.roots.CDI, ourcdi.FileName("kata.", resource))
}

func (m *model) deleteSpecs() error {
	for _, r := range []string{gpu, nvswitch} {
		if err := os.Remove(m.spec(r)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// converge waits until kubelet and the disk say what is there, and then asks for it.
func (m *model) converge(what string) {
	m.t.Helper()
	for resource, classes := range map[string][]uint16{gpu: {0x0302, 0x0300}, nvswitch: {0x0680}} {
		want := m.Bound(classes...)
		m.Await(what+": "+resource, func() bool {
			return slices.Equal(m.Witness.Healthy(resource), want) && m.resolves(resource, want)
		})
		if len(want) == 0 {
			continue
		}
		id := want[m.rand.IntN(len(want))]
		resp, err := m.Allocate(resource, id)
		if err != nil {
			m.t.Fatalf("%s: allocate %s: %v", what, id, err)
		}
		a, _ := pci.ParseAddress(id)
		number, _ := m.Cdev(a)
		node := fmt.Sprintf("/dev/vfio/devices/vfio%d", number)
		if len(resp.Devices) != 1 || resp.Devices[0].HostPath != node || resp.Devices[0].ContainerPath != node ||
			len(resp.CdiDevices) != 1 || resp.CdiDevices[0].Name != resource+"="+id ||
			len(resp.Envs)+len(resp.Mounts)+len(resp.Annotations) > 0 {
			m.t.Fatalf("%s: %s is %s, allocated as %v", what, id, node, resp)
		}
	}
}

// resolves says whether the CDI spec names just the wanted devices with their nodes.
func (m *model) resolves(resource string, want []string) bool {
	spec, err := cdi.ReadSpec(m.spec(resource), 0)
	if len(want) == 0 {
		return os.IsNotExist(err)
	}
	if err != nil || len(spec.Devices) != len(want) {
		return false
	}
	for _, id := range want {
		d := spec.GetDevice(id)
		a, _ := pci.ParseAddress(id)
		number, ok := m.Cdev(a)
		if d == nil || !ok || d.ContainerEdits.DeviceNodes[0].Path != fmt.Sprintf("/dev/vfio/devices/vfio%d", number) {
			return false
		}
	}
	return true
}
