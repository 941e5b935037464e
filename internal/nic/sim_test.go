package nic_test

import (
	"errors"
	"testing"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nic"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sysfs"
)

// node is a simulated one with B, and what reads it.
func node(t *testing.T) (*sim.Node, host.Source) {
	t.Helper()
	n, err := sim.New(t.TempDir(), sim.Adapters())
	if err != nil {
		t.Fatal(err)
	}
	sys, err := sysfs.Open(n.Roots("nic-device-plugin").Sys)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sys.Close() })
	return n, host.Source{Sys: sys, Dev: devfs.Dir(n.Roots("nic-device-plugin").Dev), Wanted: nic.Wants, Network: nic.Wants, Links: n.Links}
}

// TestFromTree: the same rules on the same tree as a look reads it.
func TestFromTree(t *testing.T) {
	_, src := node(t)
	r := pools(t, `{"resourceName":"pf","selectors":{"pfNames":["ENS1F0NP0#0-1,3"]}},{"resourceName":"rdma","selectors":{"isRdma":true,"drivers":["mlx5_core"],"pfNames":["ens1f0np0"]}},
		{"resourceName":"vfio","selectors":{"drivers":["vfio-pci"]}},{"resourceName":"uio","selectors":{"drivers":["igb_uio"]}},
		{"resourceName":"acc","deviceType":"accelerator","selectors":{"acpiIndexes":["101"]}}`)
	s := src.Look(nil)
	d := r.Declare(s, declare.Past{})
	expect(t, d, `intel.com/pf 0000:65:00.2
		intel.com/pf 0000:65:00.3
		intel.com/pf 0000:65:00.5 HST036
		intel.com/rdma 0000:65:00.7
		intel.com/vfio 0000:65:00.4
		intel.com/uio 0000:65:00.6
		intel.com/acc 0000:f7:00.0`)
	count := 0
	for _, res := range d.Resources {
		for i := range res.Devices {
			was := &res.Devices[i]
			f, there := src.Again(s, was.Function.Address)
			if !was.Healthy() || !there {
				continue
			}
			count++
			if got := r.Again(&f, was, res.Name); !got.Healthy() || nodes(&got) != nodes(was) {
				t.Errorf("%s, read anew: %s\n%s", was.ID, kinds(got.Faults), nodes(&got))
			}
			for _, n := range append(was.Nodes, was.With...) {
				if !src.HasNode(n.OnHost()) {
					t.Errorf("%s has the node %s, which is not there", was.ID, n.OnHost())
				}
			}
		}
	}
	if count != 6 {
		t.Errorf("%d devices could be read anew", count)
	}
}

// TestTreeInPod: a pod takes a VF, and gives it back.
func TestTreeInPod(t *testing.T) {
	n, src := node(t)
	l := &life{t: t, r: pools(t, `{"resourceName":"a","selectors":{"isRdma":true,"linkTypes":["ether"],"rootDevices":["65:00.0"]}}`)}
	nobody, pod := map[string][]string{}, holding("intel.com/a", "0000:65:00.7")
	s := src.Look(nil)
	l.look(s, nobody)
	l.expect(`intel.com/a 0000:65:00.7`)
	if err := n.MoveToPod("0000:65:00.7", true); err != nil {
		t.Fatal(err)
	}
	s = src.Look(s)
	l.look(s, pod)
	l.expect(`intel.com/a 0000:65:00.7`)
	again := &life{t: t, r: l.r}
	again.look(src.Look(nil), pod)
	again.expect(`intel.com/a 0000:65:00.7`)
	l.look(s, nobody)
	l.expect(`intel.com/a 0000:65:00.7 HST008`)
	if err := n.MoveToHost("0000:65:00.7"); err != nil {
		t.Fatal(err)
	}
	l.look(src.Look(s), nobody)
	l.expect(`intel.com/a 0000:65:00.7`)
}

// TestHostInUse: what carries the host's traffic is not handed out. The old plugin does not
// notice it any more (D1), and never noticed IPv6, bonds and bridges.
func TestHostInUse(t *testing.T) {
	const all = `{"resourceName":"a","selectors":{"matchAll":true}`
	for _, tt := range []struct {
		what    string
		prepare func(*sim.Node) error
		config  string
		guarded string // the devices that are not declared
	}{
		{"default route", nil, all + `}`, "0000:01:00.0"},
		{"default route, and another pool", nil, `{"resourceName":"x","selectors":{"vendors":["abcd"]}},` + all + `}`, "0000:01:00.0"},
		{"allowed", nil, all + `,"allowHostInUse":true}`, ""},
		{"allowed in a later pool", nil, `{"resourceName":"x","selectors":{"vendors":["8086"]}},` + all + `,"allowHostInUse":true}`, ""},
		{"no default route", func(n *sim.Node) error { n.RemoveDefaultRoutes(); return nil }, all + `}`, ""},
		{"a VF by IPv6", func(n *sim.Node) error { n.AddDefaultRoute("ens1f0v0", "inet6"); return nil }, all + `}`, "0000:01:00.0 0000:65:00.2"},
		{"a bond", func(n *sim.Node) error {
			n.RemoveDefaultRoutes()
			n.SetMaster("ens1f1np1", "bond0")
			n.AddDefaultRoute("bond0", "inet")
			return n.AddLink("bond0", "bond")
		}, all + `}`, "0000:65:00.1"},
	} {
		n, src := node(t)
		if tt.prepare != nil {
			if err := tt.prepare(n); err != nil {
				t.Fatal(err)
			}
		}
		d := pools(t, tt.config).Declare(src.Look(nil), declare.Past{})
		got := ""
		for _, id := range []string{"0000:01:00.0", "0000:65:00.1", "0000:65:00.2", "0000:65:00.3", "0000:65:00.7"} {
			if !contains(d, "intel.com/a", id) {
				got += " " + id
			}
		}
		if got != "" {
			got = got[1:]
		}
		if got != tt.guarded {
			t.Errorf("%s: not declared are %s", tt.what, got)
		}
		if why := found(d, finding.HostInUse()); (why != "") != (tt.guarded != "") && tt.what != "allowed in a later pool" {
			t.Errorf("%s: %s", tt.what, why)
		}
		// The accelerators are of another type than the pool.
		if why := found(d, finding.NotSelected()); why != "HST043 0000:f7:00.0\nHST043 0000:f8:00.0\n" {
			t.Errorf("%s: of the network controllers a pool does select what nobody gets: %s", tt.what, why)
		}
	}
}

func contains(d declare.Declaration, resource, id string) bool {
	for _, r := range d.Resources {
		for i := range r.Devices {
			if r.Name == resource && r.Devices[i].ID == id {
				return true
			}
		}
	}
	return false
}

// TestUnknownUse: where the host's routes cannot be read, what has an interface is not free.
// What was read before counts for as long as it lasts.
func TestUnknownUse(t *testing.T) {
	_, src := node(t)
	links := src.Links
	src.Links = func() (*host.Links, error) { return nil, errors.New("list routes: no buffer space") }
	r := rules(t, `{"resourceList":[{"resourceName":"a","selectors":{"vendors":["15b3"]}}],"configList":[{"resourceName":"s","rdmaHcaMax":1,"allowHostInUse":false,"selectors":{"ifNames":["ens1f0v5"]}}]}`)
	s := src.Look(nil)
	d := r.Declare(s, declare.Past{})
	expect(t, d, `intel.com/a 0000:65:00.3
		intel.com/a 0000:65:00.4
		intel.com/a 0000:65:00.5 HST036
		intel.com/a 0000:65:00.6`)
	if got := found(d, finding.LinksUnknown()); got != "HST040 intel.com/a\nHST040 rdma/s\n" {
		t.Errorf("findings:\n%s", reasons(d.Findings))
	}
	src.Links = links
	s = src.Look(s)
	src.Links = func() (*host.Links, error) { return nil, errors.New("list routes: no buffer space") }
	d = r.Declare(src.Look(s), declare.Past{})
	if !contains(d, "intel.com/a", "0000:65:00.2") || !contains(d, "rdma/s", "0000:65:00.7::0") || found(d, finding.LinksUnknown()) != "" {
		t.Errorf("%s%s", told(d), reasons(d.Findings))
	}
}

// TestInUseLater: a device gets the host's default route after it was announced, as from DHCP
// (SDP#572).
func TestInUseLater(t *testing.T) {
	n, src := node(t)
	l := &life{t: t, r: pools(t, `{"resourceName":"a","selectors":{"pciAddresses":["65:00.2"]}}`)}
	s := src.Look(nil)
	l.look(s, nil)
	l.expect(`intel.com/a 0000:65:00.2`)
	n.AddDefaultRoute("ens1f0v0", "inet")
	s = src.Look(s)
	l.look(s, nil)
	l.expect(`intel.com/a 0000:65:00.2 HST006`)
	n.RemoveDefaultRoutes()
	l.look(src.Look(s), nil)
	l.expect(`intel.com/a 0000:65:00.2`)
}
