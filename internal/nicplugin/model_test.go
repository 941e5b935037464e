package nicplugin

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kata-device-plugin/internal/sim"
)

var (
	seed  = flag.Uint64("seed", 0, "seed of the random sequence; 0 takes the time")
	steps = flag.Int("steps", 300, "length of the random sequence")
)

// model is what a random sequence has done to the node, its configuration and its pods.
type model struct {
	*node
	rand    *rand.Rand
	plugin  *process
	drivers map[string]string // of each VF, "" for none
	pods    map[string]string // device -> the resource that a pod has it as
	hidden  map[string]bool   // devices whose interface is in a pod
	vfio    string            // the name of the pool of VFs on VFIO, "" for no such pool
	net     bool              // whether there is the pool of VF 0
	bad     bool              // the file is not usable; what it said before stands
	version int               // of the configuration, in the name of a pool of nothing
	routed  bool              // VF 0 carries a default route
	was     []string
}

const first, last = "0000:65:00.2", "0000:65:00.7" // VF 0, and VF 5, which has RDMA

// TestRandomNode: whatever happens to a node, its configuration, its pods, kubelet and the
// plugin, and in which order, what kubelet has been told in the end is what the model says;
// no invariant is broken on the way, and nothing is handed out twice.
func TestRandomNode(t *testing.T) {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: go test ./internal/nicplugin -run TestRandomNode -args -seed=%d", s, s)
	n := newNode(t, sim.Adapters())
	m := &model{
		node: n, rand: rand.New(rand.NewPCG(s, 1)), pods: map[string]string{}, hidden: map[string]bool{}, vfio: "vfio", net: true,
		drivers: map[string]string{first: "mlx5_core", "0000:65:00.3": "vfio-pci", "0000:65:00.4": "vfio-pci", "0000:65:00.5": "", last: "mlx5_core"},
	}
	m.write()
	m.record()
	m.Start()
	m.plugin = m.run()
	m.converge("the start")
	defer func() {
		if t.Failed() {
			t.Log(strings.Join(m.was, "\n"))
		}
	}()
	for i := range *steps {
		what := m.step()
		m.was = append(m.was, what)
		m.happened()
		if m.rand.IntN(3) == 0 && i < *steps-1 {
			// Let changes pile up. A list may then arrive when the spec is a step ahead.
			m.Tamper(true)
			continue
		}
		m.converge(fmt.Sprintf("step %d: %s", i, what))
		m.Tamper(false)
	}
}

// write writes the configuration.
func (m *model) write() {
	var pools []string
	if m.vfio != "" {
		pools = append(pools, fmt.Sprintf(`{"resourceName": %q, "selectors": {"drivers": ["vfio-pci"], "vendors": ["15b3"]}}`, m.vfio))
	}
	pools = append(pools, `{"resourceName": "rdma", "resourcePrefix": "nvidia.com", "selectors": {"isRdma": true, "drivers": ["mlx5_core"], "pfNames": ["ens1f0np0#5"]}}`)
	if m.net {
		pools = append(pools, `{"resourceName": "net", "selectors": {"drivers": ["mlx5_core"], "pfNames": ["ens1f0np0#0"]}}`)
	}
	m.bad = false
	m.version++
	pools = append(pools, fmt.Sprintf(`{"resourceName": "v%d", "selectors": {"pciAddresses": ["ffff:00:00.0"]}}`, m.version))
	m.configure(`{"resourceList": [` + strings.Join(pools, ",") + `]}`)
}

// step does one thing.
func (m *model) step() string {
	id := m.pick()
	switch r := m.rand.IntN(100); {
	case r < 15:
		return m.bind(id, "")
	case r < 27:
		return m.bind(id, "vfio-pci")
	case r < 38:
		return m.bind(id, "mlx5_core")
	case r < 52:
		return m.admit()
	case r < 64:
		return m.end()
	case r < 70:
		return m.route()
	case r < 80:
		return m.edit()
	case r < 84:
		m.Stop()
		m.Start()
		return "restart kubelet"
	case r < 90:
		must(m.t, m.plugin.stop())
		m.Await("its last list", func() bool {
			for _, p := range m.Plugins {
				if p.Streams > 0 {
					return false
				}
			}
			return true
		})
		m.Forget()
		m.plugin = m.run()
		if m.bad { // what the file said before is not known to the next process
			m.vfio, m.net, m.bad = "vfio", true, false
			m.write()
		}
		return "restart the plugin"
	case r < 94:
		return m.deleteSpecs()
	}
	return "nothing"
}

func (m *model) pick() string {
	ids := slices.Sorted(maps.Keys(m.drivers))
	return ids[m.rand.IntN(len(ids))]
}

// bind gives a VF another driver. What is in a pod is left alone.
func (m *model) bind(id, driver string) string {
	if m.hidden[id] || m.drivers[id] == driver {
		return "nothing to bind"
	}
	if m.drivers[id] != "" {
		must(m.t, m.Unbind(address(m.t, id)))
	}
	if driver != "" {
		must(m.t, m.Bind(address(m.t, id), driver))
	}
	m.drivers[id] = driver
	return "bind " + id + " to " + driver
}

// admit starts a pod with a device that is healthy, if there is one that is free.
func (m *model) admit() string {
	if m.bad {
		return "no pod for now"
	}
	m.converge("before a pod")
	for _, resource := range m.names() {
		for _, id := range m.want(resource) {
			if _, taken := m.pods[id]; taken {
				continue
			}
			if _, err := m.Allocate(resource, id); err != nil {
				m.t.Fatalf("allocate %s of %s: %v", id, resource, err)
			}
			m.pods[id] = resource
			m.record()
			m.write() // with it the plugin reads the record, which a pod outlives
			m.awaitRead()
			if m.drivers[id] == "mlx5_core" && m.rand.IntN(3) > 0 {
				must(m.t, m.MoveToPod(id, m.rand.IntN(2) == 0))
				m.hidden[id] = true
			}
			return "a pod with " + resource + "=" + id
		}
	}
	return "no device for a pod"
}

// end ends a pod, which kubelet forgets at once here.
func (m *model) end() string {
	if len(m.pods) == 0 {
		return "no pod to end"
	}
	id := slices.Sorted(maps.Keys(m.pods))[0]
	if m.hidden[id] {
		must(m.t, m.MoveToHost(id))
		delete(m.hidden, id)
	}
	delete(m.pods, id)
	m.record()
	return "the end of the pod with " + id
}

// record writes kubelet's record of what containers have.
func (m *model) record() {
	held := map[string][]string{}
	for id, resource := range m.pods {
		held[resource] = append(held[resource], id)
	}
	m.hold(held)
}

// route puts the host's traffic onto VF 0, or takes it away.
func (m *model) route() string {
	if m.routed = !m.routed; m.routed {
		m.AddDefaultRoute("ens1f0v0", "inet")
		return "a default route by VF 0"
	}
	m.RemoveDefaultRoutes()
	return "no default route"
}

// edit changes the configuration file.
func (m *model) edit() string {
	switch m.rand.IntN(4) {
	case 0:
		m.vfio = []string{"vfio", "dpdk", ""}[m.rand.IntN(3)]
	case 1:
		m.net = !m.net
	case 2:
		if !m.bad { // what stands is what was read
			m.awaitRead()
		}
		m.configure(`{"resourceList": [{"resourceName": "x"`)
		m.bad = true
		return "a torn configuration"
	}
	m.write()
	return fmt.Sprintf("pools %q, net %v", m.vfio, m.net)
}

// awaitRead waits until the plugin has acted on the last configuration: that its pool of
// nothing is one is told at the end of a look.
func (m *model) awaitRead() {
	m.t.Helper()
	m.awaitLog(m.plugin, "CFG016", fmt.Sprintf("resource=intel.com/v%d ", m.version))
}

func (m *model) deleteSpecs() string {
	specs, err := filepath.Glob(filepath.Join(m.roots.CDI, "*.json"))
	must(m.t, err)
	m.Tamper(true)
	for _, s := range specs {
		must(m.t, os.Remove(s))
	}
	m.converge("deleted CDI specs")
	return "delete CDI specs"
}

// names are all resources that there may be.
func (m *model) names() []string { return []string{vfio, "intel.com/dpdk", rdma, net} }

// want are the devices of a resource that have to be healthy.
func (m *model) want(resource string) []string {
	ids := []string{}
	for _, id := range slices.Sorted(maps.Keys(m.drivers)) {
		if m.home(id) == resource && (m.pods[id] == "" || m.pods[id] == resource) {
			ids = append(ids, id)
		}
	}
	return ids
}

// home is the resource that a device is of, "" for none.
func (m *model) home(id string) string {
	switch driver := m.drivers[id]; {
	case driver == "vfio-pci" && m.vfio != "":
		return "intel.com/" + m.vfio
	case driver == "mlx5_core" && id == last:
		return rdma
	case driver == "mlx5_core" && id == first && m.net && (!m.routed || m.hidden[id]):
		return net
	}
	return ""
}

// converge waits until kubelet has been told what the model says.
func (m *model) converge(what string) {
	m.t.Helper()
	for _, resource := range m.names() {
		want := m.want(resource)
		m.Await(fmt.Sprintf("%s, seed in the log: %s to be %v", what, resource, want), func() bool { return slices.Equal(m.Healthy(resource), want) })
	}
}
