package prepare_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	resourceapi "k8s.io/api/resource/v1"

	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/prepare"
)

// What happens beside a call: other processes, other claims, devices that change, a disk that is
// full.

// rebind gives a GPU another node, and its own to another GPU.
func (r *rig) rebind(a, b string) {
	r.t.Helper()
	x, y := address(r.t, a), address(r.t, b)
	must(r.t, r.Unbind(x), r.Unbind(y), r.Bind(y, "vfio-pci"), r.Bind(x, "vfio-pci"))
}

// TestPrepareWaits: a call that has waited for another one goes by what is so then.
func TestPrepareWaits(t *testing.T) {
	r := newRig(t, "hgx-h100")
	unlock, err := r.config.Records.Lock(t.Context())
	must(t, err)
	asked, done := make(chan struct{}), make(chan error)
	r.config.Kubelet = func(context.Context) (prepare.View, error) { close(asked); return r.view, nil }
	r.Engine = prepare.New(r.config)
	c := r.claim("u1", deviceName(gpuA))
	go func() { _, err := r.ask(c); done <- err }()
	<-asked
	r.rebind(gpuA, gpuC)
	must(t, unlock(), <-done)
	r.equal("spec", r.spec("u1"), []string{deviceName(gpuA) + " " + r.cdev(gpuA) + " rw"})
}

// TestReconcileLate: an inventory that is older than what another process has written changes
// nothing.
func TestReconcileLate(t *testing.T) {
	r := newRig(t, "hgx-h100")
	c := r.claim("u1", deviceName(gpuA))
	r.prepared(c)
	old := r.inventory()
	r.rebind(gpuA, gpuC)
	r.prepared(c)
	right := r.spec("u1")
	_, err := r.Reconcile(old, &r.view)
	must(t, err)
	r.equal("spec", r.spec("u1"), right)
}

// TestSweepBesidePrepare: a claim that somebody asks for between the last question about it and its
// release is not released.
func TestSweepBesidePrepare(t *testing.T) {
	r := newRig(t, "hgx-h100")
	c := r.claim("u1", deviceName(gpuA))
	r.prepared(c)
	unused := c.DeepCopy()
	unused.Status.ReservedFor = nil
	asked := 0
	r.config.Claim = func(context.Context, string, string) (*resourceapi.ResourceClaim, error) {
		if asked++; asked == 2 {
			r.prepared(c)
		}
		return unused, nil
	}
	r.Engine = prepare.New(r.config)
	for range 2 {
		r.now = r.now.Add(2 * time.Hour)
		if released, err := r.Sweep(t.Context()); err != nil || len(released) > 0 {
			t.Errorf("released %v, %v", released, err)
		}
	}
	if asked != 2 || r.state("u1") == "" {
		t.Errorf("asked %d times, and the claim is %q", asked, r.state("u1"))
	}
}

// TestSweepMoved: a claim that was allocated anew elsewhere, and one whose name is another's now,
// hold nothing for ever.
func TestSweepMoved(t *testing.T) {
	for what, change := range map[string]func(*rig){
		"allocated on another node": func(r *rig) { r.claims["team/claim-u1"].Status.Allocation.Devices.Results[0].Pool = "node-b" },
		"another device":            func(r *rig) { r.claim("u1", deviceName(gpuC)) },
		"another of its name": func(r *rig) {
			c := r.claim("u2", deviceName(gpuB))
			c.Name = "claim-u1"
			r.claims["team/claim-u1"] = c
			r.view.Claims["u2"] = prepare.Use{Claim: "team/claim-u1", Addresses: []string{gpuB}}
			r.view.Named["team/claim-u1"] = true
		},
	} {
		r := newRig(t, "hgx-h100")
		r.prepared(r.claim("u1", deviceName(gpuA)))
		change(r)
		var released []string
		for range 3 {
			r.now = r.now.Add(2 * time.Hour)
			more, err := r.Sweep(t.Context())
			must(t, err)
			released = append(released, more...)
		}
		r.equal(what, released, []string{"u1"})
	}
}

// fullVariable is set in the process that TestFullDisk starts: a limit of the size of files is the
// whole process's, and the test runner writes files too.
const fullVariable = "PREPARE_FULL"

// TestFullDisk: pods end on a disk that is full.
func TestFullDisk(t *testing.T) {
	if os.Getenv(fullVariable) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$")
		cmd.Env = append(os.Environ(), fullVariable+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	r := newRig(t, "hgx-h100")
	r.prepared(r.claim("u1", deviceName(gpuA)))
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &old))
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 100, Max: old.Max}))
	_, failed := r.ask(r.claim("u2", deviceName(gpuB)))
	err := r.Unprepare(t.Context(), "u1")
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &old), err)
	if failed == nil {
		t.Error("there was room")
	}
	r.prepared(r.claim("u3", deviceName(gpuA)))
}

// TestStray: a file that is named for no claim withholds what it names, and is told of by nobody
// again and again.
func TestStray(t *testing.T) {
	r := newRig(t, "hgx-h100")
	r.prepared(r.claim("u1", deviceName(gpuA)))
	var log bytes.Buffer
	r.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	r.Engine = prepare.New(r.config)
	path := filepath.Join(r.roots.Run, "claims", "u1.json")
	data, err := os.ReadFile(path)
	must(t, err, os.WriteFile(strings.Replace(path, "u1", "u1.old", 1), data, 0o600))
	for range 3 {
		if s := r.reconcile(); !strings.Contains(s.Withheld[gpuA], "u1.old.json") {
			t.Errorf("withheld %v", s.Withheld)
		}
	}
	if log.Len() > 0 {
		t.Errorf("it says: %s", &log)
	}
}

// TestRecordsLost: what a container has by kubelet's word stays, without a record too.
func TestRecordsLost(t *testing.T) {
	r := newRig(t, "hgx-h100")
	r.prepared(r.claim("u1", deviceName(gpuA)))
	spec := r.spec("u1")
	must(t, os.Remove(filepath.Join(r.roots.Run, "claims", "u1.json")))
	_, err := r.Reconcile(r.inventory(), nil)
	must(t, err)
	r.equal("spec, while kubelet has not answered", r.spec("u1"), spec)
	r.view.Claims["u1"] = prepare.Use{Claim: "team/claim-u1", Addresses: []string{gpuA}}
	if s := r.reconcile(); !strings.Contains(s.Withheld[gpuA], "team/claim-u1") {
		t.Errorf("withheld %v", s.Withheld)
	}
	r.equal("spec", r.spec("u1"), spec)
	r.refusedFor(r.claim("u2", deviceName(gpuA)), "u1")
	delete(r.view.Claims, "u1")
	r.reconcile()
	r.equal("spec, when its pod has ended", r.spec("u1"), nil)
}

// TestUnreadable: what cannot be read is not gone, in the first look of a process too.
func TestUnreadable(t *testing.T) {
	r := newRig(t, "hgx-h100")
	r.prepared(r.claim("u1", deviceName(gpuA)))
	spec := r.spec("u1")
	for _, name := range []string{"iommu_group", "driver", "class"} {
		must(t, r.BreakAttribute(address(t, gpuA), name))
		r.restart("boot-1")
		for what, inventory := range map[string]*dra.Inventory{"first look": r.inventory(), "later": dra.Take(r.source.Look(r.source.Look(nil)))} {
			_, err := r.Reconcile(inventory, &r.view)
			must(t, err)
			r.equal(name+", "+what, r.spec("u1"), spec)
		}
		must(t, r.RestoreAttribute(address(t, gpuA), name))
		r.reconcile()
	}
}

// TestTwice: a device that two requests of a claim have is one to CDI, so it has the same nodes.
func TestTwice(t *testing.T) {
	r := newRig(t, "hgx-h100")
	c := r.claim("u1", deviceName(gpuA), deviceName(gpuA))
	c.Status.Allocation.Devices.Results[1].AdminAccess = new(true)
	if names := r.prepared(c); len(names) != 2 || names[0] != names[1] {
		t.Errorf("names %v", names)
	}
	must(t, r.Unprepare(t.Context(), "u1"))
	configure(c, resourceapi.AllocationConfigSourceClaim, `{"apiVersion":"`+claimAPI+`","kind":"DeviceConfig","vfioNodes":"group"}`, "r1")
	r.refusedFor(c, "two requests")
}

// TestSlowServer: an API server that does not answer keeps no other claim from ending.
func TestSlowServer(t *testing.T) {
	r := newRig(t, "hgx-h100")
	c := r.claim("u1", deviceName(gpuA))
	r.prepared(c)
	r.prepared(r.claim("u2", deviceName(gpuB)))
	must(t, r.Unprepare(t.Context(), "u1"))
	asked, answer, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r.config.Claim = func(context.Context, string, string) (*resourceapi.ResourceClaim, error) {
		close(asked)
		<-answer
		return c, nil
	}
	r.Engine = prepare.New(r.config)
	go func() { defer close(done); r.prepared(c) }()
	<-asked
	must(t, r.Unprepare(t.Context(), "u2"))
	close(answer)
	<-done
}

// TestReconcileBusy: whoever looks at the node waits for no call: the call may be waiting for the
// look.
func TestReconcileBusy(t *testing.T) {
	r := newRig(t, "hgx-h100")
	looks := 0
	r.config.Fresh = func(context.Context) (*dra.Inventory, error) {
		looks++
		if _, err := r.Reconcile(r.inventory(), &r.view); !errors.Is(err, claim.ErrBusy) {
			t.Errorf("in the middle of a call: %v", err)
		}
		return r.inventory(), nil
	}
	r.Engine = prepare.New(r.config)
	r.prepared(r.claim("u1", deviceName(gpuA)))
	r.reconcile()
	if looks != 1 {
		t.Errorf("looked %d times", looks)
	}
}

// TestGroupLate: a node of another function of the device's group counts as well.
func TestGroupLate(t *testing.T) {
	r := newRig(t, "hgx-h200")
	i := r.inventory()
	var board, other *dra.Device
	for k := range i.Devices {
		switch d := &i.Devices[k]; d.Type {
		case dra.NVSwitch:
			board = d
		case dra.GPU:
			other = d
		}
	}
	if board == nil || len(board.Nodes) != 4 {
		t.Fatalf("the switches are %+v", board)
	}
	c := r.claim("u1", board.Name)
	r.prepared(c)
	last := board.Group[len(board.Group)-1]
	for _, f := range r.Functions() { // the last of the group's functions that is a switch
		if f.Class.Sub() == 0x0680 {
			last = f.Address()
		}
	}
	gpu := other.Group[0]
	must(t, r.Unbind(last), r.Unbind(gpu), r.Bind(gpu, "vfio-pci"), r.Bind(last, "vfio-pci"))
	r.prepared(c)
	right := r.spec("u1")
	_, err := r.Reconcile(i, &r.view)
	must(t, err)
	r.equal("spec", r.spec("u1"), right)
}
