package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"kata-device-plugin/test/harness"
)

// TestConfined: the process has no TCP or UDP socket, and has confined itself, all its
// threads included. What that keeps it from is shown in internal/confine.
func TestConfined(t *testing.T) {
	n := newNode(t, "hgx-h100")
	n.start()
	proc := fmt.Sprintf("/proc/%d/", n.Plugin.PID())
	inodes := map[string]bool{}
	fds, err := os.ReadDir(proc + "fd")
	n.must(err)
	for _, fd := range fds {
		if link, err := os.Readlink(proc + "fd/" + fd.Name()); err == nil && strings.HasPrefix(link, "socket:[") {
			inodes[strings.Trim(link, "socket:[]")] = true
		}
	}
	if len(inodes) == 0 {
		t.Error("no sockets at all: the test looks in the wrong place")
	}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6", "raw", "packet"} {
		data, err := os.ReadFile(proc + "net/" + table)
		if err != nil {
			continue // a kernel without that protocol
		}
		for line := range strings.Lines(string(data)) {
			for field := range strings.FieldsSeq(line) {
				if inodes[field] {
					t.Errorf("a socket of %s: %s", table, line)
				}
			}
		}
	}
	tasks, err := filepath.Glob(proc + "task/*/status")
	n.must(err)
	for _, task := range tasks {
		status, err := os.ReadFile(task)
		n.must(err)
		// Landlock needs no_new_privs, which the library sets on all threads.
		if !regexp.MustCompile(`(?m)^NoNewPrivs:\t1$`).Match(status) {
			t.Errorf("%s: privileges can still be gained", task)
		}
	}
	if strings.Contains(n.log.String(), "without Landlock") {
		t.Errorf("it did not confine itself: %s", n.log)
	}
}

// TestInterrupt: SIGINT stops the plugin as SIGTERM does.
func TestInterrupt(t *testing.T) {
	n := newNode(t, "gb200")
	n.start()
	began := time.Now()
	n.must(syscall.Kill(n.Plugin.PID(), syscall.SIGINT))
	code, err := n.Plugin.Wait(n.ctx)
	n.must(err)
	if took := time.Since(began); code != 0 || took > time.Second {
		t.Errorf("exit code %d after %v", code, took)
	}
	if left, _ := filepath.Glob(filepath.Join(n.Roots.DevicePlugins, "kata-*.sock")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	if _, err := n.Resolve(harness.GPU + "=" + n.GPUs()[0]); err != nil {
		t.Error(err)
	}
	if strings.Contains(n.log.String(), "not ready") {
		t.Errorf("a clean stop is logged as trouble: %s", n.log)
	}
}
