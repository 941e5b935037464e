package nicplugin

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"kata-device-plugin/internal/agent"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/lookout"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sim/simtest"
	"kata-device-plugin/internal/witness"
)

// node is a simulated node with a witness in kubelet's place.
type node struct {
	*sim.Node
	*witness.Witness
	t      testing.TB
	roots  host.Roots
	config string // the file
	info   string // the directory of device-info files
	events chan struct{}
	unread atomic.Pointer[error] // why links cannot be read
}

// bare are the resources of these tests whose devices have no node.
func bare(resource, _ string) bool { return strings.HasSuffix(resource, "/net") }

func newNode(t testing.TB, p sim.Platform) *node {
	t.Helper()
	n, dir := simtest.Node(t, p)
	roots := n.Roots("nic-device-plugin")
	etc := filepath.Join(dir, "etc")
	must(t, os.MkdirAll(roots.Run, 0o755), os.MkdirAll(etc, 0o755))
	all := &node{
		Node: n, Witness: witness.New(t, roots, "kata.nic.", bare), t: t, roots: roots,
		config: filepath.Join(etc, "config.json"), info: filepath.Join(dir, "devinfo"), events: make(chan struct{}, 1),
	}
	all.watch(all.info)
	return all
}

// watch makes Await look again when a directory changes.
func (n *node) watch(dir string) {
	n.t.Helper()
	notify, err := fsnotify.NewWatcher()
	must(n.t, err, os.MkdirAll(dir, 0o755), notify.Add(dir))
	go func() {
		for range notify.Events {
			n.Signal()
		}
	}()
	n.t.Cleanup(func() { notify.Close() })
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func address(t testing.TB, s string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(s)
	must(t, err)
	return a
}

// configure replaces the configuration file, as an editor that is careful does.
func (n *node) configure(text string) {
	n.t.Helper()
	must(n.t, os.WriteFile(n.config+".new", []byte(text), 0o644), os.Rename(n.config+".new", n.config))
}

// happened stands in for the kernel's events, which a simulated node does not send.
func (n *node) happened() {
	select {
	case n.events <- struct{}{}:
	default: // one is waiting, which says the same
	}
}

// process is the plugin that runs.
type process struct {
	log  *witness.Log
	stop func() error
}

// run starts the plugin. It is stopped at the end of the test, if not before.
func (n *node) run() *process {
	n.t.Helper()
	p := &process{log: witness.NewLog(n.Signal)}
	log := slog.New(slog.NewTextHandler(p.log, nil))
	program := New("nic-device-plugin", "test", n.roots, Options{Config: []string{n.config}, DeviceInfo: n.info}, log)
	program.Source.Links = func() (*host.Links, error) {
		if err := n.unread.Load(); err != nil {
			return nil, *err
		}
		return n.Links()
	}
	program.Signals = []lookout.Signal{{Name: "events", Open: func(context.Context) (<-chan struct{}, error) { return n.events, nil }}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- agent.New(program, log).Run(ctx) }()
	p.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(10 * time.Second):
			n.t.Error("the plugin did not stop")
			return nil
		}
	})
	n.t.Cleanup(func() {
		if err := p.stop(); err != nil {
			n.t.Errorf("stop: %v", err)
		}
		if n.t.Failed() {
			n.t.Log(p.log.String())
		}
	})
	return p
}

func (n *node) awaitLog(p *process, texts ...string) {
	n.t.Helper()
	n.Await("a log line with "+strings.Join(texts, ", "), func() bool { return len(p.log.Lines(texts...)) > 0 })
}

// awaitHealthy waits until just these devices of a resource are healthy.
func (n *node) awaitHealthy(resource string, want ...string) {
	n.t.Helper()
	slices.Sort(want)
	n.Await(resource+" to be "+strings.Join(want, " "), func() bool { return slices.Equal(n.Healthy(resource), want) })
}

// hold writes kubelet's record: what containers have.
func (n *node) hold(held map[string][]string) {
	n.t.Helper()
	type entry struct {
		PodUID, ContainerName, ResourceName string
		DeviceIDs                           map[string][]string
	}
	var file struct {
		Data struct {
			PodDeviceEntries  []entry
			RegisteredDevices map[string][]string
		}
	}
	file.Data.RegisteredDevices = map[string][]string{}
	n.Mu.Lock()
	for resource := range n.Plugins {
		file.Data.RegisteredDevices[resource] = n.Healthy(resource)
	}
	n.Mu.Unlock()
	for resource, ids := range held {
		file.Data.PodDeviceEntries = append(file.Data.PodDeviceEntries, entry{"u", "c", resource, map[string][]string{"0": ids}})
	}
	data, err := json.Marshal(file)
	path := n.CheckpointPath()
	must(n.t, err, os.WriteFile(path+".new", data, 0o600), os.Rename(path+".new", path))
}

// files are the names of the device-info files.
func (n *node) files() []string {
	entries, err := os.ReadDir(n.info)
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
