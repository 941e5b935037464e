//go:build node

package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kata-device-plugin/test/peer/wire"
)

// bare is a node with namespaces and nothing in them.
func bare(t *testing.T) (*Node, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	p := &Programs{paths: map[string]string{}}
	if err := p.find(); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	dir := t.TempDir()
	if err := p.build(ctx, dir, build{dir: ".", cgo: "0", packages: []string{testModule + "/peer/cmd/inside"}}); err != nil {
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

// TestInside: what runs inside a node has its own processes, mounts, network and name,
// and cannot write to the host's files.
func TestInside(t *testing.T) {
	n, ctx := bare(t)
	for script, want := range map[string]string{
		"hostname":                              Hostname,
		"ip -o -4 addr show dev node0":          "192.0.2.10",
		"ip route":                              "default via 192.0.2.1",
		"ls /dev/vfio/devices":                  "vfio0",
		"stat -c %t:%T /dev/vfio/devices/vfio0": "1ff:0",
		"touch /usr/x 2>&1 || true":             "Read-only",
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if conn, err := n.dial(ctx, "tcp", l.Addr().String()); err == nil {
		t.Error("a listener of the host was reached", conn.Close())
	}
}

// TestSweep: what a test process left that was killed is removed by the next node, and
// what belongs to one that lives is not.
func TestSweep(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	for pid, want := range map[int]bool{cmd.ProcessState.Pid(): false, os.Getpid(): true} {
		dir, err := os.MkdirTemp("", statePrefix+strconv.Itoa(pid)+"-")
		if err != nil {
			t.Fatal(err)
		}
		name := cgroupPrefix + strings.TrimPrefix(filepath.Base(dir), statePrefix)
		if err := makeCgroup(name); err != nil {
			t.Fatal(err)
		}
		sweep()
		_, err = os.Stat(dir)
		groups, err2 := cgroups(name)
		if there := err == nil; there != want || (len(groups) > 0) != want || err2 != nil {
			t.Errorf("process %d: the directory is there: %v, control groups: %v, %v", pid, there, groups, err2)
		}
		removeEmpty(name)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
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
	select {}
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
