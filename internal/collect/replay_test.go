package collect_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/collect"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nic"
	"kata-device-plugin/internal/nicconfig"
	"kata-device-plugin/internal/sim"
)

// programs are the sources of the programs, as they fill them in.
func programs() map[string]func(host.Source) host.Source {
	return map[string]func(host.Source) host.Source{
		"kata-device-plugin": func(s host.Source) host.Source {
			s.Wanted, s.Links = declare.Passthrough().Wants, nil
			return s
		},
		"nic-device-plugin": func(s host.Source) host.Source {
			s.Wanted, s.Network = nic.Wants, nic.Wants
			return s
		},
		"kata-dra-driver": func(s host.Source) host.Source {
			s.Wanted, s.PCIeLink, s.Links = dra.Wants, dra.Wants, nil
			return s
		},
		"everything": func(s host.Source) host.Source {
			all := func(host.Identity) bool { return true }
			s.Network, s.PCIeLink = all, all
			return s
		},
	}
}

// replays holds what each program sees in a capture against what it sees on the node.
func (r *rig) replays(t *testing.T) *capture.Capture {
	t.Helper()
	c := r.capture(t)
	for name, fill := range programs() {
		live, replayed := fill(r.live(t)), fill(c.Tree().Source())
		want, got := live.Look(nil), replayed.Look(nil)
		if len(want.Functions) == 0 && name == "everything" {
			t.Errorf("%s sees no function at all", name)
		}
		if diff := cmp.Diff(want, got, r.compare()); diff != "" {
			t.Errorf("%s sees something else in the capture (-node +capture):\n%s", name, diff)
		}
		if want.Torn() != got.Torn() || want.Partial() != got.Partial() {
			t.Errorf("%s: torn %v, partial %v; on the node %v, %v", name, got.Torn(), got.Partial(), want.Torn(), want.Partial())
		}
		for _, f := range want.Functions {
			if diff := cmp.Diff(want.Uses(f.Address), got.Uses(f.Address)); diff != "" {
				t.Errorf("%s: %s is in another use:\n%s", name, f.Address, diff)
			}
			a, ok1 := live.Again(want, f.Address)
			b, ok2 := replayed.Again(got, f.Address)
			if diff := cmp.Diff(a, b, r.compare()); diff != "" || ok1 != ok2 {
				t.Errorf("%s: %s read again is something else (%v, %v):\n%s", name, f.Address, ok1, ok2, diff)
			}
		}
		if diff := cmp.Diff(r.decisions(t, want), r.decisions(t, got), r.compare(), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Errorf("%s: what is decided is something else (-node +capture):\n%s", name, diff)
		}
	}
	return c
}

// decisions are what the rules make of a snapshot.
func (r *rig) decisions(t *testing.T, s *host.Snapshot) []any {
	t.Helper()
	config, err := nicconfig.Parse("config.json", []byte(`{"resourceList":[
		{"resourceName":"vfio","selectors":{"drivers":["vfio-pci"]}},
		{"resourceName":"rdma","selectors":{"isRdma":true}},
		{"resourceName":"all","selectors":{"matchAll":true}}]}`), nicconfig.Options{})
	must(t, err)
	decided := []any{declare.Passthrough().Declare(s, declare.Past{}), dra.Take(s)}
	if s.Shared != nil {
		decided = append(decided, nic.New(config).Declare(s, declare.Past{}))
	}
	return decided
}

// TestPresets: of every simulated machine, each program sees in the capture what it sees there.
func TestPresets(t *testing.T) {
	for _, p := range append(sim.Platforms(), sim.Adapters()) {
		t.Run(p.Name, func(t *testing.T) {
			r := newRig(t, p)
			c := r.replays(t)
			text := written(t, c)
			t.Logf("%s: %d functions, %d entries, %d bytes", p.Name, len(r.Functions()), len(c.Entries()), len(text))
			if len(c.Missing) > 0 {
				t.Errorf("of a whole node there is missing %v", c.Missing)
			}
		})
	}
}

// TestOddNodes: the same where things are not as they should be.
func TestOddNodes(t *testing.T) {
	const gpu = "0000:01:00.0"
	for name, change := range map[string]func(t *testing.T, r *rig){
		"an attribute cannot be read":   func(t *testing.T, r *rig) { must(t, r.BreakAttribute(addr(t, gpu), "numa_node")) },
		"an identity cannot be read":    func(t *testing.T, r *rig) { must(t, r.BreakAttribute(addr(t, gpu), "vendor")) },
		"a link cannot be read":         func(t *testing.T, r *rig) { must(t, r.BreakAttribute(addr(t, gpu), "driver")) },
		"a group cannot be read":        func(t *testing.T, r *rig) { must(t, r.BreakAttribute(addr(t, gpu), "iommu_group")) },
		"an attribute makes no sense":   func(t *testing.T, r *rig) { must(t, r.SetAttribute(addr(t, gpu), "class", "what\tis = this\x00?\n")) },
		"an attribute of several lines": func(t *testing.T, r *rig) { must(t, r.SetAttribute(addr(t, gpu), "class", "a\n\nb")) },
		"an attribute is not there":     func(t *testing.T, r *rig) { must(t, r.RemoveAttribute(addr(t, gpu), "numa_node")) },
		"a function that left":          func(t *testing.T, r *rig) { must(t, r.RemoveAttribute(addr(t, gpu), "vendor")) },
		"strays": func(t *testing.T, r *rig) {
			must(t, r.PlaceFile("vfio77", "x"), r.PlaceDir("vfio78"), r.PlaceNode("vfio79", 0, 0), r.PlaceFile("a \"b\"\n", ""))
			_, err1 := r.AddMdev("83b8f4f2-509f-382f-3c1e-e6bfe0fa1001")
			_, err2 := r.AddPlatformDevice("fff51000.ethernet")
			must(t, err1, err2)
		},
		"a node that is a file": func(t *testing.T, r *rig) { must(t, r.RemovePlaced("vfio0"), r.PlaceFile("vfio0", "x")) },
		"no node":               func(t *testing.T, r *rig) { must(t, r.RemovePlaced("vfio0")) },
		"a stale mount":         func(t *testing.T, r *rig) { must(t, r.HideVFIO()) },
		"unbound":               func(t *testing.T, r *rig) { must(t, r.Unbind(addr(t, gpu))) },
		"unbound and busy":      func(t *testing.T, r *rig) { must(t, r.UnbindBusy(addr(t, gpu))) },
		"a fifo for a node": func(t *testing.T, r *rig) {
			must(t, unix.Mkfifo(r.Roots("test").VFIODevices()+"/vfio90", 0o600))
		},
		"no directory of the bus": func(t *testing.T, r *rig) {
			sys := r.Roots("test").Sys
			must(t, unix.Rename(sys+"/bus/pci/devices", sys+"/bus/pci/elsewhere"))
		},
		"a file for a class": func(t *testing.T, r *rig) {
			sys := r.Roots("test").Sys
			must(t, unix.Rename(sys+"/class/vfio-dev", sys+"/class/elsewhere"))
			r.write(t, "/sys/class/vfio-dev", "")
		},
		"a file for /dev/vfio": func(t *testing.T, r *rig) {
			must(t, unix.Rename(r.Roots("test").VFIO(), r.Roots("test").Dev+"/elsewhere"))
			r.write(t, "/dev/vfio", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, preset(t, "workstation"))
			change(t, r)
			r.replays(t)
		})
	}
}

// TestOddNICs: the same for what the NIC plugin reads.
func TestOddNICs(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, r *rig){
		"in a pod":       func(t *testing.T, r *rig) { must(t, r.MoveToPod("0000:65:00.7", true)) },
		"switchdev":      func(t *testing.T, r *rig) { must(t, r.SetSwitchdev(addr(t, "0000:65:00.0"), true)) },
		"no VFs":         func(t *testing.T, r *rig) { must(t, r.SetVFs(addr(t, "0000:65:00.0"), 0, "")) },
		"another route":  func(_ *testing.T, r *rig) { r.AddDefaultRoute("ens1f0v0", "inet6") },
		"net unreadable": func(t *testing.T, r *rig) { must(t, r.BreakAttribute(addr(t, "0000:65:00.0"), "sriov_totalvfs")) },
		"a bond": func(t *testing.T, r *rig) {
			must(t, r.AddLink("bond0", "bond"))
			r.SetMaster("ens1f1np1", "bond0")
			r.AddDefaultRoute("bond0", "inet")
		},
		"vdpa and a subfunction": func(t *testing.T, r *rig) {
			_, err := r.AddSF(addr(t, "0000:65:00.0"), sim.SF{ID: 4, Number: 88, NIC: &sim.NIC{Interfaces: []sim.Interface{{Name: "sf88"}}}})
			must(t, err, r.AddVDPA(addr(t, "0000:65:00.2"), "vdpa0", "vhost_vdpa"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, sim.Adapters())
			change(t, r)
			r.replays(t)
		})
	}
}

// TestWithoutNames: a capture without names shows the same hardware.
func TestWithoutNames(t *testing.T) {
	for _, p := range append(sim.Platforms(), sim.Adapters()) {
		r := newRig(t, p)
		c := r.capture(t)
		redacted := again(t, capture.Redact(c, []byte("salt")))
		everything := programs()["everything"]
		want, got := everything(c.Tree().Source()).Look(nil), everything(redacted.Tree().Source()).Look(nil)
		for _, s := range []*host.Snapshot{want, got} {
			for i := range s.Functions {
				for k := range s.Functions[i].Network.Interfaces {
					s.Functions[i].Network.Interfaces[k].SwitchID = "" // may be made of a serial number
				}
			}
		}
		if diff := cmp.Diff(want, got, r.compare()); diff != "" {
			t.Errorf("%s (-with names +without):\n%s", p.Name, diff)
		}
	}
}

// TestDirectory: a directory with a node's files is looked at as the node is.
func TestDirectory(t *testing.T) {
	for _, name := range []string{"hgx-h100", "sriov-cpu"} {
		r := newRig(t, preset(t, name))
		tree, err := capture.Open(r.root)
		must(t, err)
		for program, fill := range programs() {
			live, replayed := fill(r.live(t)), fill(tree.Source())
			live.Links, replayed.Links = nil, nil // a directory has none
			if diff := cmp.Diff(live.Look(nil), replayed.Look(nil), r.compare()); diff != "" {
				t.Errorf("%s sees something else in the directory (-node +directory):\n%s", program, diff)
			}
		}
	}
}

// TestNoLinks: where netlink could not be asked, or said nothing, a capture does not say that
// nothing is in the host's use.
func TestNoLinks(t *testing.T) {
	for _, links := range []func() (*host.Links, error){nil, func() (*host.Links, error) { return nil, unix.ENOBUFS }} {
		r := newRig(t, sim.Adapters())
		o := r.options()
		o.Links = links
		c, err := collect.Node(t.Context(), o)
		must(t, err)
		s := programs()["nic-device-plugin"](again(t, c).Tree().Source()).Look(nil)
		if s.LinksErr == nil || links != nil && s.LinksErr.Error() != "no buffer space available" {
			t.Errorf("links: %v", s.LinksErr)
		}
	}
}
