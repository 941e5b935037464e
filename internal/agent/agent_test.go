package agent

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sim/simtest"
	"kata-device-plugin/internal/witness"
)

const (
	gpu      = "nvidia.com/gpu"
	nvswitch = "nvidia.com/nvswitch"
)

// node is a simulated node with a witness in kubelet's place.
type node struct {
	*sim.Node
	*witness.Witness
	t     testing.TB
	roots host.Roots
	prog  Program
}

func newNode(t testing.TB, p sim.Platform) *node {
	t.Helper()
	n, _ := simtest.Node(t, p)
	const name = "kata-device-plugin"
	roots := n.Roots(name)
	if err := os.MkdirAll(roots.Run, 0o755); err != nil {
		t.Fatal(err)
	}
	return &node{
		Node: n, Witness: witness.New(t, roots, "kata.", nil), t: t, roots: roots,
		prog: Passthrough(name, "test", roots),
	}
}

func platform(t *testing.T, name string) sim.Platform {
	t.Helper()
	p, err := sim.PlatformByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// process is an agent that runs.
type process struct {
	agent *Agent
	log   *witness.Log
	stop  func() error
}

// run starts an agent. It is stopped at the end of the test, if not before.
func (n *node) run(t testing.TB, change ...func(*Agent)) *process {
	t.Helper()
	p := &process{log: witness.NewLog(n.Signal)}
	p.agent = New(n.prog, slog.New(slog.NewTextHandler(p.log, nil)))
	for _, c := range change {
		c(p.agent)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.agent.Run(ctx) }()
	p.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(10 * time.Second):
			t.Error("the agent did not stop")
			return nil
		}
	})
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if t.Failed() {
			t.Log(p.log.String())
		}
	})
	return p
}

// awaitLog waits for a log line.
func (n *node) awaitLog(p *process, texts ...string) {
	n.t.Helper()
	n.Await("a log line with "+strings.Join(texts, ", "), func() bool { return len(p.log.Lines(texts...)) > 0 })
}

// awaitAll waits until all bound devices are announced healthy.
func (n *node) awaitAll() {
	n.t.Helper()
	gpus, switches := n.Bound(0x0302, 0x0300), n.Bound(0x0680)
	n.Await("all devices to be healthy", func() bool {
		return slices.Equal(n.Healthy(gpu), gpus) && slices.Equal(n.Healthy(nvswitch), switches)
	})
}

// TestPlatforms: every platform's devices are announced, and nothing else.
func TestPlatforms(t *testing.T) {
	for _, p := range sim.Platforms() {
		t.Run(p.Name, func(t *testing.T) {
			n := newNode(t, p)
			n.Start()
			a := n.run(t)
			n.awaitLog(a, "msg=ready")
			n.awaitAll()
			n.Mu.Lock()
			if len(n.Healthy(gpu)) != p.GPUs || len(n.Healthy(nvswitch)) != p.NVSwitches {
				t.Errorf("%d GPUs and %d NVSwitches, want %d and %d", len(n.Healthy(gpu)), len(n.Healthy(nvswitch)), p.GPUs, p.NVSwitches)
			}
			_, registered := n.Plugins[nvswitch]
			n.Mu.Unlock()
			if registered != (p.NVSwitches > 0) {
				t.Errorf("nvidia.com/nvswitch registered: %v", registered)
			}
		})
	}
}

// TestNothingThere: a node without matching hardware is ready with one line.
func TestNothingThere(t *testing.T) {
	n := newNode(t, platform(t, "cpu-only"))
	a := n.run(t)
	n.awaitLog(a, "msg=ready")
	if lines := a.log.Lines(""); len(lines) != 1 {
		t.Errorf("%d lines: %s", len(lines), a.log)
	}
	if !n.serving() {
		t.Error("not ready")
	}
}

// TestArguments: it takes none, and says so.
func TestArguments(t *testing.T) {
	n := newNode(t, platform(t, "cpu-only"))
	for _, args := range [][]string{{"--help"}, {"-v"}, {""}, {"serve", "x"}} {
		var stderr bytes.Buffer
		if code := n.prog.Command(t.Context(), args, &stderr); code != exit.Usage {
			t.Errorf("%q: exit code %d", args, code)
		}
		if got := stderr.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "takes no arguments") || !strings.Contains(got, n.prog.Name) {
			t.Errorf("%q: %q", args, got)
		}
	}
}

// TestNoSysfs: without sysfs there is nothing to do, and the exit code says so.
func TestNoSysfs(t *testing.T) {
	n := newNode(t, platform(t, "cpu-only"))
	prog := n.prog
	prog.Roots.Sys += "/absent"
	if err := New(prog, slog.New(slog.DiscardHandler)).Run(t.Context()); err == nil || !strings.Contains(err.Error(), prog.Roots.Sys) {
		t.Errorf("got %v", err)
	}
}
