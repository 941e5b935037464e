// Package peer runs real nodes for tests: kubelet and containerd as they ship, in
// namespaces of their own, beside a simulated machine and the shipped plugin.
//
// A node has its own processes, mounts, network, host name and control group, and its
// own files in place of the few values of the kernel that kubelet sets. Several nodes
// may run at once. Everything it is made of ends when its first process does, which is
// when the test ends, in whatever way.
package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/peer/wire"
)

// Options say what a node is to be.
type Options struct {
	Programs *Programs
	Platform string // of the simulated machine; empty is "hgx-h100"
	CDISize  string // CDI specs get a file system of this size; empty is enough of everything
	Stopped  bool   // kubelet is not started yet
}

// Hostname is every node's name.
const Hostname = "peer-node"

// Node is a machine with kubelet and containerd.
type Node struct {
	// Machine is the simulated hardware.
	Machine *sim.Node

	t       testing.TB
	dir     string // the state directory
	machine string // the simulated machine's directory
	cgroup  string
	first   *exec.Cmd
	hold    io.Closer // the first process ends when it is closed
	web     *http.Client

	containerd *Containerd
	kubelet    *Kubelet
	plugin     *Plugin
	plugins    int
	stopped    bool
}

// StartNode starts a node. It ends with the test; if the test failed, its logs are kept
// and the test says where.
func StartNode(t testing.TB, o Options) *Node {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	n := &Node{t: t}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	var took []string
	started := time.Now()
	err := n.bring(ctx, o, func(step string) {
		took = append(took, fmt.Sprintf("%s %.2f s", step, time.Since(started).Seconds()))
		started = time.Now()
	})
	if err != nil {
		t.Fatalf("start a node: %v", err)
	}
	t.Logf("a node was started: %s", strings.Join(took, ", "))
	return n
}

// bring starts everything, in order, and tells of each step that is done.
func (n *Node) bring(ctx context.Context, o Options, done func(step string)) error {
	if err := n.lay(o); err != nil {
		return err
	}
	done("machine")
	if err := n.namespaces(ctx, o); err != nil {
		return err
	}
	done("namespaces")
	n.web = &http.Client{Transport: &http.Transport{DialContext: n.dial, DisableKeepAlives: true}}
	n.containerd = &Containerd{service{node: n, name: "containerd"}}
	n.kubelet = &Kubelet{service{node: n, name: "kubelet"}}
	n.plugin = n.AnotherPlugin()
	if err := n.containerd.Start(ctx); err != nil {
		return err
	}
	done("containerd")
	if err := n.containerd.load(ctx, o.Programs); err != nil {
		return err
	}
	done("images")
	if o.Stopped {
		return nil
	}
	if err := n.kubelet.Start(ctx); err != nil {
		return err
	}
	done("kubelet")
	return nil
}

// lay makes the directories and files of a node.
func (n *Node) lay(o Options) (err error) {
	sweep()
	pid := strconv.Itoa(os.Getpid())
	if n.dir, err = os.MkdirTemp("", statePrefix+pid+"-"); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	n.cgroup = cgroupPrefix + strings.TrimPrefix(filepath.Base(n.dir), statePrefix)
	for _, d := range []string{
		"aside/run", "aside/dev", "etc", "sysctl", "manifests", "cni", "log/pods", "log/containers",
		"lib/containerd", "lib/kubelet/device-plugins", "lib/kubelet/volumeplugins",
	} {
		if err := os.MkdirAll(filepath.Join(n.dir, d), 0o755); err != nil {
			return fmt.Errorf("make the state directory: %w", err)
		}
	}
	for name, text := range map[string]string{
		"etc/hosts":         "127.0.0.1 localhost " + Hostname + "\n",
		"etc/resolv.conf":   "",
		"etc/kubelet.yaml":  kubeletConfig(n.cgroup),
		"etc/containerd":    containerdConfig(o.Programs.paths["runc"], n.dir),
		"cni/peer.conflist": `{"cniVersion":"1.0.0","name":"peer","plugins":[{"type":"peer-cni"}]}`,
	} {
		if err := os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the node's configuration: %w", err)
		}
	}
	name := o.Platform
	if name == "" {
		name = "hgx-h100"
	}
	platform, err := sim.PlatformByName(name)
	if err != nil {
		return err
	}
	if n.machine, err = sim.TempDir(); err != nil {
		return err
	}
	if n.Machine, err = sim.New(n.machine, platform); err != nil {
		return err
	}
	return makeCgroup(n.cgroup)
}

// namespaces starts the node's first process, and waits until it listens.
func (n *Node) namespaces(ctx context.Context, o Options) error {
	programs := map[string]string{"peer-cni": o.Programs.paths["inside"]}
	for name, path := range o.Programs.paths {
		if strings.HasPrefix(path, "/usr/") || strings.HasPrefix(path, "/bin/") || strings.HasPrefix(path, "/sbin/") {
			continue // the system's are seen where they are
		}
		programs[name] = path
	}
	spec, err := json.Marshal(wire.Spec{
		State: n.dir, Machine: n.machine, Hostname: Hostname, Programs: programs, Sysctls: Sysctls(), CDISize: o.CDISize,
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(n.dir, specFile), spec, 0o600)
	}
	if err != nil {
		return fmt.Errorf("say what the node is to be: %w", err)
	}
	log, err := os.Create(filepath.Join(n.dir, "log/first.log"))
	if err != nil {
		return fmt.Errorf("make the first process's log: %w", err)
	}
	defer log.Close()
	n.first = exec.Command(o.Programs.paths["inside"], "init", filepath.Join(n.dir, specFile))
	n.first.Stdout, n.first.Stderr = log, log
	n.first.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Setsid:     true, // an interrupt at the terminal is for the test, which then ends the node
	}
	if n.hold, err = n.first.StdinPipe(); err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	if err := n.first.Start(); err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	err = Await(ctx, "the node's first process", func(ctx context.Context) error {
		text, _ := os.ReadFile(log.Name())
		if len(text) > 0 {
			return errors.New(string(text))
		}
		conn, err := dialUnix(ctx, filepath.Join(n.dir, wire.ControlEnd))
		if err != nil {
			return err
		}
		return conn.Close()
	})
	return err
}

// Containerd is the node's container runtime.
func (n *Node) Containerd() *Containerd { return n.containerd }

// Kubelet is the node's kubelet.
func (n *Node) Kubelet() *Kubelet { return n.kubelet }

// Plugin is the node's device plugin. It is not started with the node.
func (n *Node) Plugin() *Plugin { return n.plugin }

// Path is where a path inside the node is for the test. It is good until the node ends.
func (n *Node) Path(inside string) string {
	return filepath.Join("/proc", strconv.Itoa(n.first.Process.Pid), "root", inside)
}

// Log is the path of a program's log: "kubelet", "containerd" or a plugin's name.
func (n *Node) Log(name string) string { return filepath.Join(n.dir, "log", name+".log") }
