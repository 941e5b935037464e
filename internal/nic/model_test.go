package nic_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// machine is a node of which anything may change. Its VFs have all they ever had in truth;
// shown is what the host sees of it.
type machine struct {
	*rand.Rand
	truth map[string]*host.Function
	shown map[string]*host.Function
	held  map[string][]string
}

func newMachine(r *rand.Rand) *machine {
	m := &machine{Rand: r, truth: map[string]*host.Function{}, shown: map[string]*host.Function{}}
	for _, f := range append(base(), hcas()...) {
		if f.Address == addr("0000:65:00.0") && len(f.VFs) == 0 {
			continue // of T6, where B has a PF
		}
		m.truth[f.Address.String()] = &f
	}
	m.reset()
	return m
}

func (m *machine) reset() {
	for id := range m.truth {
		m.restore(id)
	}
}

// restore shows a function as it is.
func (m *machine) restore(id string) {
	f := *m.truth[id]
	n := *f.Network
	n.Interfaces, n.RDMA, n.UIO = slices.Clone(n.Interfaces), slices.Clone(n.RDMA), slices.Clone(n.UIO)
	for i := range n.RDMA {
		n.RDMA[i].UVerbs = slices.Clone(n.RDMA[i].UVerbs)
	}
	if n.GroupNode != nil {
		n.GroupNode = new(*n.GroupNode)
	}
	f.Network = &n
	m.shown[id] = &f
}

// mutate changes something, and says what.
func (m *machine) mutate() string {
	ids := slices.Sorted(maps.Keys(m.truth))
	id := ids[m.IntN(len(ids))]
	f := m.shown[id]
	if f == nil {
		m.restore(id)
		return id + " is back"
	}
	all := map[string]func(){
		"removed":      func() { m.shown[id] = nil },
		"restored":     func() { m.restore(id) },
		"moved to pod": func() { f.Network.Interfaces, f.Network.RDMA = nil, nil },
		"netdev moved": func() { f.Network.Interfaces = nil },
		"rdma moved":   func() { f.Network.RDMA = nil },
		"unbound":      func() { f.Driver, f.Cdev, f.Network = "", nil, &host.Network{VFIndex: f.Network.VFIndex} },
		"on VFIO": func() {
			f.Driver, f.Network = "vfio-pci", &host.Network{VFIndex: f.Network.VFIndex}
			vfio("60")(f)
		},
		"renamed": func() {
			for i := range f.Network.Interfaces {
				f.Network.Interfaces[i].Name = "renamed" + strconv.Itoa(m.IntN(3))
			}
		},
		"to InfiniBand": func() {
			for i := range f.Network.Interfaces {
				f.Network.Interfaces[i].Type = host.TypeInfiniBand
			}
		},
		"bad uverbs": func() {
			for i := range f.Network.RDMA {
				f.Network.RDMA[i].UVerbs[0].Fault = "no node"
			}
		},
		"bad group": func() {
			if f.Network.GroupNode != nil {
				f.Network.GroupNode.Fault = "no node"
			}
		},
		"another board": func() { f.Vendor, f.Device = 0x8086, 0x1592 },
		"another class": func() { f.Class = 0x030200 },
		"no VFs":        func() { f.VFs = nil },
	}
	names := slices.Sorted(maps.Keys(all))
	name := names[m.IntN(len(names))]
	all[name]()
	return id + " " + name
}

// pods start and end: a pod takes a healthy device that nobody has.
func (m *machine) pods(last []declare.Resource) string {
	switch m.IntN(6) {
	case 0:
		m.held = nil
		return "kubelet's record cannot be read"
	case 1:
		m.held = map[string][]string{}
		return "no pod"
	case 2, 3:
		return "pods as they are"
	}
	if m.held == nil {
		m.held = map[string][]string{}
	}
	m.held = maps.Clone(m.held)
	for _, r := range last {
		for i := range r.Devices {
			d := &r.Devices[i]
			if d.Healthy() && m.IntN(4) == 0 && !slices.Contains(m.held[r.Name], d.ID) {
				m.held[r.Name] = append(slices.Clone(m.held[r.Name]), d.ID)
				return "a pod takes " + d.ID + " of " + r.Name
			}
		}
	}
	return "no pod starts"
}

func (m *machine) snapshot() *host.Snapshot {
	var all []host.Function
	for _, f := range m.shown {
		if f != nil {
			g := *f // a look gives facts of its own
			n := *f.Network
			g.Network = &n
			all = append(all, g)
		}
	}
	without := []string{}
	for _, path := range host.SharedNodes() {
		if m.IntN(20) == 0 {
			without = append(without, path)
		}
	}
	return snapshot(all, without...)
}

const modelConfig = `{"resourceList":[
	{"resourceName":"rdma","selectors":[{"vendors":["15b3"],"isRdma":true,"pfNames":["ens1f0np0"]}]},
	{"resourceName":"vhost","selectors":{"rootDevices":["65:00.0#0"],"drivers":["mlx5_core"],"linkTypes":["ether"],"needVhostNet":true}},
	{"resourceName":"vfio","selectors":{"drivers":["vfio-pci"]}},
	{"resourceName":"rest","selectors":[{"vendors":["8086"]},{"devices":["101e"]}]},
	{"resourceName":"acc","deviceType":"accelerator","selectors":{"matchAll":true}}],
	"configList":[{"resourceName":"ib","rdmaHcaMax":5,"selectors":{"devices":[],"linkTypes":["infiniband"]}},
	{"resourceName":"each","sharesPerDevice":2,"selectors":{"drivers":["mlx5_core"]}}]}`

// TestModel changes a machine at random, and sees that no ID is withdrawn, that no device is
// healthy twice or without its nodes, that what a pod holds keeps its place as long as
// nothing that is seen says otherwise, and that the rules change none of what they are given.
// SEED repeats a run.
func TestModel(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SEED=%d", seed)
	r := rules(t, strings.Replace(modelConfig, `"devices":[],`, "", 1))
	for run := range 10 {
		m := newMachine(rand.New(rand.NewPCG(seed, uint64(run))))
		var last []declare.Resource
		var story []string
		healthyOnce := 0
		for step := range 120 {
			change := m.mutate()
			story = append(story, change, m.pods(last))
			s, past := m.snapshot(), declare.Past{Announced: last, Held: m.held}
			given := ""
			if step%20 == 0 {
				given = text(t, s.Functions, past)
			}
			d := r.Declare(s, past)
			if step%20 == 0 && text(t, s.Functions, past) != given {
				t.Fatalf("the rules change what they are given; %v", story)
			}
			if step%20 == 0 && differ(t, r.Declare(s, past), d) {
				t.Fatalf("the same gives something else; %v", story)
			}
			next := d.After(last).Resources
			for _, complaint := range append(complaints(s, last, next, m.held), strayed(change, last, next)...) {
				t.Errorf("%s; after %v", complaint, story[max(0, len(story)-8):])
			}
			if t.Failed() {
				return
			}
			last = next
			for _, res := range next {
				for i := range res.Devices {
					if res.Devices[i].Healthy() {
						healthyOnce++
					}
				}
			}
		}
		if healthyOnce == 0 {
			t.Error("nothing was ever healthy")
		}
	}
}

// differ says whether two declarations do.
func differ(t *testing.T, a, b declare.Declaration) bool {
	t.Helper()
	return text(t, a.Resources, a.Findings, a.Others) != text(t, b.Resources, b.Findings, b.Others)
}

func text(t *testing.T, values ...any) string {
	t.Helper()
	data, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// complaints are what is wrong with what is announced next.
func complaints(s *host.Snapshot, last, next []declare.Resource, held map[string][]string) []string {
	var all []string
	complain := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	healthy := map[string]string{} // device -> resource
	now := map[string]*declare.Device{}
	budget := 0
	for _, r := range next {
		for i := range r.Devices {
			d := &r.Devices[i]
			now[r.Name+" "+d.ID] = d
			if !d.Healthy() {
				for _, f := range d.Faults {
					if f.ID == "" || f.Resource != r.Name || f.Device != d.ID {
						complain("the fault of %s %s is %s %s %s", r.Name, d.ID, f.Resource, f.Device, f)
					}
				}
				continue
			}
			if other := healthy[d.ID]; other != "" && !strings.Contains(d.ID, "::") {
				complain("%s is healthy in %s and %s", d.ID, other, r.Name)
			}
			healthy[d.ID] = r.Name
			if r.Name == "rdma/ib" && !slices.Contains(held[r.Name], d.ID) {
				budget++
			}
			for resource, ids := range held {
				if resource != r.Name && slices.Contains(ids, d.ID) && !strings.Contains(d.ID, "::") {
					complain("%s is healthy in %s while a pod holds it as %s", d.ID, r.Name, resource)
				}
			}
			inPod := held == nil || slices.Contains(held[r.Name], d.ID)
			for _, why := range incomplete(s, d, inPod) {
				complain("%s %s is healthy, but %s", r.Name, d.ID, why)
			}
		}
	}
	if budget > 5 {
		complain("%d shares of a budget of 5", budget)
	}
	for _, r := range last {
		for i := range r.Devices {
			if now[r.Name+" "+r.Devices[i].ID] == nil {
				complain("%s %s is withdrawn", r.Name, r.Devices[i].ID)
			}
		}
	}
	return all
}

// strayed are the devices that have lost their place, though all that has happened to them
// since is what happens to a device when a pod gets it, or when its driver is exchanged.
func strayed(change string, last, next []declare.Resource) []string {
	id, what, _ := strings.Cut(change, " ")
	if !slices.Contains([]string{"moved to pod", "netdev moved", "rdma moved", "unbound"}, what) {
		return nil
	}
	present := func(all []declare.Resource) []string {
		var names []string
		for _, r := range all {
			for i := range r.Devices {
				if d := &r.Devices[i]; d.Present && d.ID == id {
					names = append(names, r.Name)
				}
			}
		}
		return names
	}
	before, now := present(last), present(next)
	if before != nil && !slices.Equal(before, now) {
		return []string{fmt.Sprintf("%s was of %v and is of %v", id, before, now)}
	}
	return nil
}

// incomplete says what of a device's nodes is not there. A pod that has the device has its
// RDMA nodes too.
func incomplete(s *host.Snapshot, d *declare.Device, inPod bool) []string {
	var why []string
	if !d.Present {
		why = append(why, "absent")
	}
	for _, n := range d.With {
		if shared, ok := s.Shared[n.Path]; ok && shared.Fault != "" {
			why = append(why, "without "+n.Path)
		}
	}
	i := slices.IndexFunc(s.Functions, func(f host.Function) bool { return f.Address == d.Function.Address })
	if i < 0 {
		return append(why, "its function has left")
	}
	f := &s.Functions[i]
	good := map[string]bool{}
	for _, dev := range f.Network.RDMA {
		for _, list := range [][]host.CharDevice{dev.UVerbs, dev.UMAD, dev.ISSM} {
			for _, n := range list {
				good[n.Path] = n.Fault == ""
			}
		}
	}
	for _, n := range f.Network.UIO {
		good[n.Path] = n.Fault == ""
	}
	if g := f.Network.GroupNode; g != nil {
		good[g.Path] = g.Fault == ""
	}
	for _, n := range d.Nodes {
		if rdma := strings.HasPrefix(n.Path, "/dev/infiniband/"); !good[n.OnHost()] && !(rdma && inPod && len(f.Network.RDMA) == 0) {
			why = append(why, "without "+n.Path)
		}
	}
	if f.Driver == "" || f.Class>>16 == pci.Class(3) {
		why = append(why, "driver "+f.Driver+", class "+f.Class.String())
	}
	return why
}
