package check_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/collect"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/nic"
	"kata-device-plugin/internal/nodeview"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sim/simtest"
)

// simulated is a capture of a simulated node, as kubectl device snapshot writes it.
func simulated(t *testing.T, p sim.Platform, change func(*sim.Node)) *capture.Capture {
	t.Helper()
	n, root := simtest.Node(t, p)
	if change != nil {
		change(n)
	}
	c, err := collect.Node(t.Context(), collect.Options{Root: root, Hostname: "n1", Time: time.Unix(1e9, 0), Links: n.Links})
	must(t, err)
	var text bytes.Buffer
	_, err = c.WriteTo(&text)
	must(t, err)
	read, err := capture.Read(&text)
	must(t, err)
	return read
}

// ofHardware are the findings that the inventory of a capture has, as ID and evidence.
func ofHardware(c *capture.Capture) []string {
	wanted := func(id host.Identity) bool { return declare.Passthrough().Wants(id) || nic.Wants(id) }
	source := c.Tree().Source()
	source.Wanted, source.Network, source.PCIeLink = wanted, nic.Wants, wanted
	inv := inventory.New(source.Look(nil), inventory.Input{})
	var all []string
	add := func(fs []inventory.Finding) {
		for _, f := range fs {
			all = append(all, f.ID+" "+f.Device)
		}
	}
	add(inv.Findings)
	for i := range inv.Functions {
		add(inv.Functions[i].Why())
	}
	slices.Sort(all)
	return all
}

// TestSimulatedNodes: of every simulated machine a check says what the inventory says, no more and
// no less, and all that is asked of hardware could be asked.
func TestSimulatedNodes(t *testing.T) {
	for _, p := range append(sim.Platforms(), sim.Adapters()) {
		t.Run(p.Name, func(t *testing.T) {
			c := simulated(t, p, nil)
			var got []string
			r := check.Run(empty(t), check.Options{Enable: []string{"HST"}, Nodes: []check.NodeInput{{File: "n", Capture: c}}})
			for _, f := range r.Findings {
				device := ""
				if before, _, ok := bytes.Cut([]byte(f.Message), []byte(" of node")); ok {
					device = string(before)
				}
				got = append(got, f.ID+" "+device)
			}
			slices.Sort(got)
			if diff := cmp.Diff(ofHardware(c), got); diff != "" {
				t.Errorf("(-inventory +check):\n%s", diff)
			}
			for _, s := range r.Skipped { // what rules of NICs say is known with their configuration
				if !strings.Contains(strings.Join(s.Missing, " "), "nic-device-plugin") {
					t.Errorf("of a whole capture %v is skipped", s)
				}
			}
		})
	}
}

// TestNoKubelet: a simulated node has no kubelet, and that its socket is missing says nothing. Where
// kubelet has run, it does.
func TestNoKubelet(t *testing.T) {
	p, err := sim.PlatformByName("workstation")
	must(t, err)
	judge := func(c *capture.Capture) *check.Result {
		return check.Run(empty(t), check.Options{Nodes: []check.NodeInput{{File: "n", Capture: c}}})
	}
	c := simulated(t, p, nil)
	r := judge(c)
	for _, f := range r.Findings {
		if f.Severity == finding.Error {
			t.Errorf("of a simulated node it is said: %s %s", f.ID, f.Message)
		}
	}
	if !slices.ContainsFunc(r.Skipped, func(s check.Skipped) bool { return s.ID == "PLG002" }) {
		t.Error("PLG002 has not been skipped")
	}
	c.Add(capture.Entry{Path: "/var/lib/kubelet/plugins_registry", Kind: capture.Dir})
	if !slices.ContainsFunc(judge(c).Findings, func(f check.Finding) bool { return f.ID == "PLG002" }) {
		t.Error("kubelet has made its directory of plugins, and nobody misses its socket")
	}
}

// TestPartOfNode: what a capture does not have is skipped, with the name of what is missing, and
// has neither passed nor failed.
func TestPartOfNode(t *testing.T) {
	p, err := sim.PlatformByName("workstation")
	must(t, err)
	whole := simulated(t, p, nil)
	lost := capture.New(whole.Meta)
	for _, e := range whole.Entries() {
		if filepath.Base(e.Path) != "numa_node" {
			lost.Add(*e)
		}
	}
	for name, nodes := range map[string][]check.NodeInput{
		"no node":        nil,
		"an empty one":   {{File: "n", Capture: capture.New(capture.Meta{Hostname: "n1"})}},
		"an absent one":  {{File: "n"}},
		"with a part":    {{File: "n", Capture: lost}},
		"two, with none": {{Capture: lost}, {Capture: capture.New(capture.Meta{})}},
	} {
		r := check.Run(empty(t), check.Options{Enable: []string{"HST", "TOP", "MAP"}, Nodes: nodes})
		if len(r.Findings)+len(r.Passed) > 0 {
			t.Errorf("%s: found %v, passed %v", name, found(r), r.Passed)
		}
		for _, s := range r.Skipped {
			if len(s.Missing) == 0 {
				t.Errorf("%s: %s is skipped for no reason", name, s.ID)
			}
		}
	}
}

func empty(t *testing.T) *manifest.Set {
	t.Helper()
	set, err := manifest.Load(nil, manifest.Options{})
	must(t, err)
	return set
}

// TestSpecsAsInventory: what a check says of the spec of a device, the inventory says of its CDI name.
func TestSpecsAsInventory(t *testing.T) {
	p, err := sim.PlatformByName("workstation")
	must(t, err)
	for name, tt := range map[string]struct {
		edit  string // of the spec
		with  string
		mode  uint32
		id    string
		state inventory.CDIState
	}{
		"as it should be": {mode: 0o644, state: inventory.CDIResolves},
		"no number":       {edit: `, "major": MAJOR, "minor": MINOR`, mode: 0o644, state: inventory.CDIResolves},
		"another minor":   {edit: `"minor": MINOR`, with: `"minor": 77`, mode: 0o644, id: "CDI009", state: inventory.CDIDiffers},
		"another major":   {edit: `"major": MAJOR`, with: `"major": 7`, mode: 0o644, id: "CDI009", state: inventory.CDIDiffers},
		"no such node":    {edit: "/dev/vfio/devices/NODE", with: "/dev/vfio/devices/gone", mode: 0o644, id: "CDI009", state: inventory.CDIDiffers},
		"private":         {mode: 0o600, id: "CDI016", state: inventory.CDIUnreadable},
		"its group's":     {mode: 0o640, id: "CDI016", state: inventory.CDIUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			c := simulated(t, p, nil)
			f := gpuOf(t, c)
			text := strings.Replace(`{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [{"name": "ADDRESS", "containerEdits": `+
				`{"deviceNodes": [{"path": "/dev/vfio/devices/NODE", "major": MAJOR, "minor": MINOR}]}}]}`, tt.edit, tt.with, 1)
			text = strings.NewReplacer("ADDRESS", f.Address.String(), "NODE", f.Cdev.Name, "MAJOR", strconv.Itoa(int(f.Cdev.Major)),
				"MINOR", strconv.Itoa(int(f.Cdev.Minor))).Replace(text)
			c.Add(capture.Entry{Path: "/etc/cdi", Kind: capture.Absent})
			c.Add(capture.Entry{Path: "/var/run/cdi", Kind: capture.Dir, Names: []string{"kata.json"}})
			c.Add(capture.Entry{Path: "/var/run/cdi/kata.json", Kind: capture.File, Text: []byte(text), Perm: &capture.Perm{Mode: tt.mode}})
			r := check.Run(empty(t), check.Options{Enable: []string{"CDI"}, Nodes: []check.NodeInput{{File: "n", Capture: c}}})
			var ids []string
			for _, f := range r.Findings {
				ids = append(ids, f.ID)
			}
			if got := strings.Join(ids, " "); got != tt.id {
				t.Errorf("check says %q, want %q", got, tt.id)
			}
			if got := cdiState(c, f.Address.String()); got != tt.state {
				t.Errorf("the inventory says %q, want %q", got.Word(), tt.state.Word())
			}
		})
	}
}

// gpuOf is a GPU of a captured node that a plugin offers.
func gpuOf(t *testing.T, c *capture.Capture) host.Function {
	t.Helper()
	source := c.Tree().Source()
	source.Wanted = declare.Passthrough().Wants
	s := source.Look(nil)
	for _, r := range declare.Passthrough().Declare(s, declare.Past{}).Resources {
		for _, d := range r.Devices {
			for _, f := range s.Functions {
				if f.Address.String() == d.ID && f.Cdev != nil {
					return f
				}
			}
		}
	}
	t.Fatal("the node has no GPU")
	return host.Function{}
}

// cdiState is what the inventory of a capture says of the CDI name of a device.
func cdiState(c *capture.Capture, id string) inventory.CDIState {
	source := c.Tree().Source()
	source.Wanted = declare.Passthrough().Wants
	s := source.Look(nil)
	state := nodeview.Join(nodeview.Sources{Hardware: s, Files: c.FS(), Dev: c.Dev(), Kubelet: nodeview.Silent(capture.ErrNotCaptured)})
	var in inventory.Input
	nodeview.Add(&in, state, 0)
	return in.CDI[id].State
}
