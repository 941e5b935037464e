package dradriver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sim/simtest"
)

const (
	gpuA = "0000:53:00.0"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// look is what a platform has, after a change.
func look(t *testing.T, platform string, change func(*sim.Node)) *dra.Inventory {
	t.Helper()
	n, _ := simtest.Node(t, simtest.Preset(t, platform))
	if change != nil {
		change(n)
	}
	src := simtest.Source(t, n)
	src.Wanted = dra.Wants
	return dra.Take(src.Look(nil))
}

func address(t *testing.T, s string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(s)
	must(t, err)
	return a
}

// told is what an offer comes to, in a line: what is published and with which taints, or why not.
func told(o *offer) string {
	line := o.device.Name
	if o.held {
		line += " held"
	}
	if o.unpublished != nil {
		return line + " unpublished " + o.unpublished.ID
	}
	for _, taint := range o.taints() {
		line += fmt.Sprintf(" %s=%s", strings.TrimPrefix(taint.Key, dra.Driver+"/"), taint.Value)
	}
	return line
}

// TestOffers: what becomes of one GPU of eight, with and without an API server that keeps taints.
func TestOffers(t *testing.T) {
	const name = "gpu-0000-53-00-0"
	held := []claim.Record{{UID: "u1", Devices: []claim.Device{{Name: name}}}}
	admin := []claim.Record{{UID: "u1", Devices: []claim.Device{{Name: name, Admin: true}}}}
	unbind := func(n *sim.Node) { must(t, n.Unbind(address(t, gpuA))) }
	for _, c := range []struct {
		name             string
		change           func(*sim.Node)
		world            world
		tainted, without string // "" for not there at all
	}{
		{"all is well", nil, world{}, name, name},
		{"held", nil, world{records: held}, name + " held", name + " held"},
		{"admin access", nil, world{records: admin}, name, name},
		{"unbound", unbind, world{}, "", ""},
		{"unbound while held", unbind, world{records: held}, name + " held unhealthy=HST020", name + " held"},
		{"a device plugin's", nil, world{plugged: map[string]string{gpuA: "a pod's"}}, name + " held-by-device-plugin=DRA006", name + " unpublished DRA006"},
		{"a device plugin's, and held", nil, world{plugged: map[string]string{gpuA: "a pod's"}, records: held},
			name + " held held-by-device-plugin=DRA006", name + " held"},
		{"of a damaged record", nil, world{withheld: map[string]string{gpuA: "torn"}}, name + " withheld=DRA015", name + " unpublished DRA015"},
		{"both", nil, world{withheld: map[string]string{gpuA: "torn"}, plugged: map[string]string{gpuA: "a pod's"}},
			name + " held-by-device-plugin=DRA006 withheld=DRA015", name + " unpublished DRA006"},
		{"another's type", nil, world{refused: map[dra.Type]finding.Finding{dra.GPU: finding.New(finding.HeldElsewhere(), "")}},
			name + " unpublished PLG018", name + " unpublished PLG018"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := map[string]*dra.Device{}
			whole := look(t, "hgx-h100", nil)
			for i := range whole.Devices {
				before[whole.Devices[i].Name] = &whole.Devices[i]
			}
			w := c.world
			w.inventory, w.before = look(t, "hgx-h100", c.change), before
			for tainted, want := range map[bool]string{true: c.tainted, false: c.without} {
				w.tainted = tainted
				offers := w.offers()
				if got := one(offers, name, tainted); got != want {
					t.Errorf("with taints %v: %q, want %q", tainted, got, want)
				}
				if !slices.IsSortedFunc(offers, func(a, b offer) int { return a.device.Function.Address.Compare(b.device.Function.Address) }) {
					t.Error("they are not sorted")
				}
			}
		})
	}
}

// one is what becomes of one device.
func one(offers []offer, name string, tainted bool) string {
	for i := range offers {
		o := offers[i]
		if o.device.Name != name {
			continue
		}
		if !tainted {
			for _, p := range published(offers, tainted) {
				if len(p.Taints) > 0 {
					return "tainted"
				}
			}
			if o.unpublished == nil {
				o.against = nil
			}
		}
		return told(&o)
	}
	return ""
}

// TestOffersOfUnknown: a device that a claim has, and that was never seen in this life, cannot be
// published.
func TestOffersOfUnknown(t *testing.T) {
	inventory := look(t, "hgx-h100", func(n *sim.Node) { must(t, n.Remove(address(t, gpuA))) })
	w := world{inventory: inventory, tainted: true, records: []claim.Record{{UID: "u1", Devices: []claim.Device{{Name: "gpu-0000-53-00-0"}}}}}
	for _, o := range w.offers() {
		if o.device.Name == "gpu-0000-53-00-0" {
			t.Errorf("%+v", o)
		}
	}
}
