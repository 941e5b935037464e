//go:build node

package node

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kata-device-plugin/test/peer"
)

// TestNothingLeft: a node with everything in it, some of it in the middle of something,
// leaves nothing behind, and kubelet's values of the kernel were never set.
func TestNothingLeft(t *testing.T) {
	before := host(t)
	n := ready(t, peer.Options{})
	n.run("train", 2)
	n.run("other", 2)
	_, err := n.StartRival(n.ctx, gpu, "rival-0")
	n.must(err)
	n.must(n.StaticPod(peer.NewPod("new", gpu, 1)))
	n.must(n.Kubelet().Pause())
	traces, err := n.Traces()
	n.must(err)
	if len(traces) < 10 {
		t.Errorf("the running node shows only %v: the check is worth nothing", traces)
	}
	started := time.Now()
	n.must(n.Stop())
	t.Logf("stopped in %v", time.Since(started))
	traces, err = n.Traces()
	n.must(err)
	for _, trace := range traces {
		t.Errorf("left: %s", trace)
	}
	after := host(t)
	for path, was := range before {
		if now := after[path]; now != was {
			t.Errorf("%s was %q, is %q", path, was, now)
		}
	}
}

// host is what a node could change on the machine: path to content.
func host(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, name := range peer.Sysctls() {
		path := filepath.Join("/proc/sys", name)
		state[path] = read(path)
	}
	for _, path := range []string{
		"/var/lib/kubelet", "/var/lib/containerd", "/var/log/pods", "/var/log/containers", "/run/containerd", "/run/cdi", "/opt/containerd",
		"/etc/hosts", "/proc/sys/kernel/hostname", "/dev/vfio", "/run/netns",
	} {
		state[path] = read(path)
	}
	// Of these, what a node would make: the machine may have other things to do meanwhile.
	for line := range strings.Lines(read("/proc/self/mountinfo")) {
		if strings.Contains(line, "kata-") {
			state["mounts"] += line
		}
	}
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if strings.HasPrefix(l.Name, "node") || strings.HasPrefix(l.Name, "peer") {
			state["network interfaces"] += l.Name + " "
		}
	}
	return state
}

// read is a file's content, or what is there instead.
func read(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "absent"
	}
	if info.IsDir() {
		entries, err := os.ReadDir(path)
		return fmt.Sprint("a directory with ", entries, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
