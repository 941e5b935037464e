//go:build !kubernetes134

package exporter

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/harness"
)

// node is a simulated node with an exporter on it. Kubelet and the plugin are the test's to start.
type node struct {
	*harness.Node
	t        *testing.T
	ctx      context.Context
	log      *log
	exporter *harness.Plugin
	url      string
}

func newNode(t *testing.T, platform string) *node {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	p, err := sim.PlatformByName(platform)
	must(t, err)
	n := &node{t: t, ctx: ctx, log: &log{listening: make(chan string, 1)}}
	n.Node, err = harness.NewNode(p, plugin, io.Discard)
	must(t, err)
	t.Cleanup(func() {
		if n.exporter != nil {
			must(t, n.exporter.Kill())
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(n.log)
		}
	})
	return n
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func (n *node) must(err error) {
	n.t.Helper()
	must(n.t, err)
}

func (n *node) address(id string) pci.Address {
	n.t.Helper()
	a, err := pci.ParseAddress(id)
	n.must(err)
	return a
}

// startKubelet starts kubelet with its PodResources service, for the first time or again.
func (n *node) startKubelet() {
	n.t.Helper()
	n.must(n.StartKubelet(n.ctx))
	n.must(n.Kubelet.PodResources(filepath.Join(n.Roots.PodResources, "kubelet.sock")))
}

// startExporter starts the exporter, for the first time or again, and waits for its port.
func (n *node) startExporter(flags ...string) {
	n.t.Helper()
	var err error
	args := append([]string{"--web.listen-address=127.0.0.1:0", "--poll-interval=1s", "--node-name=node-1"}, flags...)
	n.exporter, err = harness.StartPlugin(n.ctx, program, n.Dir, n.log, args...)
	n.must(err)
	select {
	case address := <-n.log.listening:
		n.url = "http://" + address + "/"
	case <-n.exporter.Exited():
		n.t.Fatalf("the exporter has ended:\n%s", n.log)
	case <-n.ctx.Done():
		n.t.Fatalf("the exporter does not listen:\n%s", n.log)
	}
}

// metrics are what a scrape gets, by name and labels.
type metrics map[string]float64

func (n *node) scrape() metrics {
	n.t.Helper()
	req, err := http.NewRequestWithContext(n.ctx, http.MethodGet, n.url+"metrics", nil)
	n.must(err)
	resp, err := http.DefaultClient.Do(req)
	n.must(err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		n.t.Fatalf("/metrics: %s", resp.Status)
	}
	all := metrics{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		line, ok := strings.CutPrefix(lines.Text(), "passthrough_")
		if !ok {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[at+1:], 64)
		n.must(err)
		all[line[:at]] = value
	}
	n.must(lines.Err())
	return all
}

// await scrapes until a condition holds. It is told what is still wrong, which is in the error.
func (n *node) await(what string, wrong func(metrics) string) metrics {
	n.t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	ctx, cancel := context.WithTimeout(n.ctx, 30*time.Second)
	defer cancel()
	for {
		m := n.scrape()
		why := wrong(m)
		if why == "" {
			return m
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			n.t.Fatalf("%s: %s\n%s", what, why, m)
		}
	}
}

// String is for a test that fails.
func (m metrics) String() string {
	var b strings.Builder
	for name, value := range m {
		fmt.Fprintln(&b, name, value)
	}
	return b.String()
}

// log collects the exporter's log, and notices the address.
type log struct {
	mu        sync.Mutex
	b         bytes.Buffer
	listening chan string
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := regexp.MustCompile(`127\.0\.0\.1:[1-9][0-9]*`).Find(p); m != nil && bytes.Contains(p, []byte("Listening on")) {
		select {
		case l.listening <- string(m):
		default:
		}
	}
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
