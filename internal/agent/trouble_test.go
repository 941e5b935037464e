package agent

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	ourcdi "kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/nodelock"
	"kata-device-plugin/internal/sim"
)

// TestStaleMount: a directory that is not the host's any more is an error, not an empty
// node.
func TestStaleMount(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	n.Start()
	a := n.run(t, func(a *Agent) { a.times.settle = 50 * time.Millisecond })
	n.awaitAll()
	n.awaitLog(a, "msg=ready")
	must(t, n.HideVFIO())
	n.awaitLog(a, "level=ERROR", "HST033", "/dev/vfio/devices", "vfio0")
	n.Await("not ready", func() bool { return len(a.log.Lines(`msg="not ready"`, "HST033")) == 1 })
	if n.serving() {
		t.Error("ready with a stale mount")
	}
	must(t, n.ShowVFIO())
	n.awaitAll()
	n.Await("ready again", func() bool { return len(a.log.Lines("msg=ready")) == 2 })
}

// TestNoMount: without the directory from the start it is never said to be ready.
func TestNoMount(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	roots := n.prog.Roots
	roots.Dev += "/absent"
	n.prog = Passthrough(n.prog.Name, n.prog.Version, roots)
	n.Start()
	a := n.run(t)
	n.awaitLog(a, "level=ERROR", "HST033", "/dev/vfio/devices", "vfio0")
	if lines := a.log.Lines("msg=ready"); len(lines) > 0 || n.serving() {
		t.Errorf("it said that it was ready: %s", lines)
	}
}

// TestSpecUnwritable: without a CDI spec no device is healthy, and with it again each is.
func TestSpecUnwritable(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	aside := n.roots.CDI + ".aside"
	must(t, os.Rename(n.roots.CDI, aside))
	must(t, os.WriteFile(n.roots.CDI, nil, 0o644)) // not a directory: fails for root too
	n.Start()
	a := n.run(t)
	n.awaitLog(a, "level=ERROR", "CDI014", gpu)
	n.Await("unhealthy devices", func() bool {
		p := n.Plugins[gpu]
		return p != nil && len(p.Health) == 8 && len(n.Healthy(gpu)) == 0
	})
	if n.serving() {
		t.Error("ready without CDI specs")
	}
	must(t, os.Remove(n.roots.CDI))
	must(t, os.Rename(aside, n.roots.CDI))
	n.awaitAll()
	n.awaitLog(a, "msg=ready")
}

// TestSecondAgent: of two agents on a node one offers, the other waits and says for
// whom; it takes over when the first has gone.
func TestSecondAgent(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	n.Start()
	first := n.run(t)
	n.awaitAll()
	second := n.prog
	second.Name, second.Roots.Run = "the-other-agent", t.TempDir()
	other := &node{Node: n.Node, Witness: n.Witness, t: t, roots: second.Roots, prog: second}
	b := other.run(t)
	n.awaitLog(b, "PLG018", gpu, "held by kata-device-plugin in ")
	n.awaitLog(b, "PLG018", nvswitch)
	if got := len(n.sockets()); got != 2 {
		t.Errorf("%d sockets while one agent waits", got)
	}
	if other.serving() {
		t.Error("the second is ready")
	}
	must(t, first.stop())
	n.Forget()
	n.awaitLog(b, "msg=ready")
	n.awaitAll()
}

// TestLockStolen: an agent that loses the lock to another stops offering, also while
// kubelet asks it; neither the loop nor the stop hang.
func TestLockStolen(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	n.Start()
	a := n.run(t)
	n.awaitAll()
	stop, asking := make(chan struct{}), make(chan struct{})
	client := n.Client(gpu)
	go func() {
		defer close(asking)
		for {
			select {
			case <-stop:
				return
			default: // refusals are part of the game
				_, _ = client.Allocate(t.Context(), &pluginapi.AllocateRequest{ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: []string{"0000:ff:00.0"}}}})
				_, _ = client.GetPreferredAllocation(t.Context(), &pluginapi.PreferredAllocationRequest{})
			}
		}
	}()
	aside := n.roots.CDI + ".aside"
	thief, err := nodelock.Take(aside, gpu, "a thief")
	must(t, err)
	must(t, os.Rename(filepath.Join(aside, nodelock.FileName(gpu)), filepath.Join(n.roots.CDI, nodelock.FileName(gpu))))
	n.awaitLog(a, "PLG018", gpu, "a thief")
	n.Await("the end of the registration", func() bool { return n.Plugins[gpu].Streams == 0 })
	close(stop)
	<-asking
	if got := n.Bound(0x0680); !slices.Equal(got, n.LockedHealthy(nvswitch)) {
		t.Errorf("the other resource is %v", got)
	}
	must(t, thief.Release())
	n.awaitAll()
}

// TestFailingWrite: a spec that cannot be written is tried again at a slow pace, although
// each attempt is an event in the directory, and is logged once.
func TestFailingWrite(t *testing.T) {
	n := newNode(t, platform(t, "gb200"))
	// The write fails at the end, when the whole file has been made: a full disk would
	// do the same, and is harder to come by.
	inTheWay := filepath.Join(n.roots.CDI, ourcdi.FileName("kata.", gpu))
	must(t, os.MkdirAll(filepath.Join(inTheWay, "x"), 0o755))
	n.Start()
	a := n.run(t)
	n.awaitLog(a, "CDI014")
	began := time.Now()
	attempts := 0
	n.Await("a few attempts", func() bool { attempts++; return time.Since(began) > time.Second })
	if attempts > 50 {
		t.Errorf("the directory changed %d times in a second", attempts)
	}
	if got := len(a.log.Lines("CDI014", "msg=found")); got != 1 {
		t.Errorf("logged %d times: %s", got, a.log)
	}
	must(t, os.RemoveAll(inTheWay))
	n.awaitAll()
}

// TestNothingLeftOfEarlierLife: a spec and sockets of a life that ended are gone when the
// next one finds no device; what another agent holds is left alone.
func TestNothingLeftOfEarlierLife(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	for _, id := range slices.Concat(n.Bound(0x0302), n.Bound(0x0680)) {
		must(t, n.Unbind(address(t, id)))
	}
	spec := func(r string) string { return filepath.Join(n.roots.CDI, ourcdi.FileName("kata.", r)) }
	sockets := func(r string) string {
		return filepath.Join(n.roots.DevicePlugins, map[string]string{gpu: "kata-gpu", nvswitch: "kata-nvswitch"}[r]+"-0badc0de.sock")
	}
	for _, r := range []string{gpu, nvswitch} {
		must(t, os.WriteFile(spec(r), []byte("{}"), 0o644))
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: sockets(r), Net: "unix"})
		must(t, err)
		l.SetUnlinkOnClose(false)
		must(t, l.Close())
	}
	other, err := nodelock.Take(n.roots.CDI, nvswitch, "another agent")
	must(t, err)
	a := n.run(t)
	n.awaitLog(a, "msg=ready")
	n.Await("the spec to go", func() bool { _, err := os.Stat(spec(gpu)); return os.IsNotExist(err) })
	if _, err := os.Stat(sockets(gpu)); !os.IsNotExist(err) {
		t.Errorf("the socket: %v", err)
	}
	for _, path := range []string{spec(nvswitch), sockets(nvswitch)} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the other agent's: %v", err)
		}
	}
	must(t, other.Release())
	must(t, a.agent.lookout.Refresh(t.Context()))
	if _, err := os.Stat(spec(nvswitch)); !os.IsNotExist(err) {
		t.Errorf("when the other agent has gone: %v", err)
	}
}

// TestWaitingWithoutDevices: an agent that waits for another one has nothing to wait for
// when the devices have left.
func TestWaitingWithoutDevices(t *testing.T) {
	n := newNode(t, platform(t, "gb200"))
	other, err := nodelock.Take(n.roots.CDI, gpu, "another agent")
	must(t, err)
	a := n.run(t)
	n.awaitLog(a, "PLG018")
	for _, id := range n.Bound(0x0302) {
		must(t, n.Unbind(address(t, id)))
	}
	n.awaitLog(a, "msg=ready")
	must(t, other.Release())
	n.Start()
	must(t, n.Bind(address(t, "0009:01:00.0"), "nvgrace_gpu_vfio_pci"))
	n.awaitAll()
}

// TestWaiterTidiesUp: an agent that waited, and finds its holder dead and the devices gone,
// removes the holder's spec.
func TestWaiterTidiesUp(t *testing.T) {
	n := newNode(t, platform(t, "gb200"))
	other, err := nodelock.Take(n.roots.CDI, gpu, "another agent")
	must(t, err)
	spec := filepath.Join(n.roots.CDI, ourcdi.FileName("kata.", gpu))
	must(t, os.WriteFile(spec, []byte("{}"), 0o644))
	a := n.run(t)
	n.awaitLog(a, "PLG018")
	for _, id := range n.Bound(0x0302) {
		must(t, n.Unbind(address(t, id)))
	}
	n.awaitLog(a, "msg=ready")
	must(t, other.Release())
	must(t, a.agent.lookout.Refresh(t.Context()))
	if _, err := os.Stat(spec); !os.IsNotExist(err) {
		t.Errorf("the spec is still there: %v", err)
	}
}

// TestPipeForSpec: a named pipe where a spec should be is reported, not waited on.
func TestPipeForSpec(t *testing.T) {
	n := newNode(t, platform(t, "gb200"))
	must(t, unix.Mkfifo(filepath.Join(n.roots.CDI, "pipe.json"), 0o644))
	n.Start()
	a := n.run(t)
	n.awaitAll()
	n.awaitLog(a, "CDI004", "pipe.json", "no regular file")
}

// TestLasting: a device that stays half bound is unhealthy in the log too, and healthy
// again when it is whole.
func TestLasting(t *testing.T) {
	n := newNode(t, platform(t, "gb200"))
	n.Start()
	a := n.run(t, func(a *Agent) { a.times.settle = 20 * time.Millisecond })
	n.awaitAll()
	const id = "0009:01:00.0"
	steps, err := n.UnbindSteps(address(t, id))
	must(t, err)
	for i, s := range steps {
		must(t, s.Do())
		if s.Name == sim.StepNode {
			n.awaitLog(a, "msg=unhealthy", "HST028", id)
			for _, s := range steps[i+1:] {
				must(t, s.Do())
			}
			break
		}
	}
	must(t, n.Bind(address(t, id), "nvgrace_gpu_vfio_pci"))
	n.awaitLog(a, "msg=healthy", id)
}

// TestLockWiped: who empties the CDI directory takes neither the lock nor the specs.
func TestLockWiped(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	n.Start()
	n.run(t)
	n.awaitAll()
	entries, err := os.ReadDir(n.roots.CDI)
	must(t, err)
	for _, e := range entries {
		must(t, os.Remove(filepath.Join(n.roots.CDI, e.Name())))
	}
	m := model{node: n}
	n.Await("specs and locks", func() bool {
		holder, err := os.ReadFile(filepath.Join(n.roots.CDI, nodelock.FileName(gpu)))
		return err == nil && strings.Contains(string(holder), n.prog.Name) &&
			m.resolves(gpu, n.Bound(0x0302)) && m.resolves(nvswitch, n.Bound(0x0680))
	})
	if _, err := nodelock.Take(n.roots.CDI, gpu, "a test"); !errors.Is(err, nodelock.ErrHeld) {
		t.Errorf("the lock is not held: %v", err)
	}
	n.awaitAll()
}

// TestForeignSpecs: other owners' files are never touched; the one that defines our
// devices makes them unhealthy, the one that breaks all consumers is named.
func TestForeignSpecs(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	place := func(name, content string) string {
		path := filepath.Join(n.roots.CDI, name)
		must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	spec := func(version, kind, device string) string {
		return `{"cdiVersion":"` + version + `","kind":"` + kind + `","devices":[{"name":"` + device +
			`","containerEdits":{"env":["A=b"]}}]}`
	}
	broken := place("broken.yaml", "cdiVersion: [")
	later := place("later.json", spec("1.0.0", "other.example/x", "a"))
	harmless := place("harmless.json", spec("0.5.0", gpu, "all"))
	n.Start()
	a := n.run(t)
	n.awaitAll()
	n.awaitLog(a, "level=WARN", "CDI004", broken)
	n.awaitLog(a, "level=WARN", "CDI005", later, "1.0.0")
	if lines := a.log.Lines("harmless"); len(lines) > 0 {
		t.Errorf("%s: %s", harmless, lines)
	}
	n.awaitLog(a, "msg=ready")
	double := place("double.json", spec("0.5.0", gpu, "0000:53:00.0"))
	n.awaitLog(a, "level=ERROR", "CDI006", "0000:53:00.0", double)
	n.Await("one unhealthy device", func() bool { return !slices.Contains(n.Healthy(gpu), "0000:53:00.0") && len(n.Healthy(gpu)) == 7 })
	n.Await("not ready", func() bool { return len(a.log.Lines(`msg="not ready"`, "CDI006")) == 1 })
	for _, path := range []string{broken, later, harmless, double} {
		info, err := os.Stat(path)
		must(t, err)
		if info.Mode() != 0o600 {
			t.Errorf("%s: %v", path, info.Mode())
		}
	}
	must(t, os.Remove(double))
	n.awaitAll()
}

// TestSpecName: the names and the form on disk are a contract with every consumer.
func TestSpecName(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	n.Start()
	n.run(t)
	n.awaitAll()
	for resource, name := range map[string]string{gpu: "kata.nvidia.com-gpu.json", nvswitch: "kata.nvidia.com-nvswitch.json"} {
		if ourcdi.FileName("kata.", resource) != name {
			t.Errorf("%s is in %s", resource, ourcdi.FileName("kata.", resource))
		}
		info, err := os.Stat(filepath.Join(n.roots.CDI, name))
		must(t, err)
		if info.Mode() != 0o644 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}
