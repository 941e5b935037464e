package host_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/sim"
)

// TestInUse stacks links upon an adapter in the ways that there are.
func TestInUse(t *testing.T) {
	type links = map[string]string // name -> kind
	for name, tt := range map[string]struct {
		add           links
		master, lower [][2]string
		routes        []string
		want          map[string]string // function -> its interface, and the one with the route
	}{
		"none":              {want: map[string]string{}},
		"the interface":     {routes: []string{"eno1"}, want: map[string]string{onboardNIC: "eno1 eno1"}},
		"the first counts":  {routes: []string{"eno1", "eno1"}, want: map[string]string{onboardNIC: "eno1 eno1"}},
		"two":               {routes: []string{"eno1", "ens1f0np0"}, want: map[string]string{onboardNIC: "eno1 eno1", nicPF: "ens1f0np0 ens1f0np0"}},
		"another interface": {add: links{"dummy0": "dummy"}, routes: []string{"dummy0"}, want: map[string]string{}},
		"bond": {
			add: links{"bond0": "bond"}, master: [][2]string{{"ens1f0np0", "bond0"}, {"ens1f1np1", "bond0"}}, routes: []string{"bond0"},
			want: map[string]string{nicPF: "ens1f0np0 bond0", idlePF: "ens1f1np1 bond0"},
		},
		"VLAN upon a bond": {
			add: links{"bond0": "bond", "bond0.7": "vlan"}, master: [][2]string{{"ens1f1np1", "bond0"}}, lower: [][2]string{{"bond0.7", "bond0"}},
			routes: []string{"bond0.7"}, want: map[string]string{idlePF: "ens1f1np1 bond0.7"},
		},
		"a route below a VLAN": { // what is upon a link does not put it in use
			add: links{"vlan7": "vlan"}, lower: [][2]string{{"vlan7", "ens1f0np0"}}, routes: []string{"eno1"}, want: map[string]string{onboardNIC: "eno1 eno1"},
		},
		"bridge over a VLAN": {
			add: links{"br0": "bridge", "vlan7": "vlan"}, master: [][2]string{{"vlan7", "br0"}}, lower: [][2]string{{"vlan7", "ens1f0np0"}},
			routes: []string{"br0"}, want: map[string]string{nicPF: "ens1f0np0 br0"},
		},
		"a port of a bridge without the route": {
			add: links{"br0": "bridge"}, master: [][2]string{{"ens1f0np0", "br0"}}, routes: []string{"eno1"}, want: map[string]string{onboardNIC: "eno1 eno1"},
		},
		"Open vSwitch": {
			add:    links{"ovs-system": "openvswitch", "br-ex": "openvswitch", "br-int": "openvswitch"},
			master: [][2]string{{"br-ex", "ovs-system"}, {"ens1f0np0", "ovs-system"}, {"ens1f0v0", "ovs-system"}},
			routes: []string{"br-ex"}, want: map[string]string{nicPF: "ens1f0np0 br-ex", netVF: "ens1f0v0 br-ex"},
		},
		"VLAN upon Open vSwitch upon a bond": {
			add:    links{"ovs-system": "openvswitch", "br-ex": "openvswitch", "vlan7": "vlan", "bond0": "bond"},
			master: [][2]string{{"bond0", "ovs-system"}, {"ens1f1np1", "bond0"}}, lower: [][2]string{{"vlan7", "br-ex"}},
			routes: []string{"vlan7"}, want: map[string]string{idlePF: "ens1f1np1 vlan7"},
		},
		"a circle": {
			add: links{"a": "bridge", "b": "vlan"}, master: [][2]string{{"a", "b"}, {"b", "a"}, {"eno1", "a"}}, lower: [][2]string{{"a", "b"}, {"b", "b"}},
			routes: []string{"b"}, want: map[string]string{onboardNIC: "eno1 b"},
		},
		"a subfunction": {routes: []string{"sf88"}, want: map[string]string{nicPF: "sf88 sf88"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := netRig(t, sim.Adapters())
			_, err := r.AddSF(addr(t, nicPF), sim.SF{ID: 4, Number: 88, NIC: &sim.NIC{Interfaces: []sim.Interface{{Name: "sf88"}}}})
			must(t, err)
			r.RemoveDefaultRoutes()
			for name, kind := range tt.add {
				must(t, r.AddLink(name, kind))
			}
			for _, m := range tt.master {
				r.SetMaster(m[0], m[1])
			}
			for _, l := range tt.lower {
				r.SetLower(l[0], l[1])
			}
			for _, name := range tt.routes {
				r.AddDefaultRoute(name, "inet6")
			}
			s := r.src.Look(nil)
			got := map[string]string{}
			for _, f := range s.Functions {
				if u, used := s.InUse(f.Address); used {
					got[f.Address.String()] = u.Interface + " " + u.Via
					if u.Default.Family != "inet6" || u.Default.Index == 0 || u.Default.Table != 254 {
						t.Errorf("%+v", u)
					}
				} else if u != (host.Use{}) {
					t.Errorf("%+v", u)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("in use (-want +got):\n%s", diff)
			}
		})
	}
	var none *host.Snapshot
	if _, used := none.InUse(addr(t, nicPF)); used {
		t.Error("in use, says no snapshot")
	}
}

// TestNoLinks has netlink fail: what was known is kept, and said to be old.
func TestNoLinks(t *testing.T) {
	r, _ := netRig(t, sim.Adapters())
	s := r.src.Look(nil)
	links, broken := r.src.Links, errors.New("no buffer space available")
	r.src.Links = func() (*host.Links, error) { return nil, broken }
	later := r.src.Look(s)
	if !errors.Is(later.LinksErr, broken) || !later.Partial() || later.Links != s.Links {
		t.Errorf("%v, %v", later.LinksErr, later.Links)
	}
	if _, used := later.InUse(addr(t, onboardNIC)); !used {
		t.Error("a use is forgotten")
	}
	if first := r.src.Look(nil); first.LinksErr == nil || first.Links != nil {
		t.Errorf("%v, %v", first.LinksErr, first.Links)
	} else if _, used := first.InUse(addr(t, onboardNIC)); used {
		t.Error("a use is made up")
	}
	r.src.Links = links
	same(t, "readable", r.src.Look(later), s)
	r.src.Links = nil
	if s := r.src.Look(s); s.Links != nil || s.LinksErr != nil {
		t.Errorf("%v, %v", s.Links, s.LinksErr)
	}
}
