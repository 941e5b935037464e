package inventory_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/sim"
)

// TestReasons changes a machine, and wants to be told of it: what became of the function,
// where that can be seen, what is there, and what to do.
func TestReasons(t *testing.T) {
	const gpu = "0000:53:00.0"
	driver := func(a string) string { return "/sys/bus/pci/devices/" + a + "/driver" }
	for _, tt := range []struct {
		name, platform, subject string
		change                  func(*testing.T, *sim.Node) error
		rules                   string
		state                   inventory.State
		id, path, value, remedy string
	}{{
		name: "unbound", platform: "hgx-h100", subject: gpu, state: inventory.NotDeclared,
		change: func(t *testing.T, n *sim.Node) error { return n.Unbind(addr(t, gpu)) },
		id:     "HST020", path: driver(gpu), value: "none", remedy: "bind it to its VFIO driver on the host",
	}, {
		name: "bound to nvidia", platform: "hgx-h100", subject: gpu, state: inventory.NotDeclared,
		change: func(t *testing.T, n *sim.Node) error {
			return errors.Join(n.Unbind(addr(t, gpu)), n.Bind(addr(t, gpu), "nvidia"))
		},
		id: "HST020", path: driver(gpu), value: "nvidia", remedy: "bind it to its VFIO driver on the host",
	}, {
		name: "non-viable group", platform: "workstation", subject: "0000:01:00.0", state: inventory.Unhealthy,
		change: func(t *testing.T, n *sim.Node) error {
			audio := addr(t, "0000:01:00.1")
			return errors.Join(n.Unbind(audio), n.Bind(audio, "snd_hda_intel"))
		},
		id: "HST002", path: driver("0000:01:00.1"), value: "snd_hda_intel", remedy: "bind the companion to vfio-pci",
	}, {
		name: "unreadable", platform: "hgx-h100", subject: gpu, state: inventory.NotDeclared,
		change: func(t *testing.T, n *sim.Node) error { return n.BreakAttribute(addr(t, gpu), "class") },
		id:     "HST031", path: "read /sys/devices/pci0000:50", remedy: "look at the kernel log for the device",
	}, {
		name: "no IOMMU", platform: "hgx-h100", subject: gpu, state: inventory.NotDeclared,
		change: func(t *testing.T, n *sim.Node) error {
			return errors.Join(n.Unbind(addr(t, gpu)), n.Remove(addr(t, gpu)),
				n.Add(sim.Function{Path: "pci0000:50/0000:50:01.0/0000:51:00.0/0000:52:00.0/" + gpu, Vendor: 0x10de, Device: 0x2330, Class: 0x030200, NUMA: 0}),
				n.AddNoIOMMU(addr(t, gpu)))
		},
		id: "HST022", path: "/sys/class/vfio-dev/noiommu-vfio", remedy: "switch the IOMMU on",
	}, {
		name: "PF with VFs", platform: "rtx-pro-6000", subject: "0000:41:00.0", state: inventory.Unhealthy,
		change: func(t *testing.T, n *sim.Node) error { return n.SetVFs(addr(t, "0000:41:00.0"), 3, "vfio-pci") },
		id:     "HST029", path: "/sys/bus/pci/devices/0000:41:00.0/sriov_numvfs", value: "3", remedy: "write 0 to sriov_numvfs",
	}, {
		name: "VF", platform: "rtx-pro-6000", subject: "0000:41:00.5", state: inventory.NotDeclared,
		change: func(t *testing.T, n *sim.Node) error { return n.SetVFs(addr(t, "0000:41:00.0"), 3, "vfio-pci") },
		id:     "HST023", path: "/sys/bus/pci/devices/0000:41:00.5/physfn", value: "0000:41:00.0", remedy: "only whole devices",
	}, {
		name: "stray name", platform: "hgx-h100", subject: "notes.txt",
		change: func(_ *testing.T, n *sim.Node) error { return n.PlaceFile("notes.txt", "") },
		id:     "HST025", path: "/dev/vfio/devices/notes.txt", remedy: "remove it",
	}, {
		name: "stray node", platform: "hgx-h100", subject: "vfio99",
		change: func(_ *testing.T, n *sim.Node) error { return n.PlaceFile("vfio99", "") },
		id:     "HST026", path: "/dev/vfio/devices/vfio99", remedy: "remove it and bind the function anew",
	}, {
		name: "mediated device", platform: "hgx-h100", subject: "vfio12",
		change: func(_ *testing.T, n *sim.Node) error {
			_, err := n.AddMdev("0b5c4a52-6f0e-4d0c-9a57-3d0a8a4c1f10")
			return err
		},
		id: "HST024", path: "/sys/devices/virtual/mtty/mtty/0b5c4a52", value: "the parent is no PCI function", remedy: "only PCI functions are declared",
	}, {
		name: "no node", platform: "hgx-h100", subject: gpu, state: inventory.NotDeclared,
		change: func(_ *testing.T, n *sim.Node) error { return n.RemovePlaced("vfio4") },
		id:     "HST028", path: "no node /dev/vfio/devices/vfio4", remedy: "wait",
	}, {
		name: "another mount", platform: "hgx-h100", subject: "",
		change: func(_ *testing.T, n *sim.Node) error { return n.HideVFIO() },
		id:     "HST033", path: "/dev/vfio/devices", value: "without vfio0", remedy: "restart the pod",
	}, {
		name: "the host's NIC", platform: "sriov-cpu", subject: "0000:01:00.0", state: inventory.NotDeclared,
		rules: `{"resourceList": [{"resourceName": "onboard", "selectors": {"drivers": ["igb"]}}]}`,
		id:    "HST006", path: "default route", value: "inet, table 254, on eno1", remedy: "nothing, if it is the host's own NIC",
	}, {
		name: "NIC of no pool", platform: "sriov-cpu", subject: "0000:b1:00.5", state: inventory.NotDeclared,
		rules: `{"resourceList": [{"resourceName": "dpdk", "selectors": {"drivers": ["vfio-pci"]}}]}`,
		id:    "HST043", path: "intel.com/dpdk drivers", value: "none", remedy: "nothing, if it is not meant for pods",
	}, {
		name: "PF of VFs", platform: "sriov-cpu", subject: "0000:31:00.0", state: inventory.NotDeclared,
		rules: `{"resourceList": [{"resourceName": "e810", "selectors": {"vendors": ["8086"]}}]}`,
		id:    "HST039", path: "/sys/bus/pci/devices/0000:31:00.0/virtfn0", value: "0000:31:01.0", remedy: "write 0 to sriov_numvfs",
	}} {
		t.Run(tt.name, func(t *testing.T) {
			n, src := node(t, platform(t, tt.platform))
			if tt.change != nil {
				must(t, tt.change(t, n))
			}
			var in inventory.Input
			if tt.rules != "" {
				in.NICs = rules(t, tt.rules)
			}
			i := take(t, src, in)
			found := i.Findings
			if k := function(i, tt.subject); k >= 0 {
				found = i.Functions[k].Why()
				if i.Functions[k].State != tt.state {
					t.Errorf("%s is %s, want %s", tt.subject, i.Functions[k].State, tt.state)
				}
			}
			k := slices.IndexFunc(found, func(f inventory.Finding) bool { return f.ID == tt.id && f.Device == tt.subject })
			if k < 0 {
				t.Fatalf("no %s about %q: %+v", tt.id, tt.subject, found)
			}
			e := found[k].Evidence[0]
			if !strings.Contains(found[k].Remedy, tt.remedy) {
				t.Errorf("remedy %q, want %q", found[k].Remedy, tt.remedy)
			}
			if !strings.HasPrefix(e.Path, tt.path) || tt.value != "" && e.Value != tt.value {
				t.Errorf("evidence %+v, want %s = %s", e, tt.path, tt.value)
			}
			shown(t, i, found[k])
			roundTrip(t, i)
		})
	}
}

// shown: every format for people says what is the case and what to do, and those that are not
// short all of it.
func shown(t *testing.T, i *inventory.Inventory, f inventory.Finding) {
	t.Helper()
	for _, format := range []inventory.Format{inventory.Table, inventory.Wide, inventory.Tree} {
		text := write(t, i, format, inventory.Options{})
		want := []string{f.ID, f.Title, f.Device, f.Remedy}
		if format != inventory.Table {
			want = append(want, f.Evidence[0].Path, " = "+f.Evidence[0].Value)
		}
		for _, want := range want {
			if !strings.Contains(text, strings.TrimSuffix(want, " = ")) {
				t.Errorf("%s does not say %q:\n%s", format, want, text)
			}
		}
	}
}

// function finds a function by its address, -1 for none.
func function(i *inventory.Inventory, address string) int {
	return slices.IndexFunc(i.Functions, func(f inventory.Function) bool { return f.Address.String() == address })
}

// TestLinksUnknown: the rules say of a pool, not of each function, that it is not known which
// interfaces the host uses.
func TestLinksUnknown(t *testing.T) {
	_, src := node(t, platform(t, "sriov-cpu"))
	src.Links = func() (*host.Links, error) { return nil, errors.New("no netlink here") }
	i := take(t, src, inventory.Input{NICs: rules(t, `{"resourceList": [{"resourceName": "onboard", "selectors": {"drivers": ["igb"]}}]}`)})
	f := i.Functions[function(i, "0000:01:00.0")]
	if f.State != inventory.NotDeclared || !slices.Equal(f.Reasons(), []string{"HST040"}) || f.Findings[0].Evidence[0].Path != "no netlink here" {
		t.Errorf("%s for %v", f.State, f.Findings)
	}
	if !i.Partial {
		t.Error("want the inventory to say that something could not be read")
	}
}

// TestNoRules: without a configuration of NICs nobody can say whether one is declared, and
// the GPUs are what they are with it.
func TestNoRules(t *testing.T) {
	_, src := node(t, platform(t, "hgx-h100"))
	with, without := take(t, src, inventory.Input{NICs: rules(t, network)}), take(t, src, inventory.Input{})
	for k, f := range without.Functions {
		if f.Type == inventory.NIC {
			want := inventory.Evidence{Path: "/sys/bus/pci/devices/" + f.Address.String() + "/class", Value: f.Class}
			if f.State != inventory.NotOurs || len(f.Evidence) != 1 || f.Evidence[0] != want {
				t.Errorf("%s is %s for %v", f.Address, f.State, f.Evidence)
			}
		} else if f.State != inventory.Healthy || with.Functions[k].State != inventory.Healthy {
			t.Errorf("%s is %s, and with rules for NICs %s", f.Address, f.State, with.Functions[k].State)
		}
	}
	if !without.Lacks(inventory.UnknownRules) || with.Lacks(inventory.UnknownRules) {
		t.Errorf("unknown is %v, and with rules %v", without.Unknown, with.Unknown)
	}
	const hint = "without the configuration of nic-device-plugin"
	if !strings.Contains(write(t, without, inventory.Table, inventory.Options{}), hint) ||
		strings.Contains(write(t, with, inventory.Table, inventory.Options{}), hint) {
		t.Error("want the hint about the configuration where there is none, and only there")
	}
}

// silent are rules that have no word about anything.
type silent struct{ declare.Rules }

func (silent) Declare(*host.Snapshot, declare.Past) declare.Declaration { return declare.Declaration{} }

// TestSilentRules: where the rules have no word about a candidate, none is invented.
func TestSilentRules(t *testing.T) {
	_, src := node(t, platform(t, "sriov-cpu"))
	i := take(t, src, inventory.Input{NICs: silent{}})
	f := i.Functions[function(i, "0000:01:00.0")]
	if f.State != inventory.NotDeclared || len(f.Findings) > 0 {
		t.Errorf("%s for %v", f.State, f.Findings)
	}
	for _, format := range []inventory.Format{inventory.Table, inventory.Tree} {
		if text := write(t, i, format, inventory.Options{}); !strings.Contains(text, "No rule has a reason why it is not declared") {
			t.Errorf("%s is silent too:\n%s", format, text)
		}
	}
}

// TestKnown: what nobody told is not "none".
func TestKnown(t *testing.T) {
	const gpu, other = "0000:53:00.0", "0000:64:00.0"
	_, src := node(t, platform(t, "hgx-h100"))
	holder := inventory.Holder{Namespace: "ml", Pod: "train-0", Container: "main", Resource: "nvidia.com/gpu"}
	elsewhere := inventory.Holder{Namespace: "ml", Pod: "train-2", Resource: "example.com/gpu"}
	claim := inventory.Holder{Namespace: "ml", Pod: "train-1", Claim: "gpu"}
	i := take(t, src, inventory.Input{
		Holders: map[string][]inventory.Holder{gpu: {claim, elsewhere, holder}},
		CDI: map[string]inventory.CDI{
			gpu:   {Name: "nvidia.com/gpu=" + gpu, State: inventory.CDIResolves, Spec: "/var/run/cdi/kata.nvidia.com-gpu.json"},
			other: {Name: "nvidia.com/gpu=" + other, State: inventory.CDIMissing},
		},
	})
	text := write(t, i, inventory.Wide, inventory.Options{})
	for line := range strings.Lines(text) {
		var want string
		switch {
		case strings.HasPrefix(line, gpu):
			want = "ok       ml/train-0/main,ml/train-1 by claim gpu,ml/train-2\n" // whatever another plugin calls it
		case strings.HasPrefix(line, other):
			want = "missing  -\n"
		case strings.HasPrefix(line, "0000:75:00.0"):
			want = "-        -\n" // nobody offers it
		}
		if !strings.HasSuffix(line, want) {
			t.Errorf("%q, want %q at its end", line, want)
		}
	}
	roundTrip(t, i)
	blind := take(t, src, inventory.Input{})
	if text := write(t, blind, inventory.Wide, inventory.Options{}); !strings.Contains(text, "?    ?\n") || strings.Contains(text, "train-0") {
		t.Errorf("want unknown holders and CDI:\n%s", text)
	}
	if !blind.Lacks(inventory.UnknownHolders) || !blind.Lacks(inventory.UnknownCDI) || i.Lacks(inventory.UnknownHolders) || i.Lacks(inventory.UnknownCDI) {
		t.Errorf("unknown is %v, and with all %v", blind.Unknown, i.Unknown)
	}
}

// TestHeldUndeclared: a container keeps what it has, whatever has become of the device.
func TestHeldUndeclared(t *testing.T) {
	const gpu = "0000:53:00.0"
	n, src := node(t, platform(t, "hgx-h100"))
	if err := n.Unbind(addr(t, gpu)); err != nil {
		t.Fatal(err)
	}
	holder := inventory.Holder{Namespace: "ml", Pod: "train-0", Container: "main", Resource: "nvidia.com/gpu"}
	i := take(t, src, inventory.Input{Holders: map[string][]inventory.Holder{gpu: {holder}}})
	if f := i.Functions[function(i, gpu)]; f.State != inventory.NotDeclared || !slices.Equal(f.Holders(), []inventory.Holder{holder}) {
		t.Errorf("%s, held by %v", f.State, f.Holders())
	}
	for line := range strings.Lines(write(t, i, inventory.Wide, inventory.Options{})) {
		if strings.HasPrefix(line, gpu) != strings.HasSuffix(line, "  ml/train-0/main\n") {
			t.Errorf("%q", line)
		}
	}
	roundTrip(t, i)
}

// TestLinksNotAsked: a captured tree does not say what the host's own traffic takes, so that
// what is declared may be more than on the node.
func TestLinksNotAsked(t *testing.T) {
	_, src := node(t, platform(t, "sriov-cpu"))
	config := rules(t, `{"resourceList": [{"resourceName": "onboard", "selectors": {"drivers": ["igb"]}}]}`)
	const hint = "Which network controllers the host uses itself is not known here"
	for _, known := range []bool{true, false} {
		if !known {
			src.Links = nil
		}
		i := take(t, src, inventory.Input{NICs: config})
		if i.Lacks(inventory.UnknownLinks) == known || strings.Contains(write(t, i, inventory.Table, inventory.Options{}), hint) == known {
			t.Errorf("links known %v: unknown is %v", known, i.Unknown)
		}
	}
}

// TestToldOnce: two programs' rules find the same where something cannot be read.
func TestToldOnce(t *testing.T) {
	n, src := node(t, platform(t, "hgx-h100"))
	must(t, n.BreakAttribute(addr(t, "0000:53:00.0"), "class"))
	i := take(t, src, inventory.Input{NICs: rules(t, network)})
	if f := i.Functions[function(i, "0000:53:00.0")]; len(f.Findings) != 1 || f.Type != inventory.UnknownType || f.Class != "" {
		t.Errorf("%s of class %q with %+v", f.Type, f.Class, f.Findings)
	}
}

// TestHeld: what a pod has in its own network namespace is its resource's, if it is known who
// has it.
func TestHeld(t *testing.T) {
	const vf = "0000:65:00.7"
	n, src := node(t, platform(t, "adapters"))
	must(t, n.MoveToPod(vf, true))
	config := rules(t, `{"resourceList": [{"resourceName": "hca", "resourcePrefix": "rdma", "selectors": {"isRdma": true}}]}`)
	blind := take(t, src, inventory.Input{NICs: config})
	if f := blind.Functions[function(blind, vf)]; f.State != inventory.NotDeclared || !slices.Equal(f.Reasons(), []string{"HST043"}) {
		t.Errorf("%s for %v where nobody knows", f.State, f.Reasons())
	}
	holder := inventory.Holder{Namespace: "ml", Pod: "train-0", Container: "main", Resource: "rdma/hca"}
	i := take(t, src, inventory.Input{NICs: config, Holders: map[string][]inventory.Holder{vf: {holder}}})
	if f := i.Functions[function(i, vf)]; f.State != inventory.Healthy || !slices.Equal(f.Holders(), []inventory.Holder{holder}) {
		t.Errorf("%s for %v, held by %v", f.State, f.Reasons(), f.Holders())
	}
}

// TestManyVFs: a PF with 128 VFs is not 128 lines of a tree, and none of them is forgotten.
func TestManyVFs(t *testing.T) {
	p := platform(t, "sriov-cpu")
	for k := range p.Functions {
		if f := &p.Functions[k]; len(f.VFs) > 0 && f.Vendor == 0x8086 && f.Address().Function == 0 {
			f.VFs, f.VFOffset = nil, 8
			for v := range 128 {
				f.VFs = append(f.VFs, sim.VF{Driver: []string{"vfio-pci", "iavf"}[v%2]})
			}
		} else {
			f.VFs, f.TotalVFs = nil, 0
		}
	}
	n, src := node(t, p)
	must(t, n.Unbind(addr(t, "0000:31:01.3")))
	i := take(t, src, inventory.Input{NICs: rules(t, network)})
	text := write(t, i, inventory.Tree, inventory.Options{})
	golden.Assert(t, text, "vfs.tree")
	if lines := strings.Count(text, "\n"); lines > 60 {
		t.Errorf("%d lines:\n%s", lines, text)
	}
	listed := strings.Fields(write(t, i, inventory.Name, inventory.Options{}))
	if len(listed) != len(i.Functions) || !slices.Contains(listed, "0000:31:10.7") || i.Functions[0].Address.String() != listed[0] {
		t.Errorf("names: %v", listed)
	}
}

func BenchmarkInventory(b *testing.B) {
	_, src := node(b, sim.Many(2048))
	s := src.Look(nil)
	i := inventory.New(s, inventory.Input{Name: names})
	if i.Counts.Healthy != 2048 {
		b.Fatalf("%+v", i.Counts)
	}
	b.Run("New", func(b *testing.B) {
		for b.Loop() {
			inventory.New(s, inventory.Input{Name: names})
		}
	})
	for _, f := range inventory.Formats() {
		b.Run(string(f), func(b *testing.B) {
			for b.Loop() {
				write(b, i, f, inventory.Options{Width: 120})
			}
		})
	}
}
