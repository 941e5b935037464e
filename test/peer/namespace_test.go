//go:build node

package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/peer/wire"
)

// bare is a node with namespaces and nothing in them.
func bare(t *testing.T) (*Node, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	p := &Programs{paths: map[string]string{}}
	if err := p.find(); err != nil {
		skip(t, err)
	}
	var err error
	if p.own, err = newStateDir(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := p.build(ctx, p.own.path, build{dir: ".", cgo: "0", packages: []string{testModule + "/peer/cmd/inside"}}); err != nil {
		t.Fatal(err)
	}
	n := &Node{box: &box{t: t}, options: Options{Programs: p}}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := n.lay(); err != nil {
		t.Fatal(err)
	}
	if err := makeCgroup(n.cgroup); err != nil {
		t.Fatal(err)
	}
	if err := n.enter(ctx, p, wire.Spec{Machine: n.machine, Network: wire.Alone, BootID: bootID()}); err != nil {
		t.Fatal(err)
	}
	return n, ctx
}

// skip ends a test that cannot run here, which in CI it has to.
func skip(t *testing.T, err error) {
	t.Helper()
	if inCI() {
		t.Fatal(err)
	}
	fmt.Fprintln(os.Stderr, "SKIPPED:", t.Name(), err)
	t.Skip(err)
}

// TestInside: what runs inside a node has its own processes, mounts, network and name,
// and cannot write to the host's files.
func TestInside(t *testing.T) {
	n, ctx := bare(t)
	for script, want := range map[string]string{
		"hostname":                                     Hostname,
		"ip -o -4 addr show dev node0":                 "192.0.2.10",
		"ip route":                                     "default via 192.0.2.1",
		"ls /dev/vfio/devices":                         "vfio0",
		"stat -c %t:%T /dev/vfio/devices/vfio0":        "1ff:0",
		"stat -c %t:%T /dev/infiniband/uverbs0":        "e7:c0",
		"touch /usr/x 2>&1 || true":                    "Read-only",
		"echo 7 2>&1 >/proc/sys/vm/swappiness || true": "Read-only",
		"echo 1 2>&1 >/sys/kernel/mm/ksm/run || true":  "Read-only",
		"echo 7 >/proc/sys/vm/overcommit_memory; cat /proc/sys/vm/overcommit_memory": "7",
		"ls /proc | grep -c '^[0-9]' | grep -w [3-9] && echo few":                    "few",
	} {
		out, err := n.Run(ctx, "/bin/sh", "-c", script)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %q, %v; want %q", script, out, err, want)
		}
	}
	if text, _ := os.ReadFile("/proc/sys/vm/overcommit_memory"); strings.TrimSpace(string(text)) == "7" {
		t.Error("the machine's vm.overcommit_memory was set")
	}
	if _, err := n.Run(ctx, "/bin/false"); err == nil {
		t.Error("false succeeded")
	}
	if _, err := n.Run(ctx, "/bin/none"); err == nil {
		t.Error("a program that is not there ran")
	}
}

// TestProcess: signals reach the process they are for, and its end is told, also that of
// one whose children it left to the first process.
func TestProcess(t *testing.T) {
	n, ctx := bare(t)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		p, err := n.start(ctx, "sleep", wire.Start{Path: "/bin/sh", Args: []string{"-c", "sleep 0.05 & sleep 600"}, Log: "/var/log/sleep.log"})
		if err != nil {
			t.Fatal(err)
		}
		exit, err := p.end(ctx, s)
		if err != nil || exit.Signal != s || exit.String() != "ended by "+s.String() {
			t.Errorf("%s: %v, %v", s, exit, err)
		}
		if err := p.Signal(s); err != nil {
			t.Errorf("a signal to a process that has gone: %v", err)
		}
	}
	p, err := n.start(ctx, "exit", wire.Start{Path: "/bin/sh", Args: []string{"-c", "exit 3"}, Log: "/var/log/exit.log"})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(ctx); err != nil || exit.Code != 3 {
		t.Errorf("%v, %v", exit, err)
	}
}

// TestKilled: a node ends whole when its first process is killed.
func TestKilled(t *testing.T) {
	n, ctx := bare(t)
	p, err := n.start(ctx, "sleep", wire.Start{Path: "/bin/sleep", Args: []string{"600"}, Log: "/var/log/sleep.log"})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(ctx); err == nil {
		t.Error("a process ended in good order though nobody was there to see it")
	}
	if err := n.Stop(); err == nil {
		t.Error("that the first process was killed is no news")
	}
	if traces, err := n.Traces(); len(traces) > 0 || err != nil {
		t.Errorf("left: %v, %v", traces, err)
	}
}

// TestDial: the test reaches what listens inside, and nothing that listens outside.
func TestDial(t *testing.T) {
	n, ctx := bare(t)
	const address = "127.0.0.1:4000"
	_, err := n.start(ctx, "nc", wire.Start{Path: n.options.Programs.paths["busybox"], Args: []string{"nc", "-l", "-p", "4000", "-e", "echo", "inside"}, Log: "/var/log/nc.log"})
	if err != nil {
		t.Fatal(err)
	}
	err = Await(ctx, "an answer from inside", func(ctx context.Context) error {
		conn, err := n.dial(ctx, "tcp", address)
		if err != nil {
			return err
		}
		defer conn.Close()
		text, err := io.ReadAll(conn)
		if string(text) != "inside\n" {
			err = errors.Join(err, fmt.Errorf("it is %q", text))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if conn, err := n.dial(ctx, "tcp", l.Addr().String()); err == nil {
		t.Error("a listener of the host was reached", conn.Close())
	}
}

// TestSweep: only what is certainly ours, and has no owner any more, is removed.
func TestSweep(t *testing.T) {
	if os.Geteuid() != 0 {
		skip(t, errors.New("it takes root to make control groups"))
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	at := func(name string) string { return filepath.Join(tmp, statePrefix+name) }
	lay := func(name string, mode os.FileMode, lock bool) {
		t.Helper()
		err := errors.Join(os.Mkdir(at(name), mode), os.Chmod(at(name), mode))
		if lock {
			err = errors.Join(err, os.WriteFile(filepath.Join(at(name), lockFile), nil, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	live, err := newStateDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = live.remove() })
	lay(unique("abandoned"), 0o700, true)
	lay("public", 0o777, true)
	lay("being-made", 0o700, false)
	lay("others", 0o700, true)
	lay(unique("busy"), 0o700, true)
	// Their names are the machine's, so they have to differ from those of another run.
	gone, busy := cgroupPrefix+unique("abandoned"), cgroupPrefix+unique("busy")
	t.Cleanup(func() { removeEmpty(gone); removeEmpty(busy) })
	if err := errors.Join(os.Chown(at("others"), 65534, 65534), os.Symlink(live.path, at("link")),
		makeCgroup(gone), makeCgroup(busy)); err != nil {
		t.Fatal(err)
	}
	end := occupy(t, busy)
	runtime.GC() // a file that nothing refers to would be closed, and its lock given up
	runtime.GC()
	sweep()
	left := map[string]bool{filepath.Base(live.path): true}
	for _, name := range []string{"public", "being-made", "others", "link", unique("busy")} {
		left[statePrefix+name] = true
	}
	entries, err := os.ReadDir(tmp)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !left[e.Name()] {
			t.Errorf("%s was left", e.Name())
		}
		delete(left, e.Name())
	}
	for name := range left {
		t.Errorf("%s was removed", name)
	}
	if groups, err := cgroups(gone); len(groups) > 0 || err != nil {
		t.Errorf("left: %v, %v", groups, err)
	}
	end()
	sweep()
	if _, err := os.Lstat(at(unique("busy"))); err == nil {
		t.Error("what was busy is still there when it is not any more")
	}
}

// unique makes a name that no other process of this machine uses.
func unique(name string) string { return name + "-" + strconv.Itoa(os.Getpid()) }

// occupy has a process live in a control group until the end.
func occupy(t *testing.T, group string) (end func()) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // that it has gone is what counts
		_ = cmd.Wait()
	})
	t.Cleanup(end)
	groups, err := cgroups(group)
	joined := 0
	for _, dir := range groups {
		e := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
		switch {
		case e == nil:
			joined++
		case !errors.Is(e, syscall.ENOSPC): // a cpuset of version 1 without any processor
			err = errors.Join(err, e)
		}
	}
	if err != nil || joined == 0 {
		t.Fatalf("join %d of %v: %v", joined, groups, err)
	}
	return end
}

// victim names the variable that has TestVictim wait for its end.
const victim = "PEER_VICTIM"

// TestVictim is the test that TestRunnerKilled kills.
func TestVictim(t *testing.T) {
	if os.Getenv(victim) == "" {
		return
	}
	n, ctx := bare(t)
	if _, err := n.start(ctx, "sleep", wire.Start{Path: "/bin/sleep", Args: []string{"600"}, Log: "/var/log/sleep.log"}); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode([]string{n.dir, n.machine, n.cgroup}); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until whoever is to kill it has gone
}

// TestRunnerKilled: when the test's own process is killed, its nodes end with it, and what
// is left of them on disk is gone with the next node of anybody.
func TestRunnerKilled(t *testing.T) {
	bare(t) // or it says what is missing
	cmd := exec.Command(os.Args[0], "-test.run=^TestVictim$")
	cmd.Env = append(os.Environ(), victim+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var place [3]string
	if err := json.NewDecoder(out).Decode(&place); err != nil {
		t.Fatal(err, cmd.Process.Kill(), cmd.Wait())
	}
	n := &Node{box: &box{t: t, dir: place[0]}, machine: place[1], cgroup: place[2]}
	if traces, err := n.Traces(); len(traces) < 4 || err != nil {
		t.Errorf("a running node shows only %v, %v", traces, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // that it was killed is known
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err = Await(ctx, "nothing to be left", func(context.Context) error {
		sweep()
		machine, err := sim.TempDir() // sweeps up after those that simulated one
		if err != nil {
			return err
		}
		if err := os.RemoveAll(machine); err != nil {
			return err
		}
		traces, err := n.Traces()
		if len(traces) > 0 {
			err = errors.Join(err, fmt.Errorf("left: %v", traces))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
