package harness_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kata-device-plugin/test/harness"
)

// shell starts a shell script in the plugin's place: the only argument that a
// plugin gets is taken for the script's path. It returns once the script has
// written a line.
func shell(t *testing.T, script string) *harness.Plugin {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	p, err := harness.StartPlugin(t.Context(), "/bin/sh", path, w)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return p
}

// forever is a script that answers SIGTERM.
const forever = "trap 'exit 3' TERM; echo ready >&2; while :; do sleep 0.01; done"

func TestTerminate(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	p := shell(t, forever)
	code, took, err := p.Terminate(ctx)
	if code != 3 || took <= 0 || err != nil {
		t.Errorf("got code %d after %s, %v", code, took, err)
	}
	if code, _, err = p.Terminate(ctx); code != 3 || err != nil {
		t.Errorf("once more: got code %d, %v", code, err)
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	p := shell(t, forever)
	if p.PID() <= 1 {
		t.Errorf("the process ID is %d", p.PID())
	}
	for range 2 { // the second finds it gone
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if code, err := p.Wait(t.Context()); code != -1 || err != nil {
		t.Errorf("got code %d, %v", code, err)
	}
}

func TestWaitEnds(t *testing.T) {
	t.Parallel()
	p := shell(t, forever)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestStartNothing(t *testing.T) {
	t.Parallel()
	if _, err := harness.StartPlugin(t.Context(), filepath.Join(t.TempDir(), "none"), "dir", io.Discard); err == nil {
		t.Error("a program that does not exist was started")
	}
}

// TestPortOfNone: who waits for the port of a program that has ended is told.
func TestPortOfNone(t *testing.T) {
	t.Parallel()
	p := shell(t, forever)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if port, err := p.Port(t.Context()); err == nil {
		t.Errorf("it listens on %d", port)
	}
}
