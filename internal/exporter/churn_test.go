package exporter

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kata-device-plugin/internal/nodestate"
	"kata-device-plugin/internal/sim"
)

// TestChurn changes a node at random: drivers, hotplug, pods, what kubelet offers. After each step
// the numbers are those of the simulated machine, counted in another way, and every resource's
// units are discovered = excluded + healthy + unhealthy.
func TestChurn(t *testing.T) {
	for _, name := range []string{"hgx-h100", "workstation", "rtx-pro-6000"} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			m := &model{node: newNode(t, platform(t, name), nil), rand: rand.New(rand.NewPCG(seed, 1)), holders: map[string]string{}}
			for _, f := range m.Functions() {
				if f.Vendor == 0x10de && slices.Contains([]uint16{0x0300, 0x0302}, uint16(f.Class>>8)) {
					m.functions = append(m.functions, f)
				}
			}
			m.pass(0)
			for range 120 {
				step := m.step()
				m.pass(time.Second)
				if !m.check(step) {
					t.Fatalf("after %s, seed %d", step, seed)
				}
			}
		})
	}
}

// model is what is to be true of the node.
type model struct {
	*node
	rand      *rand.Rand
	functions []sim.Function    // GPUs, there or not
	holders   map[string]string // pod by device ID
	pods      int
}

// bound says which of the GPUs are there, and which of those are on VFIO.
func (m *model) bound() (there, vfio []string) {
	for _, f := range m.Functions() {
		if f.Vendor == 0x10de && slices.Contains([]uint16{0x0300, 0x0302}, uint16(f.Class>>8)) {
			there = append(there, f.Address().String())
			if _, ok := m.Cdev(f.Address()); ok {
				vfio = append(vfio, f.Address().String())
			}
		}
	}
	return there, vfio
}

// step changes one thing, and says what.
func (m *model) step() string {
	f := m.functions[m.rand.IntN(len(m.functions))]
	a := f.Address()
	there, vfio := m.bound()
	is := func(all []string) bool { return slices.Contains(all, a.String()) }
	switch what := m.rand.IntN(5); {
	case what == 0 && is(vfio):
		must(m.t, m.Unbind(a))
		return "unbind " + a.String()
	case what == 0 && is(there):
		must(m.t, m.Bind(a, "vfio-pci"))
		return "bind " + a.String()
	case what == 1 && is(there) && m.holders[a.String()] == "":
		must(m.t, m.Remove(a))
		return "remove " + a.String()
	case what == 1 && !is(there):
		f.Driver = ""
		must(m.t, m.Add(f))
		return "add " + a.String()
	case what == 2 && m.holders[a.String()] == "":
		m.pods++
		m.holders[a.String()] = fmt.Sprintf("p%d", m.pods%3) // pods have several, and names come back
		return "give " + a.String()
	case what == 3:
		delete(m.holders, a.String())
		return "take " + a.String()
	}
	m.time = m.time.Add(time.Duration(m.rand.IntN(30)) * time.Second)
	return "wait"
}

// pass tells kubelet's side first.
func (m *model) pass(d time.Duration) {
	_, vfio := m.bound()
	k := m.kubelet
	k.set(func() {
		k.offers = map[string][]string{gpu: vfio}
		k.pods = nil
		by := map[string][]string{}
		for id, name := range m.holders {
			by[name] = append(by[name], id)
		}
		for name, ids := range by {
			k.pods = append(k.pods, pod("ns", name, container("main", k.devices(gpu, ids...))))
		}
	})
	m.node.pass(d)
}

func (m *model) check(step string) bool {
	there, vfio := m.bound()
	state := m.e.collector.view.Load().state
	sum := nodestate.Resource{}
	for _, r := range state.Resources {
		if r.Discovered != r.Excluded+r.Healthy+r.Unhealthy {
			m.t.Errorf("%s: %s: discovered %d, excluded %d, healthy %d, unhealthy %d", step, r.Name, r.Discovered, r.Excluded, r.Healthy, r.Unhealthy)
		}
		if r.Name == "nvidia.com/nvswitch" {
			continue
		}
		sum.Discovered += r.Discovered
		sum.Healthy += r.Healthy
		sum.Unhealthy += r.Unhealthy
	}
	if sum.Discovered != len(there) || sum.Healthy+sum.Unhealthy != len(vfio) {
		m.t.Errorf("%s: discovered %d of %d, declared %d of %d", step, sum.Discovered, len(there), sum.Healthy+sum.Unhealthy, len(vfio))
	}
	got := map[string]string{}
	for _, a := range state.Allocations {
		got[a.Address.String()] = a.Pod
	}
	if fmt.Sprint(got) != fmt.Sprint(m.holders) {
		m.t.Errorf("%s: allocated %v, want %v", step, got, m.holders)
	}
	// What is told adds up as well.
	lines := m.series("devices_excluded")
	excluded := len(there) - len(vfio)
	told := 0
	for _, line := range lines {
		var n int
		if _, err := fmt.Sscanf(line[strings.LastIndex(line, " ")+1:], "%d", &n); err != nil {
			m.t.Errorf("%s: %v", line, err)
		}
		told += n
	}
	if told != excluded {
		m.t.Errorf("%s: excluded %d by finding, want %d: %v", step, told, excluded, lines)
	}
	m.text() // and is no scrape's error
	return !m.t.Failed()
}

// TestChurnNICs does the same with virtual functions, which come and go by the dozen, and with shares.
func TestChurnNICs(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.json")
	must(t, os.WriteFile(config, []byte(pools), 0o600))
	n := newNode(t, platform(t, "sriov-cpu"), func(o *Options) { o.NICs = []string{config} })
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	drivers := []string{"", "vfio-pci", "iavf", "mlx5_core"}
	n.pass(0)
	for range 60 {
		all := n.network()
		f := all[random.IntN(len(all))]
		a := f.Address()
		step := "nothing"
		switch pf := f.TotalVFs > 0; {
		case pf && random.IntN(3) == 0:
			count := random.IntN(min(f.TotalVFs, 8) + 1)
			step = fmt.Sprintf("%d VFs of %s", count, a)
			must(t, n.SetVFs(a, 0, ""), n.SetVFs(a, count, drivers[random.IntN(2)]))
		case !pf && f.Driver != "":
			step = "unbind " + a.String()
			must(t, n.Unbind(a))
		case !pf:
			step = "bind " + a.String()
			must(t, n.Bind(a, "vfio-pci"))
		}
		n.pass(time.Second)
		state := n.e.collector.view.Load().state
		candidates, shared := 0, map[string]bool{}
		for _, f := range state.Functions {
			if f.State != nodestate.Foreign {
				candidates++
			}
			if f.State == nodestate.Excluded && f.Reason.ID == "" {
				t.Errorf("%s: nobody says why %s is excluded", step, f.Address)
			}
		}
		for _, u := range state.Units {
			shared[u.Address.String()] = true
		}
		excluded := 0
		for _, r := range state.Resources {
			excluded += r.Excluded
			if r.Discovered != r.Excluded+r.Healthy+r.Unhealthy {
				t.Errorf("%s: %+v", step, r)
			}
		}
		if want := len(n.network()); candidates != want || excluded+len(shared) != want {
			t.Errorf("%s: %d candidates, %d excluded and %d declared of %d functions", step, candidates, excluded, len(shared), want)
		}
		n.text()
		n.agree(step)
		if t.Failed() {
			t.Fatalf("after %s, seed %d", step, seed)
		}
	}
}

// network are the network controllers of the machine.
func (n *node) network() []sim.Function {
	const class = 0x02
	return slices.DeleteFunc(n.Functions(), func(f sim.Function) bool { return f.Class>>16 != class })
}
