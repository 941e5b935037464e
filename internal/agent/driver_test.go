package agent

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	ourcdi "kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/lookout"
	"kata-device-plugin/internal/nodelock"
	"kata-device-plugin/internal/sysfs"
)

// What the plugin does on a node that has, or had, the DRA driver.

const claimUID = "1b9dfe5c-7f46-4b6a-9f0e-6b2f2ce7a1d3"

// claim writes the CDI spec of a claim that holds a device, as the driver does, and returns
// where it is.
func (n *node) claim(kind, id string) string {
	n.t.Helper()
	name := claimUID + "-" + kind + "-" + strings.NewReplacer(":", "-", ".", "-").Replace(id)
	file := ourcdi.NewFile(n.roots.CDI, "kata.dra."+claimUID+".", draname.ClaimKind)
	_, err := file.Sync([]ourcdi.Device{{Name: name, Nodes: []ourcdi.Node{{Path: "/dev/vfio/devices/vfio0", Permissions: "rw"}}}})
	must(n.t, err)
	return file.Path()
}

// awaitWithout waits until all GPUs but one are healthy.
func (n *node) awaitWithout(id string) {
	n.t.Helper()
	rest := slices.DeleteFunc(n.Bound(0x0302, 0x0300), func(other string) bool { return other == id })
	n.Await("all but "+id, func() bool { return slices.Equal(n.Healthy(gpu), rest) })
}

// TestClaimed: a device that a claim holds is not handed out, for as long as the claim's spec is
// there, and what cannot be read of it is not gone.
func TestClaimed(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	n.Start()
	a := n.run(t)
	n.awaitAll()
	n.awaitLog(a, "msg=ready")
	const id = "0000:53:00.0"
	path := n.claim("gpu", id)
	n.awaitWithout(id)
	n.awaitLog(a, "level=WARN", "msg=unhealthy", "HST046", "device="+id, path, claimUID+"-gpu-0000-53-00-0")
	if _, err := n.Allocate(gpu, id); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "HST046") || !strings.Contains(err.Error(), claimUID) {
		t.Errorf("got %v", err)
	}
	write := func(content string) func() error {
		return func() error { return os.WriteFile(path, []byte(content), 0o644) }
	}
	for _, c := range []struct {
		name    string
		becomes func() error
		found   []string
	}{
		{"torn", write("{"), []string{"CDI004"}},
		{"too large", write(strings.Repeat(" ", 300<<10)), []string{"CDI015", "bytes"}},
		{"failing", func() error { return errors.Join(os.Remove(path), os.Symlink("/proc/self/mem", path)) },
			[]string{"CDI015", "input/output error"}},
	} {
		must(t, c.becomes())
		n.awaitLog(a, append(c.found, "msg=found", path)...)
		must(t, a.agent.lookout.Refresh(t.Context()))
		if healthy := n.LockedHealthy(gpu); len(healthy) != 7 || slices.Contains(healthy, id) {
			t.Errorf("%s: %v", c.name, healthy)
		}
	}
	must(t, os.Remove(path))
	n.awaitAll()
	n.awaitLog(a, "msg=healthy", id)
	if lines := a.log.Lines(`msg="not ready"`); len(lines) > 0 {
		t.Errorf("a claim is no reason not to be ready: %s", lines)
	}
}

// TestClaimedBefore: what a claim held before the plugin started was never healthy.
func TestClaimedBefore(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	const id = "0000:53:00.0"
	n.claim("gpu", id)
	n.Start()
	a := n.run(t)
	n.awaitLog(a, "msg=ready")
	n.awaitWithout(id)
	n.Await("the switches", func() bool { return slices.Equal(n.Healthy(nvswitch), n.Bound(0x0680)) })
	n.Mu.Lock()
	defer n.Mu.Unlock()
	if n.Messages != 2 { // one of each resource
		t.Errorf("%d messages", n.Messages)
	}
}

// TestClaimedGroup: who has one function of an IOMMU group has it all.
func TestClaimedGroup(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h200"))
	n.Start()
	a := n.run(t)
	n.awaitAll()
	path := n.claim("nvswitch", n.Bound(0x0680)[2])
	n.Await("no switch to be healthy", func() bool { return len(n.Healthy(nvswitch)) == 0 && len(n.Healthy(gpu)) == 8 })
	for _, id := range n.Bound(0x0680) {
		n.awaitLog(a, "HST046", "device="+id, path)
	}
	must(t, os.Remove(path))
	n.awaitAll()
}

// TestClaimedWhileWaiting: a driver that prepares a claim and ends, just when the plugin has
// read the specs and tries to get the lock, is found out before anything is announced.
func TestClaimedWhileWaiting(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	a := New(n.prog, slog.New(slog.DiscardHandler))
	sys, err := sysfs.Open(n.prog.Roots.Sys)
	must(t, err)
	defer sys.Close()
	a.open(sys)
	defer a.lookout.Close()
	driver, err := nodelock.TakeShared(n.roots.CDI, gpu, "a driver")
	must(t, err)
	now := time.Now()
	a.look(t.Context(), lookout.Full, now)
	defer func() {
		for _, o := range a.offers {
			must(t, o.stop())
		}
	}()
	if a.find(gpu).announced {
		t.Fatal("announced beside the driver")
	}
	const id = "0000:53:00.0"
	n.claim("gpu", id)
	must(t, driver.Release())
	a.adopt(t.Context(), a.rules, a.snapshot, now.Add(lockRetry))
	o := a.find(gpu)
	if !o.announced || o.byID[id].Healthy() || !o.byID["0000:64:00.0"].Healthy() {
		t.Errorf("announced: %v, %+v", o.announced, o.byID[id])
	}
}

// TestBesideDriver: of the plugin and several drivers on a node either the plugin offers or the
// drivers do.
func TestBesideDriver(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	n.Start()
	drivers := map[string][]*nodelock.Lock{}
	for _, name := range []string{"a driver", "the next driver"} {
		for _, r := range []string{gpu, nvswitch} {
			l, err := nodelock.TakeShared(n.roots.CDI, r, name)
			must(t, err)
			drivers[name] = append(drivers[name], l)
		}
	}
	a := n.run(t)
	n.awaitLog(a, "PLG018", gpu, "held by a driver, the next driver")
	n.awaitLog(a, "PLG018", nvswitch, "held by a driver, the next driver")
	if n.serving() || len(n.sockets()) > 0 {
		t.Errorf("it offers: %v", n.sockets())
	}
	for _, l := range drivers["a driver"] {
		must(t, l.Release())
	}
	n.awaitLog(a, "PLG018", gpu, "held by the next driver")
	for _, l := range drivers["the next driver"] {
		must(t, l.Release())
	}
	n.awaitLog(a, "msg=ready")
	n.awaitAll()
	if _, err := nodelock.TakeShared(n.roots.CDI, gpu, "a driver"); !errors.Is(err, nodelock.ErrHeld) || !strings.Contains(err.Error(), n.prog.Name) {
		t.Errorf("got %v", err)
	}
}

// TestFamily: the lock that all offers need is kept for as long as one goes on, and no longer.
func TestFamily(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	n.prog.Family = "test.example/family"
	n.Start()
	free := func() bool {
		l, err := nodelock.TakeShared(n.roots.CDI, n.prog.Family, "a test")
		if err == nil {
			must(t, l.Release())
		}
		return err == nil
	}
	resources := map[string]*nodelock.Lock{}
	for _, r := range []string{gpu, nvswitch} {
		l, err := nodelock.Take(n.roots.CDI, r, "an agent without the family's lock")
		must(t, err)
		resources[r] = l
	}
	a := n.run(t)
	n.awaitLog(a, "PLG018", gpu, "an agent without")
	n.awaitLog(a, "PLG018", nvswitch, "an agent without")
	n.Await("the lock to be free while nothing is offered", func() bool { n.changedSoon(); return free() })
	must(t, resources[gpu].Release())
	n.Await("the GPUs", func() bool { return len(n.Healthy(gpu)) == 8 })
	if free() {
		t.Error("it is free while one resource is offered")
	}
	must(t, resources[nvswitch].Release())
	n.awaitAll()
	n.awaitLog(a, "msg=ready")

	// The file is removed, and nobody wants it.
	path := filepath.Join(n.roots.CDI, nodelock.FileName(n.prog.Family))
	must(t, os.Remove(path))
	n.Await("the lock again", func() bool {
		holder, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(holder), n.prog.Name)
	})
	if free() {
		t.Error("it is free after its file was removed")
	}
	n.awaitAll()

	// The file is replaced by another agent's.
	aside := n.roots.CDI + ".aside"
	thief, err := nodelock.TakeShared(aside, n.prog.Family, "a thief")
	must(t, err)
	must(t, os.Rename(filepath.Join(aside, nodelock.FileName(n.prog.Family)), path))
	for _, r := range []string{gpu, nvswitch} {
		n.awaitLog(a, "PLG018", r, "a thief")
		n.Await("the end of "+r, func() bool { return n.Plugins[r].Streams == 0 })
	}
	must(t, thief.Release())
	n.awaitAll()
	must(t, a.stop())
	if !free() {
		t.Error("it is not free when the agent has ended")
	}
}
