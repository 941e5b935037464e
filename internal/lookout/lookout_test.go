package lookout_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/lookout"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sim/simtest"
)

// node is a simulated node, with what to look at on it.
type node struct {
	*sim.Node
	roots  host.Roots
	config lookout.Config
}

func newNode(t *testing.T) *node {
	t.Helper()
	n, _ := simtest.Node(t, simtest.Preset(t, "hgx-h100"))
	return &node{Node: n, roots: n.Roots("lookout"), config: lookout.Config{
		Source: simtest.Source(t, n),
		Times:  lookout.DefaultTimes(),
	}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func address(t *testing.T, s string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(s)
	must(t, err)
	return a
}

// bound are the functions of a snapshot that have a character device.
func bound(s *host.Snapshot) []string {
	var all []string
	for i := range s.Functions {
		if s.Functions[i].Cdev != nil {
			all = append(all, s.Functions[i].Address.String())
		}
	}
	return all
}

// want waits for a reason to look, and wants it to be one.
func want(ctx context.Context, t *testing.T, l *lookout.Lookout, within time.Duration, depth lookout.Depth) {
	t.Helper()
	got, ok := l.Wait(ctx, within)
	if !ok || got != depth {
		t.Fatalf("got depth %d, %v, want %d", got, ok, depth)
	}
}

// TestReasons: what happens on the node says how deep to look, and a look finds it.
func TestReasons(t *testing.T) {
	n := newNode(t)
	n.config.Hardware, n.config.Files = []string{n.roots.VFIO(), n.roots.VFIODevices()}, []string{n.roots.CDI}
	n.config.Times.Resync = time.Hour
	n.config.Report = func(what string, err error) {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	l := lookout.New(n.config)
	defer l.Close()
	want(ctx, t, l, time.Hour, lookout.Full)
	first := l.Observe(lookout.Full)
	all := bound(first)
	if len(all) < 8 {
		t.Fatalf("found %v", all)
	}

	must(t, os.WriteFile(filepath.Join(n.roots.CDI, "x.json"), nil, 0o600))
	want(ctx, t, l, time.Hour, lookout.Reuse)
	if l.Observe(lookout.Reuse) != first {
		t.Error("a file is a reason to look at the hardware")
	}

	l.Poke()
	l.Poke()
	want(ctx, t, l, time.Hour, lookout.None)

	gone := address(t, all[3])
	must(t, n.Unbind(gone))
	left := slices.Delete(slices.Clone(all), 3, 4)
	for seen := first; !slices.Equal(bound(seen), left); {
		want(ctx, t, l, time.Hour, lookout.Glance)
		seen = l.Observe(lookout.Glance)
	}
	must(t, n.Bind(gone, "vfio-pci"))
	for seen := first; seen == first || !slices.Equal(bound(seen), all); {
		want(ctx, t, l, time.Hour, lookout.Glance)
		seen = l.Observe(lookout.Glance)
	}
}

// TestFirst: whatever the first look is asked to be, it is one.
func TestFirst(t *testing.T) {
	for _, how := range []lookout.Depth{lookout.Reuse, lookout.Glance, lookout.Full} {
		l := lookout.New(newNode(t).config)
		defer l.Close()
		if s := l.Observe(how); len(bound(s)) < 8 {
			t.Errorf("depth %d found %v", how, bound(s))
		}
	}
}

// TestNoInotify: where no watch can be had, looks come at a slow pace until there is one, and
// that is told.
func TestNoInotify(t *testing.T) {
	n := newNode(t)
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	n.config.Files = []string{filepath.Join(file, "below")} // which is an error, and not absent
	n.config.Times.Poll, n.config.Times.Resync = 5*time.Millisecond, time.Hour
	var told []error
	n.config.Report = func(_ string, err error) { told = append(told, err) }
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	l := lookout.New(n.config)
	defer l.Close()
	for range 3 {
		want(ctx, t, l, time.Hour, lookout.Full)
	}
	must(t, os.Remove(file))
	want(ctx, t, l, time.Hour, lookout.Full)
	if told[0] == nil || told[1] == nil || told[2] == nil || told[3] != nil {
		t.Errorf("told %v", told)
	}
	must(t, os.MkdirAll(n.config.Files[0], 0o700))
	want(ctx, t, l, time.Hour, lookout.Reuse)
}
