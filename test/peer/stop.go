package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Stop ends the node and removes everything it was made of, but for the logs of a test
// that has failed. To stop it again does nothing.
func (n *Node) Stop() error {
	if n.stopped {
		return nil
	}
	n.stopped = true
	errs := []error{n.leave()}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if n.cgroup != "" {
		errs = append(errs, removeCgroups(ctx, n.cgroup))
	}
	errs = append(errs, n.remove())
	if n.machine != "" {
		errs = append(errs, os.RemoveAll(n.machine))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop the node: %w", err)
	}
	return nil
}

// Sysctls are the values below /proc/sys that kubelet sets, which belong to the whole
// machine. A node has files of its own in their place.
func Sysctls() []string {
	return []string{
		"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	}
}

// Traces are what shows that a node exists, or existed: processes, mounts, control
// groups and directories. After Stop there is none.
func (n *Node) Traces() ([]string, error) {
	var traces []string
	groups, err := cgroups(n.cgroup)
	traces = append(traces, groups...)
	for _, dir := range []string{n.dir, n.machine} {
		if _, err := os.Lstat(dir); err == nil {
			traces = append(traces, dir)
		}
	}
	processes, err2 := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		mounts, err := os.ReadFile(filepath.Join(p, "mountinfo"))
		if err == nil && strings.Contains(string(mounts), filepath.Base(n.dir)) {
			command, _ := os.ReadFile(filepath.Join(p, "cmdline"))
			traces = append(traces, p+" "+strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return traces, errors.Join(err, err2)
}

func dialUnix(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}
