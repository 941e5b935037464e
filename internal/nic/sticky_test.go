package nic_test

import (
	"slices"
	"testing"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nic"
	"kata-device-plugin/internal/pci"
)

// life declares one look after another, as the agent does.
type life struct {
	t     *testing.T
	r     *nic.Rules
	last  []declare.Resource
	d     declare.Declaration
	fresh declare.Declaration // as the rules made it
}

// look declares, and keeps what was announced.
func (l *life) look(s *host.Snapshot, held map[string][]string) {
	l.fresh = l.r.Declare(s, declare.Past{Announced: l.last, Held: held})
	l.d = l.fresh.After(l.last)
	l.last = l.d.Resources
}

func (l *life) expect(want string) {
	l.t.Helper()
	expect(l.t, l.d, want)
}

// lan are a PF with RDMA and a VF, which a pool takes by what is only seen in its namespace.
func lan(changes ...func(*host.Function)) []host.Function {
	return []host.Function{
		function("0000:65:00.0", 0x15b3, 0x101d, 0x020000, "mlx5_core", ether("p0"), rdma(0), pf("0000:65:00.2")),
		function("0000:65:00.2", 0x15b3, 0x101e, 0x020000, "mlx5_core", append(changes, vf("0000:65:00.0", 0))...),
	}
}

const seen = `{"resourceName":"a","selectors":{"pfNames":["p0"],"linkTypes":["ether"],"isRdma":true}},
	{"resourceName":"b","selectors":{"vendors":["15b3"]}}`

func holding(resource string, ids ...string) map[string][]string {
	return map[string][]string{resource: ids}
}

// TestInAPod: the interface and the RDMA device of a VF are in a pod. The old plugin loses
// the VF when it starts anew (SDP#392, SDP#565), and would make the others count less.
func TestInAPod(t *testing.T) {
	l := &life{t: t, r: pools(t, seen)}
	nobody, pod := map[string][]string{}, holding("intel.com/a", "0000:65:00.2")
	l.look(snapshot(lan(ether("v0"), rdma(7))), nobody)
	l.expect(`intel.com/a 0000:65:00.2`)
	before := nodes(&l.last[0].Devices[0])
	l.look(snapshot(lan()), pod)
	l.expect(`intel.com/a 0000:65:00.2`)
	if got := nodes(&l.last[0].Devices[0]); got != before {
		t.Errorf("the nodes of a device in a pod are\n%s, and were\n%s", got, before)
	}
	moved := lan(func(f *host.Function) { f.Network.RDMA = nil })
	rdma(7)(&moved[0]) // the kernel numbers the nodes anew when devices move
	l.look(snapshot(moved), pod)
	l.expect(`intel.com/a 0000:65:00.2`)
	if got := l.last[0].Devices[0].Nodes; len(got) != 0 {
		t.Errorf("nodes of another device: %v", got)
	}
	l.look(snapshot(lan()), nil) // kubelet's record cannot be read: as before
	l.expect(`intel.com/a 0000:65:00.2`)
	l.look(snapshot(lan()), nobody) // in somebody else's namespace
	l.expect(`intel.com/a 0000:65:00.2 HST008`)
	l.look(snapshot(lan()), nil)
	l.expect(`intel.com/a 0000:65:00.2 HST008`)
	l.look(snapshot(lan(ether("v0"))), nobody) // the interface comes back first
	l.expect(`intel.com/a 0000:65:00.2 HST008`)
	l.look(snapshot(lan(ether("v0"), rdma(7))), nobody)
	l.expect(`intel.com/a 0000:65:00.2`)
}

// TestRestart: the same with a plugin that has just started.
func TestRestart(t *testing.T) {
	for _, tt := range []struct {
		what     string
		config   string
		hardware []host.Function
		held     map[string][]string
		want     string
		unseen   string
	}{
		{"kubelet's record", seen, lan(), holding("intel.com/a", "0000:65:00.2"), `intel.com/a 0000:65:00.2`, ""},
		{"kubelet's record, of the other pool", seen, lan(), holding("intel.com/b", "0000:65:00.2"), `intel.com/b 0000:65:00.2`, ""},
		{"the PF", seen, lan(), map[string][]string{}, `intel.com/a 0000:65:00.2 HST008`, ""},
		{"the PF, and no record", seen, lan(), nil, `intel.com/a 0000:65:00.2 HST008`, ""},
		{"a record of another device", seen, lan(), holding("intel.com/a", "0000:65:00.3"), `intel.com/a 0000:65:00.2 HST008`, ""},
		{"a record of a pool that is gone", seen, lan(), holding("intel.com/old", "0000:65:00.2"), `intel.com/a 0000:65:00.2 HST008 HST042`, ""},
		{"the PF has no RDMA", seen, func() []host.Function {
			all := lan()
			all[0].Network.RDMA = nil
			return all
		}(), nil, `intel.com/b 0000:65:00.2`, ""},
		{"the PF is in a pod as well", seen, func() []host.Function {
			all := lan()
			all[0].Network.Interfaces = nil
			return all
		}(), map[string][]string{}, ``, "HST038 intel.com/a 0000:65:00.2\n"},
		{"the PF is in a pod as well, with kubelet's record", seen, func() []host.Function {
			all := lan()
			all[0].Network.Interfaces = nil
			return all
		}(), holding("intel.com/a", "0000:65:00.2"), `intel.com/a 0000:65:00.2`, ""},
		{"the PF was not read", seen, lan()[1:], nil, ``, "HST038 intel.com/a 0000:65:00.2\n"},
		{"a VF on VFIO with a PF on VFIO has no link", `{"resourceName":"a","selectors":{"linkTypes":["ether"]}},{"resourceName":"b","selectors":{"drivers":["vfio-pci"]}}`,
			[]host.Function{
				function("0000:65:00.0", 0x15b3, 0x101d, 0x020000, "vfio-pci", vfio("1"), pf("0000:65:00.2")),
				function("0000:65:00.2", 0x15b3, 0x101e, 0x020000, "vfio-pci", vfio("2"), vf("0000:65:00.0", 0))},
			nil, `intel.com/b 0000:65:00.2`, ""},
		{"the VF's number is not listed", `{"resourceName":"a","selectors":{"rootDevices":["65:00.0#0"]}}`, lan(ether("v0"), func(f *host.Function) {
			f.PhysFn = &pci.Address{Bus: 0x65}
		})[1:], nil, ``, ""},
	} {
		l := &life{t: t, r: pools(t, tt.config)}
		if tt.what == "the VF's number is not listed" {
			tt.hardware[0].Network.VFIndex, tt.unseen = -1, "HST038 intel.com/a 0000:65:00.2\n"
		}
		l.look(snapshot(tt.hardware), tt.held)
		if told(l.d) != lines(tt.want) || found(l.d, finding.Unseen()) != tt.unseen {
			t.Errorf("%s:\n%s%s", tt.what, told(l.d), reasons(l.d.Findings))
		}
	}
}

// TestPFInAPod: the PF's interface is gone, and with it the name that selects its VFs.
func TestPFInAPod(t *testing.T) {
	l := &life{t: t, r: pools(t, `{"resourceName":"x","selectors":{"pfNames":["other"]}},
		{"resourceName":"a","selectors":[{"pfNames":["other"],"needVhostNet":true},{"pfNames":["p0"]}]},{"resourceName":"b","selectors":{"vendors":["15b3"]}}`)}
	l.look(snapshot(lan(ether("v0"))), nil)
	l.expect(`intel.com/a 0000:65:00.2`)
	all := lan(ether("v0"))
	all[0].Network.Interfaces = nil
	for range 3 {
		l.look(snapshot(all), nil)
		l.expect(`intel.com/a 0000:65:00.2`)
		if got := about(t, &l.last[0].Devices[0]); got != `{"generic":{"deviceID":"0000:65:00.2"}}` {
			t.Errorf("another selector has it now: %s", got)
		}
	}
	all[0].Network.Interfaces = []host.Interface{{Name: "renamed", Type: host.TypeEther}}
	l.look(snapshot(all), nil) // which is a fact; whether a pod has the device is not known
	l.expect(`intel.com/a 0000:65:00.2 HST035
		intel.com/b 0000:65:00.2 HST042`)
	l.look(snapshot(all), map[string][]string{})
	l.expect(`intel.com/a 0000:65:00.2 HST035
		intel.com/b 0000:65:00.2`)
	l.look(snapshot(lan(ether("v0"))), holding("intel.com/b", "0000:65:00.2"))
	l.expect(`intel.com/a 0000:65:00.2 HST042
		intel.com/b 0000:65:00.2 HST035`)
	l.look(snapshot(lan(ether("v0"))), nil)
	l.expect(`intel.com/a 0000:65:00.2
		intel.com/b 0000:65:00.2 HST035`)
}

// TestRebind: a driver is exchanged for another one.
func TestRebind(t *testing.T) {
	config := `{"resourceName":"kernel","selectors":{"drivers":["mlx5_core"],"isRdma":true}},{"resourceName":"vfio","selectors":{"drivers":["vfio-pci"]}},
		{"resourceName":"rest","selectors":{"vendors":["15b3"]}}`
	bound := func(driver string, changes ...func(*host.Function)) *host.Snapshot {
		all := lan(changes...)
		all[1].Driver = driver
		return snapshot(all)
	}
	l := &life{t: t, r: pools(t, config)}
	l.look(bound("mlx5_core", ether("v0"), rdma(7)), nil)
	l.expect(`intel.com/kernel 0000:65:00.2`)
	l.look(bound(""), nil)
	l.expect(`intel.com/kernel 0000:65:00.2 HST036`)
	l.look(bound("mlx5_core"), nil) // the driver has not made them yet
	l.expect(`intel.com/kernel 0000:65:00.2 HST008`)
	l.look(bound("mlx5_core", ether("v0"), rdma(7)), nil)
	l.expect(`intel.com/kernel 0000:65:00.2`)
	l.look(bound(""), nil)
	l.look(bound("vfio-pci", vfio("41")), holding("intel.com/kernel", "0000:65:00.2"))
	l.expect(`intel.com/kernel 0000:65:00.2 HST035
		intel.com/vfio 0000:65:00.2 HST042`)
	l.look(bound("vfio-pci", vfio("41")), nil)
	l.expect(`intel.com/kernel 0000:65:00.2 HST035
		intel.com/vfio 0000:65:00.2`)
	l.look(bound(""), nil)
	l.expect(`intel.com/kernel 0000:65:00.2 HST035
		intel.com/vfio 0000:65:00.2 HST036`)
}

// TestPFBecomesAnother: the PF of a VF is set to InfiniBand. What the VF itself is cannot be seen while
// its interface is in a pod, and neither while it has no driver: it keeps its place. One on VFIO has
// the link of its PF, whatever that is.
func TestPFBecomesAnother(t *testing.T) {
	infiniband := func(f *host.Function) {
		f.Network.Interfaces = []host.Interface{{Name: "p0", Type: host.TypeInfiniBand}}
	}
	unbound := func(f *host.Function) { f.Driver, f.Network = "", &host.Network{VFIndex: f.Network.VFIndex} }
	onVFIO := func(f *host.Function) {
		f.Driver, f.Network = "vfio-pci", &host.Network{VFIndex: f.Network.VFIndex}
		vfio("60")(f)
	}
	for _, c := range []struct {
		what   string
		change func(*host.Function)
		want   string
	}{
		{"in a pod", func(*host.Function) {}, "intel.com/a"},
		{"unbound", unbound, "intel.com/a"},
		{"on VFIO", onVFIO, "intel.com/b"},
	} {
		l := &life{t: t, r: pools(t, `{"resourceName":"a","selectors":{"linkTypes":["ether"]}},
			{"resourceName":"b","selectors":{"vendors":["15b3"],"linkTypes":["infiniband"]}}`)}
		nobody := map[string][]string{}
		l.look(snapshot(lan()), nobody) // the VF's own interface was never seen
		all := lan(c.change)
		infiniband(&all[0])
		l.look(snapshot(all), nobody)
		var at []string
		for _, r := range l.last {
			for i := range r.Devices {
				if d := &r.Devices[i]; d.Present && d.ID == "0000:65:00.2" {
					at = append(at, r.Name)
				}
			}
		}
		if !slices.Equal(at, []string{c.want}) {
			t.Errorf("%s it is of %v, not %s", c.what, at, c.want)
		}
	}
}

// TestLeft: what was announced is still there, and says why it is of no use.
func TestLeft(t *testing.T) {
	sf := []host.Subfunction{{Name: "mlx5_core.sf.4", Number: 88, Driver: "mlx5_core.sf"}}
	config := `{"resourceName":"a","selectors":{"linkTypes":["ether"]}},{"resourceName":"sf","deviceType":"auxNetDevice","selectors":{"auxTypes":["sf"]}}`
	plain := func(changes ...func(*host.Function)) []host.Function {
		return []host.Function{function("0000:65:00.1", 0x15b3, 0x101d, 0x020000, "mlx5_core", changes...)}
	}
	withSF := func(f *host.Function) { f.Network.Subfunctions = sf }
	for _, tt := range []struct {
		what string
		now  []host.Function
		a    string // the reason of the device
		sf   string // and of the subfunction
	}{
		{"nothing", plain(ether("p1"), withSF), "", ""},
		{"the function", nil, "HST032 the device has left: /sys/bus/pci/devices/0000:65:00.1 = none", "HST032 the device has left: /sys/bus/pci/devices/0000:65:00.1 = none"},
		{"the subfunction", plain(ether("p1")), "", "HST032 the device has left: /sys/bus/auxiliary/devices/mlx5_core.sf.4 = none"},
		{"the link", plain(infiniband("p1"), withSF), "HST041 the device no longer matches the selectors of its resource: linkTypes = infiniband", ""},
		{"to VFs", plain(ether("p1"), withSF, pf("0000:65:01.0")), "HST029 the function is a PF with virtual functions enabled: /sys/bus/pci/devices/0000:65:00.1/virtfn0 = 0000:65:01.0", ""},
		{"the board", []host.Function{function("0000:65:00.1", 0x10de, 0x2330, 0x030200, "vfio-pci", vfio("1"))},
			"HST035 the function in this slot is no longer of this resource: /sys/bus/pci/devices/0000:65:00.1/class = 0x030200", "HST035 the function in this slot is no longer of this resource: /sys/bus/pci/devices/0000:65:00.1/class = 0x030200"},
	} {
		l := &life{t: t, r: pools(t, config)}
		l.look(snapshot(plain(ether("p1"), withSF)), nil)
		l.expect(`intel.com/a 0000:65:00.1
			intel.com/sf mlx5_core.sf.4`)
		l.look(snapshot(tt.now), nil)
		for i, want := range []string{tt.a, tt.sf} {
			got := ""
			if f := l.last[i].Devices[0].Faults; len(f) > 0 {
				got = f[0].String()
			}
			if got != want {
				t.Errorf("%s has left: %s", tt.what, got)
			}
		}
		l.look(snapshot(plain(ether("p1"), withSF)), nil)
		l.expect(`intel.com/a 0000:65:00.1
			intel.com/sf mlx5_core.sf.4`)
	}
}

// TestRenamed: a pool has another name now, and a pod holds its device as the old one.
func TestRenamed(t *testing.T) {
	l := &life{t: t, r: pools(t, `{"resourceName":"old","selectors":{"pciAddresses":["65:00.2"]}}`)}
	l.look(snapshot(lan(ether("v0"))), nil)
	l.r = pools(t, `{"resourceName":"new","selectors":{"pciAddresses":["65:00.2"]}}`)
	l.look(snapshot(lan(ether("v0"))), holding("intel.com/old", "0000:65:00.2"))
	l.expect(`intel.com/old 0000:65:00.2 HST035
		intel.com/new 0000:65:00.2 HST042`)
	l.look(snapshot(lan()), holding("intel.com/old", "0000:65:00.2")) // in the pod
	l.expect(`intel.com/old 0000:65:00.2 HST035
		intel.com/new 0000:65:00.2 HST042`)
	l.look(snapshot(lan(ether("v0"))), holding("nvidia.com/gpu", "0000:41:00.0"))
	l.expect(`intel.com/old 0000:65:00.2 HST035
		intel.com/new 0000:65:00.2`)
	l.r = pools(t, ``)
	l.look(snapshot(lan(ether("v0"))), nil)
	l.expect(`intel.com/old 0000:65:00.2 HST041
		intel.com/new 0000:65:00.2 HST041`)
}

// TestAgain: a device is read anew before it is handed out.
func TestAgain(t *testing.T) {
	r := pools(t, seen+`,{"resourceName":"sf","deviceType":"auxNetDevice","selectors":{"auxTypes":["sf"],"needVhostNet":true}}`)
	all := lan(ether("v0"), rdma(7))
	all[0].Network.Subfunctions = []host.Subfunction{{Name: "mlx5_core.sf.4", Driver: "mlx5_core.sf"}}
	d := r.Declare(snapshot(all), declare.Past{})
	was := device(t, d, "intel.com/a", "0000:65:00.2")
	for _, tt := range []struct {
		what, fault string
		f           host.Function
	}{
		{"as it was", "", lan(ether("v0"), rdma(7))[1]},
		{"in a pod", "HST008", lan()[1]},
		{"without a driver", "HST036", func() host.Function { f := lan()[1]; f.Driver = ""; return f }()},
		{"on VFIO", "HST041", func() host.Function { f := lan(vfio("41"))[1]; f.Driver = "vfio-pci"; return f }()},
		{"another link", "HST041", lan(infiniband("v0"), rdma(7))[1]},
		{"another class", "HST035", function("0000:65:00.2", 0x10de, 0x2330, 0x030200, "vfio-pci")},
		{"VFs", "HST029", function("0000:65:00.2", 0x15b3, 0x101e, 0x020000, "mlx5_core", ether("v0"), rdma(7), pf("0000:65:00.4"))},
	} {
		got := r.Again(&tt.f, was, "intel.com/a")
		if k := kinds(got.Faults); got.ID != was.ID || k != "" && k != " "+tt.fault || k == "" && tt.fault != "" {
			t.Errorf("%s: %s%s", tt.what, got.ID, k)
		}
		if tt.fault == "" && (nodes(&got) != nodes(was) || about(t, &got) != about(t, was)) {
			t.Errorf("%s: %s %s", tt.what, nodes(&got), about(t, &got))
		}
	}
	f := lan(ether("v0"), rdma(7))[1]
	if got := r.Again(&f, was, "intel.com/other"); kinds(got.Faults) != " HST041" {
		t.Errorf("a resource of nobody: %s", kinds(got.Faults))
	}
	sf := device(t, d, "intel.com/sf", "mlx5_core.sf.4")
	if got := r.Again(&all[0], sf, "intel.com/sf"); got.ID != sf.ID || !got.Healthy() || nodes(&got) != nodes(sf) {
		t.Errorf("a subfunction: %s%s %s", got.ID, kinds(got.Faults), nodes(&got))
	}
	parent := lan()[0]
	if got := r.Again(&parent, sf, "intel.com/sf"); kinds(got.Faults) != " HST032" {
		t.Errorf("a subfunction that has left: %s", kinds(got.Faults))
	}
}
