package agent

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	ourcdi "kata-device-plugin/internal/cdi"
)

// sockets are our sockets in the plugin directory.
func (n *node) sockets() []string {
	found, err := filepath.Glob(filepath.Join(n.roots.DevicePlugins, "kata-*.sock"))
	if err != nil {
		n.t.Fatal(err)
	}
	return found
}

// TestKubeletComesAndGoes: registration outlives everything that kubelet does.
func TestKubeletComesAndGoes(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	a := n.run(t)
	// Before kubelet: its socket does not exist, then it is a stale one.
	n.awaitLog(a, "not registered", gpu, "no such file")
	l, err := net.Listen("unix", filepath.Join(n.roots.DevicePlugins, "kubelet.sock"))
	must(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	must(t, l.Close())
	n.awaitLog(a, "not registered", gpu, "connection refused")
	if n.serving() {
		t.Error("ready without kubelet")
	}
	for i := range 5 {
		n.Start()
		n.awaitAll()
		n.Await("readiness", func() bool { return len(a.log.Lines("msg=ready")) == i+1 })
		if got := len(n.sockets()); got != 2 {
			t.Errorf("restart %d: %d sockets", i, got)
		}
		n.Stop()
		n.Await("the loss to be seen", func() bool { return len(a.log.Lines(`msg="not ready"`)) == i+1 })
	}
	n.Start()
	n.awaitAll()
	// Somebody removes our sockets: kubelet is told of new ones.
	for _, s := range n.sockets() {
		must(t, os.Remove(s))
	}
	n.Await("new sockets", func() bool { return len(n.sockets()) == 2 })
	n.awaitAll()
}

// TestStopQuietly: whenever it is stopped, and be it the moment that it has registered, the log has no
// trouble: the endpoints end beside the loop that looks at them.
func TestStopQuietly(t *testing.T) {
	n := newNode(t, platform(t, "gb200"))
	n.Start()
	for range 60 {
		for _, line := range []string{"msg=declared", "msg=ready", "registered with kubelet"} {
			a := n.run(t)
			n.awaitLog(a, line)
			must(t, a.stop())
			if trouble := append(a.log.Lines("not ready"), a.log.Lines("level=WARN")...); len(trouble) > 0 {
				t.Fatalf("stopped at %q: %s", line, trouble)
			}
		}
	}
}

// TestStop: stopping takes less than a second, and leaves the CDI specs and nothing else.
func TestStop(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	before := runtime.NumGoroutine()
	n.Start()
	a := n.run(t)
	n.awaitAll()
	began := time.Now()
	must(t, a.stop())
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %v", took)
	}
	if left := n.sockets(); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	for _, r := range []string{gpu, nvswitch} {
		if _, err := os.Stat(filepath.Join(n.roots.CDI, ourcdi.FileName("kata.", r))); err != nil {
			t.Error(err)
		}
	}
	n.Stop()
	n.Await("goroutines to end", func() bool { n.changedSoon(); return runtime.NumGoroutine() <= before })
	// The next life takes over, and replaces what the dead left behind.
	n.Forget()
	must(t, os.WriteFile(filepath.Join(n.roots.CDI, "."+ourcdi.FileName("kata.", gpu)+"123"), []byte("torn"), 0o600))
	dead := filepath.Join(n.roots.DevicePlugins, "kata-gpu-0badc0de.sock")
	l, err := net.Listen("unix", dead)
	must(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	must(t, l.Close())
	n.run(t)
	n.Await("the socket of an earlier life to go", func() bool {
		n.changedSoon()
		_, err := os.Lstat(dead)
		return os.IsNotExist(err)
	})
	n.Start()
	n.awaitAll()
	if torn, _ := filepath.Glob(filepath.Join(n.roots.CDI, ".kata*")); len(torn) > 0 {
		t.Errorf("left %v", torn)
	}
}

// changedSoon lets await look again although nothing tells of the end of goroutines.
func (n *node) changedSoon() {
	time.AfterFunc(time.Millisecond, n.Signal)
}

// TestQuiet: an unchanged node causes no message and no write, however often it is
// looked at.
func TestQuiet(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	n.Start()
	looks := make(chan struct{}, 1000)
	a := n.run(t, func(a *Agent) { a.times.Resync = time.Millisecond })
	n.awaitAll()
	n.Await("the last line of the start", func() bool {
		return len(a.log.Lines("msg=ready")) == 1 && len(a.log.Lines(`msg="registered with kubelet"`)) == 2
	})
	state := func() string {
		var b strings.Builder
		for _, dir := range []string{n.roots.CDI, n.roots.DevicePlugins, n.roots.Run} {
			entries, err := os.ReadDir(dir)
			must(t, err)
			for _, e := range entries {
				info, err := e.Info()
				must(t, err)
				fmt.Fprintln(&b, dir, e.Name(), info.Mode(), info.Size(), info.ModTime().UnixNano())
			}
		}
		n.Mu.Lock()
		defer n.Mu.Unlock()
		fmt.Fprintln(&b, n.Messages, len(a.log.Lines("")))
		return b.String()
	}
	before := state()
	for range 50 {
		if err := a.agent.lookout.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		looks <- struct{}{}
	}
	if after := state(); after != before {
		t.Errorf("%d looks changed\n%sto\n%s", len(looks), before, after)
	}
}

// TestFlat: goroutines and file descriptors do not grow.
func TestFlat(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	n.Start()
	n.run(t)
	n.awaitAll()
	cycle := func() {
		a := address(t, "0000:53:00.0")
		must(t, n.Unbind(a))
		n.Await("unhealthy", func() bool { return len(n.Healthy(gpu)) == 7 })
		must(t, n.Bind(a, "vfio-pci"))
		n.Stop()
		n.Start()
		n.awaitAll()
	}
	cycle()
	files, routines := descriptors(t), runtime.NumGoroutine()
	for range 20 {
		cycle()
	}
	n.Await("goroutines and descriptors to be as before", func() bool {
		n.changedSoon()
		return descriptors(t) <= files && runtime.NumGoroutine() <= routines
	})
}

func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(entries)
}

// TestReannounce: an ID that has left is unhealthy, never withdrawn, and healthy again.
func TestReannounce(t *testing.T) {
	n := newNode(t, platform(t, "gb300"))
	n.Start()
	a := n.run(t)
	n.awaitAll()
	all := n.Bound(0x0302)
	for i, id := range all {
		must(t, n.Unbind(address(t, id)))
		n.Await("unhealthy", func() bool { return slices.Equal(n.Healthy(gpu), all[i+1:]) })
	}
	if _, err := os.Stat(filepath.Join(n.roots.CDI, ourcdi.FileName("kata.", gpu))); !os.IsNotExist(err) {
		t.Errorf("a CDI spec without a device: %v", err)
	}
	n.Mu.Lock()
	if got := len(n.Plugins[gpu].Health); got != len(all) {
		t.Errorf("%d devices are announced", got)
	}
	n.Mu.Unlock()
	slices.Reverse(all) // so that the numbers change
	for _, id := range all {
		must(t, n.Bind(address(t, id), "nvgrace_gpu_vfio_pci"))
	}
	n.awaitAll()
	for _, id := range all {
		n.awaitLog(a, "msg=healthy", id)
		if len(a.log.Lines("msg=unhealthy", id)) != 1 || len(a.log.Lines("msg=healthy", id)) != 1 {
			t.Errorf("%s: not one line each:\n%s", id, a.log)
		}
	}
}

// TestLateFirstDevice: a resource is registered when its first device comes, and then for
// the life of the process.
func TestLateFirstDevice(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	switches := n.Bound(0x0680)
	for _, id := range switches {
		must(t, n.Unbind(address(t, id)))
	}
	n.Start()
	n.run(t)
	n.awaitAll()
	n.Mu.Lock()
	if n.Plugins[nvswitch] != nil {
		t.Error("registered without a device")
	}
	n.Mu.Unlock()
	must(t, n.Bind(address(t, switches[2]), "vfio-pci"))
	n.awaitAll()
	must(t, n.Unbind(address(t, switches[2])))
	n.Await("the device to be unhealthy", func() bool {
		p := n.Plugins[nvswitch]
		return p.Streams == 1 && len(p.Health) == 1 && p.HealthyCount == 0
	})
}

// TestResync: what sends no event is found by the slow look, and announced.
func TestResync(t *testing.T) {
	n := newNode(t, platform(t, "rtx-pro-6000"))
	n.Start()
	n.run(t, func(a *Agent) {
		a.times.Resync = 20 * time.Millisecond
		a.times.Quiet, a.times.Most = 1<<40, 1<<40 // no events at all
	})
	n.awaitAll()
	id := n.Bound(0x0302)[0]
	must(t, n.SetVFs(address(t, id), 1, ""))
	n.Await("the PF to be unhealthy", func() bool { return !slices.Contains(n.Healthy(gpu), id) })
	must(t, n.SetVFs(address(t, id), 0, ""))
	n.Await("the PF to be healthy", func() bool { return slices.Contains(n.Healthy(gpu), id) })
}

// TestNoHealthDirectory: the plugin runs without a health socket, and says so once.
func TestNoHealthDirectory(t *testing.T) {
	n := newNode(t, platform(t, "gb200"))
	must(t, os.Remove(n.roots.Run))
	n.Start()
	a := n.run(t)
	n.awaitAll()
	if got := len(a.log.Lines("running without a health socket", n.roots.Run)); got != 1 {
		t.Errorf("%d lines: %s", got, a.log)
	}
}

// TestUnreadableAtStart: what cannot be read when the plugin starts is not gone: the specs
// of the life before stay, and it is not ready.
func TestUnreadableAtStart(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	n.Start()
	before := n.run(t)
	n.awaitAll()
	must(t, before.stop())
	class := filepath.Join(n.roots.Sys, "class", "vfio-dev")
	must(t, os.Rename(class, class+".aside"))
	must(t, os.WriteFile(class, nil, 0o644)) // cannot be listed, and is not absent
	n.Forget()
	a := n.run(t)
	n.awaitLog(a, "HST034", "/sys/class/vfio-dev")
	for _, r := range []string{gpu, nvswitch} {
		if _, err := os.Stat(filepath.Join(n.roots.CDI, ourcdi.FileName("kata.", r))); err != nil {
			t.Errorf("the spec of the life before: %v", err)
		}
	}
	if n.serving() || len(a.log.Lines("msg=ready")) > 0 {
		t.Errorf("ready: %s", a.log)
	}
	must(t, os.Remove(class))
	must(t, os.Rename(class+".aside", class))
	n.awaitAll()
	n.awaitLog(a, "msg=ready")
}
