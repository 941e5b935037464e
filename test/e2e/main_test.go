// Package e2e runs the shipped plugin as a process of its own on simulated nodes,
// against kubelet's own device manager.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/harness"
	"kata-device-plugin/test/kubelet"
)

// binary and nicBinary are the two plugins, built once for all tests.
var binary, nicBinary string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := sim.Hold("", "kata-e2e.")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	var err2 error
	binary, err = harness.BuildPlugin(ctx, dir)
	nicBinary, err2 = harness.BuildNICPlugin(ctx, dir)
	if err = errors.Join(err, err2); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(os.Stderr, "kubelet of Kubernetes", kubelet.Version())
	return m.Run()
}

// node is a simulated node of a test. What runs on it ends with the test.
type node struct {
	*harness.Node
	t   testing.TB
	ctx context.Context
	log *log
}

func newNode(t *testing.T, platform string) *node {
	t.Helper()
	p, err := sim.PlatformByName(platform)
	if err != nil {
		t.Fatal(err)
	}
	return newNodeWith(t, p, binary)
}

// newNodeWith has a platform and a plugin of its own.
func newNodeWith(t testing.TB, p sim.Platform, binary string) *node {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	n := &node{t: t, ctx: ctx, log: &log{}}
	var err error
	if n.Node, err = harness.NewNode(p, binary, n.log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(n.log)
		}
	})
	return n
}

// start starts both kubelet and the plugin, and waits for all devices.
func (n *node) start() {
	n.t.Helper()
	n.must(n.StartKubelet(n.ctx))
	n.must(n.StartPlugin(n.ctx))
	n.must(n.AwaitAll(n.ctx))
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) address(id string) pci.Address {
	n.t.Helper()
	a, err := pci.ParseAddress(id)
	n.must(err)
	return a
}

// log collects the plugin's log.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
