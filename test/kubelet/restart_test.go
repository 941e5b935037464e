package kubelet_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"kata-device-plugin/test/kubelet"
)

// awaitEnd waits for the end of one stream.
func (p *plugin) awaitEnd(ctx context.Context, t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	case <-ctx.Done():
		t.Fatal("the stream is still open")
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	ctx, dir := limit(t), t.TempDir()
	k := start(t, dir, kubelet.Options{})
	p := registered(ctx, t, k, dir, device("a", api.Healthy), device("b", api.Healthy))
	pod := admit(ctx, t, k, "kept", 1)
	held := k.Allocated(pod, "c", dev)
	checkpoint := read(t, filepath.Join(dir, "kubelet_internal_checkpoint"))

	if err := k.Stop(); err != nil {
		t.Fatal(err)
	}
	p.awaitEnd(ctx, t)
	if err := k.Admit(ctx, kubelet.Pod("late", dev, 1)); err == nil {
		t.Error("a stopped kubelet admitted a pod")
	}
	var d net.Dialer
	if _, err := d.DialContext(ctx, "unix", filepath.Join(dir, "kubelet.sock")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial the socket that is left: %v, want connection refused", err)
	}
	if got := read(t, filepath.Join(dir, "kubelet_internal_checkpoint")); !bytes.Equal(got, checkpoint) {
		t.Errorf("the checkpoint changed to %s", got)
	}

	old := p.socket()
	k = start(t, dir, kubelet.Options{Running: []*v1.Pod{pod}})
	if _, err := os.Lstat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("look at the plugin's socket: %v, want that it is gone", err)
	}
	if c, a, ok := k.Devices(dev); c != 0 || a != 0 || !ok {
		t.Errorf("before the plugin is back: %s", k)
	}
	equal(t, "devices from the checkpoint", k.Allocated(pod, "c", dev), held)
	refused(ctx, t, k, 1, "UnexpectedAdmissionError")

	p.serve(t)
	if err := p.register(ctx); err != nil {
		t.Fatal(err)
	}
	awaitDevices(ctx, t, k, 2, 2)
	refused(ctx, t, k, 2, "UnexpectedAdmissionError")
	equal(t, "devices after the restart", k.Allocated(pod, "c", dev), held)
	cdi, _, err := k.RunOptions(ctx, pod, 0)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "CDI names after the restart", cdi, prefixed("example.com/dev=", held))
	if n := len(p.allocations()); n != 1 {
		t.Errorf("Allocate was called %d times, want 1", n)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A plugin registers twice on one socket. Kubelet either refuses, and loses track of
// the stream it has, or opens another stream and loses track of the first. Whatever is
// open must end with the kubelet all the same.
func TestStopEndsLostStream(t *testing.T) {
	t.Parallel()
	ctx, dir := limit(t), t.TempDir()
	k := start(t, dir, kubelet.Options{})
	p := registered(ctx, t, k, dir, device("a", api.Healthy))
	open := 1
	err := p.register(ctx)
	switch refusal := kubelet.Differs().SecondRegistration; {
	case refusal == "":
		open = 2
		if err != nil {
			t.Fatal(err)
		}
	case err == nil || !strings.Contains(err.Error(), refusal):
		t.Fatalf("register again: got %v, want a refusal: %s", err, refusal)
	}
	if err := k.Await(ctx, func() bool { return p.streams() == open }); err != nil {
		t.Fatalf("%d streams, want %d: %v", p.streams(), open, err)
	}
	p.announce(device("a", api.Unhealthy))
	awaitDevices(ctx, t, k, 1, 0) // the stream lives
	if err := k.Stop(); err != nil {
		t.Fatal(err)
	}
	for range open {
		p.awaitEnd(ctx, t)
	}
}

// Of two plugins for a resource, the one that registered first ends. The other one
// goes on, or is hung up on and has to register again.
func TestSuccessor(t *testing.T) {
	t.Parallel()
	ctx, dir := limit(t), t.TempDir()
	var log buffer
	k := start(t, dir, kubelet.Options{Log: &log})
	first := registered(ctx, t, k, dir, device("a", api.Healthy))
	second := registered(ctx, t, k, dir, device("b", api.Healthy), device("c", api.Healthy))
	first.stop()
	if kubelet.Differs().HangsUpOnSuccessor {
		second.awaitEnd(ctx, t)
		awaitDevices(ctx, t, k, 2, 0)
		refused(ctx, t, k, 1, "UnexpectedAdmissionError")
		return
	}
	if err := k.Await(ctx, func() bool { return strings.Contains(log.String(), "Device plugin disconnected") }); err != nil {
		t.Fatal(err)
	}
	equal(t, "the second's devices", k.Allocated(admit(ctx, t, k, "pair", 2), "c", dev), []string{"b", "c"})
}

// Calls under way end with the kubelet, as they do when its process dies.
func TestStopEndsCalls(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(context.Context, *kubelet.Kubelet, *plugin) error{
		"Register": func(ctx context.Context, _ *kubelet.Kubelet, p *plugin) error { return p.register(ctx) },
		"Admit": func(ctx context.Context, k *kubelet.Kubelet, _ *plugin) error {
			return k.Admit(ctx, kubelet.Pod("waiting", dev, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, dir := limit(t), t.TempDir()
			k := start(t, dir, kubelet.Options{})
			var p *plugin
			if name == "Admit" {
				p = registered(ctx, t, k, dir, device("a", api.Healthy))
			} else {
				p = newPlugin(t, dir, dev, device("a", api.Healthy))
			}
			reached := make(chan struct{})
			p.blockOn(func(ctx context.Context) error {
				close(reached)
				<-ctx.Done()
				return ctx.Err()
			})
			result := make(chan error, 1)
			go func() { result <- call(ctx, k, p) }()
			<-reached
			if err := k.Stop(); err != nil {
				t.Fatal(err)
			}
			if err := <-result; err == nil || ctx.Err() != nil {
				t.Errorf("the call ended with %v, and the test's context with %v", err, ctx.Err())
			}
		})
	}
}

func TestContextStops(t *testing.T) {
	t.Parallel()
	ctx, dir := limit(t), t.TempDir()
	life, end := context.WithCancel(ctx)
	k, err := kubelet.Start(life, dir, kubelet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := registered(ctx, t, k, dir, device("a", api.Healthy))
	end()
	p.awaitEnd(ctx, t)
	if err := k.Stop(); err != nil { // waits for the stop under way
		t.Error(err)
	}
}

func TestAwaitEnds(t *testing.T) {
	t.Parallel()
	ctx, dir := limit(t), t.TempDir()
	k := start(t, dir, kubelet.Options{})
	registered(ctx, t, k, dir, device("a", api.Healthy))
	cause := errors.New("enough")
	wait, enough := context.WithCancelCause(ctx)
	err := k.Await(wait, func() bool { enough(cause); return false })
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), dev+" 1 of 1 allocatable") {
		t.Errorf("a wait that ended: got %v", err)
	}
}

// Each kubelet of a process logs to its own writer, and to none after its end. The
// names of the pods are in no other test: a kubelet that logs for the whole process is
// heard by all that run.
func TestLog(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	var logs [2]buffer
	for i := range logs {
		dir := t.TempDir()
		k := start(t, dir, kubelet.Options{Log: &logs[i]})
		registered(ctx, t, k, dir, device("a", api.Healthy))
		admit(ctx, t, k, []string{"log-of-one", "log-of-two"}[i], 1)
		if err := k.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	for i, own := range []string{"log-of-one", "log-of-two"} {
		other := []string{"log-of-two", "log-of-one"}[i]
		log := logs[i].String()
		for _, want := range []string{"Got registration request", "Processed device updates", `pod="default/` + own} {
			if !strings.Contains(log, want) {
				t.Errorf("log %d lacks %q:\n%s", i, want, log)
			}
		}
		if strings.Contains(log, other) {
			t.Errorf("log %d has lines of the other kubelet:\n%s", i, log)
		}
	}
}

// buffer is a bytes.Buffer for concurrent use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
