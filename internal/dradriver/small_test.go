package dradriver

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/sim"
)

// TestSaid: what takes turns is said once, and again after a success or a while.
func TestSaid(t *testing.T) {
	var s said
	now := time.Now()
	say := func() (n int) {
		for range 100 {
			for _, text := range []string{"slice 0: conflict", "slice 1: conflict"} {
				if s.news(text, now) {
					n++
				}
			}
		}
		return n
	}
	for _, c := range []struct {
		what   string
		before func()
		want   int
	}{
		{"first", func() {}, 2},
		{"soon", func() { now = now.Add(forget - 1) }, 0},
		{"later", func() { now = now.Add(1) }, 2},
		{"after a success", s.over, 2},
	} {
		c.before()
		if n := say(); n != c.want {
			t.Errorf("%s: %d lines, want %d", c.what, n, c.want)
		}
	}
}

// TestProblemClasses: each error of publishing has its class.
func TestProblemClasses(t *testing.T) {
	resource := schema.GroupResource{Resource: "resourceslices"}
	for class, err := range map[string]error{
		"forbidden": fmt.Errorf("create: %w", apierrors.NewForbidden(resource, "s", errors.New("policy"))),
		"invalid":   apierrors.NewInvalid(schema.GroupKind{Kind: "ResourceSlice"}, "s", nil),
		"transient": apierrors.NewConflict(resource, "s", nil),
	} {
		p := &plugin{metrics: newMetrics("v"), log: slog.New(slog.DiscardHandler)}
		p.problem(err, "writing")
		if got := value(t, p.metrics, "passthrough_dra_publish_errors_total", class); got != 1 {
			t.Errorf("%s: %v", class, got)
		}
	}
}

// value is the value of a counter or gauge with a value of one of its labels.
func value(t *testing.T, m *metrics, name, label string) float64 {
	t.Helper()
	families, err := m.registry.Gather()
	must(t, err)
	sum := 0.0
	for _, f := range families {
		for _, x := range f.GetMetric() {
			for _, l := range x.GetLabel() {
				if f.GetName() == name && l.GetValue() == label {
					sum += x.GetGauge().GetValue() + x.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}

// TestMetricsWhole: who asks while the same is set again sees no other number.
func TestMetricsWhole(t *testing.T) {
	w := &world{inventory: look(t, "hgx-h100", nil), tainted: true}
	offers := w.offers()
	records := []claim.Record{{State: claim.Prepared}, {State: claim.Prepared}}
	m := newMetrics("v")
	set := func() {
		m.offer(offers)
		m.records(records, 1)
		m.setRegistered(true)
	}
	set()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				set()
			}
		}
	}()
	for range 100 {
		gpus, prepared := value(t, m, "passthrough_dra_devices", "gpu"), value(t, m, "passthrough_dra_claims", string(claim.Prepared))
		if gpus != 8 || prepared != 2 {
			t.Errorf("%v GPUs, %v claims", gpus, prepared)
			break
		}
	}
	close(stop)
	<-done
}

// TestRefusedTellsFault: a claim's broken device is broken also where the type is another's.
func TestRefusedTellsFault(t *testing.T) {
	inventory := look(t, "hgx-h100", nil)
	d := &inventory.Devices[0]
	w := &world{inventory: inventory, refused: map[dra.Type]finding.Finding{d.Type: finding.New(finding.StillAllocatable(), "")}}
	o := w.judge(d, true, []finding.Finding{finding.New(finding.Gone(), "a")})
	if h := healthOf("n", &o); h.Health != "Unhealthy" || o.unpublished == nil {
		t.Errorf("%+v", h)
	}
}

// TestGroupLeaderLeaves: the next function of a group gives the device its name, and a claim still has
// it.
func TestGroupLeaderLeaves(t *testing.T) {
	inventory := look(t, "hgx-h200", nil)
	var record claim.Record
	for i := range inventory.Devices {
		if d := &inventory.Devices[i]; len(d.Nodes) > 1 && record.UID == "" {
			on := claim.Device{Name: d.Name, Address: d.Function.Address.String()}
			for _, a := range d.Group {
				on.Group = append(on.Group, a.String())
			}
			record = claim.Record{UID: "u1", Namespace: "team", Name: "c", State: claim.Prepared, Devices: []claim.Device{on}}
		}
	}
	if record.UID == "" {
		t.Fatal("no device of several functions")
	}
	was := record.Devices[0]
	after := look(t, "hgx-h200", func(n *sim.Node) { must(t, n.Unbind(address(t, was.Address))) })
	for _, admin := range []bool{false, true} {
		record.Devices[0].Admin = admin
		for tainted, suffix := range map[bool]string{true: " held withheld=DRA020", false: " held unpublished DRA020"} {
			w := &world{inventory: after, tainted: tainted, records: []claim.Record{record}}
			offers := w.offers()
			for i := range offers {
				o := &offers[i]
				if want := o.device.Name + suffix; shares(o.device, was.Group) && (told(o) == want) == admin {
					t.Errorf("admin %v: %q, want %q", admin, told(o), want)
				}
			}
			if !admin && value(t, measured(offers), "passthrough_dra_devices", map[bool]string{true: "tainted", false: "withheld"}[tainted]) == 0 {
				t.Error("nobody counts it")
			}
		}
	}
}

func shares(d *dra.Device, group []string) bool {
	for _, a := range d.Group {
		for _, b := range group {
			if a.String() == b {
				return true
			}
		}
	}
	return false
}

func measured(offers []offer) *metrics {
	m := newMetrics("v")
	m.offer(offers)
	return m
}

// TestRenewed: taints are tried again when the API server has become another version, and only then.
func TestRenewed(t *testing.T) {
	d := &Driver{plugin: &plugin{}, log: slog.New(slog.DiscardHandler)}
	d.plugin.untainted.Store(true)
	for _, c := range []struct {
		version   string
		untainted bool // what is believed then
	}{
		{"", true},
		{"v1.35.2", true}, // the first word: nothing was dropped by another one
		{"v1.35.2", true},
		{"", true}, // it did not say
		{"v1.36.0", false},
		{"v1.36.0", false},
	} {
		if d.renewed(c.version); d.plugin.untainted.Load() != c.untainted {
			t.Errorf("%q: %v", c.version, !c.untainted)
		}
	}
	d.plugin.untainted.Store(true) // it dropped them again
	if d.renewed("v1.36.0"); !d.plugin.untainted.Load() {
		t.Error("tried again without a reason")
	}
}

// TestMetricsLint: names, types and help are as Prometheus wants them.
func TestMetricsLint(t *testing.T) {
	m := newMetrics("v1")
	for _, operation := range []string{"prepare", "unprepare"} {
		m.call(operation, time.Now(), nil)
	}
	m.publishError("transient")
	m.setRegistered(true)
	families, err := m.registry.Gather()
	must(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	must(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
