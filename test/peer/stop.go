package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kata-device-plugin/test/peer/wire"
)

// What the names of a node's directory and control group begin with. The number of the
// process that made them follows.
const (
	statePrefix  = "peer-"
	cgroupPrefix = "kata-peer-"
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

// sweep removes what a test process left that was killed: its nodes ended with it, but
// nobody removed their directories and control groups.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), statePrefix+"[0-9]*-*"))
	for _, dir := range dirs {
		name := strings.TrimPrefix(filepath.Base(dir), statePrefix)
		if !abandoned(name) {
			continue
		}
		removeMachine(dir)
		if os.RemoveAll(dir) == nil {
			removeEmpty(cgroupPrefix + name)
		}
	}
}

// removeMachine removes the simulated machine of an abandoned state directory, which is
// elsewhere. The name is checked, since it was read from a file in a public place.
func removeMachine(dir string) {
	var spec wire.Spec
	info, err := os.Lstat(filepath.Join(dir, specFile))
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		return
	}
	text, err := os.ReadFile(filepath.Join(dir, specFile))
	if err == nil && json.Unmarshal(text, &spec) == nil && strings.HasPrefix(filepath.Base(spec.Machine), "kata-sim-") {
		_ = os.RemoveAll(spec.Machine) // what cannot be removed is in nobody's way
	}
}

// specFile is what the first process is told, in the state directory.
const specFile = "spec"

// abandoned says whether the process has gone that a name begins with.
func abandoned(name string) bool {
	pid, _, _ := strings.Cut(name, "-")
	number, err := strconv.Atoi(pid)
	return err == nil && errors.Is(unix.Kill(number, 0), unix.ESRCH)
}

// removeEmpty removes control groups if nothing is in them.
func removeEmpty(name string) {
	all, err := cgroups(name)
	for _, dir := range all {
		err = errors.Join(err, os.Remove(dir))
	}
	_ = err // the kernel refuses what is not empty, which is then not for us to remove
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
