package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"kata-device-plugin/test/peer/wire"
)

// box is what a node or a control plane runs in: a state directory, and namespaces with a
// first process that starts and ends with the box. Its name is its host name.
type box struct {
	t     testing.TB
	name  string
	dir   string // the state directory
	state stateDir
	first *exec.Cmd
	hold  io.Closer // the first process ends when it is closed
	web   *http.Client
}

// newBox makes a state directory with directories in it.
func newBox(t testing.TB, name string, dirs ...string) (b *box, err error) {
	sweep()
	b = &box{t: t, name: name}
	b.web = &http.Client{Transport: &http.Transport{DialContext: b.dial, DisableKeepAlives: true}}
	if b.state, err = newStateDir(); err != nil {
		return b, err
	}
	b.dir = b.state.path
	for _, d := range append(dirs, "aside/run", "aside/dev", "etc", "sysctl", "log", "lib") {
		if err := os.MkdirAll(filepath.Join(b.dir, d), 0o755); err != nil {
			return b, fmt.Errorf("make the state directory: %w", err)
		}
	}
	return b, b.configure(map[string]string{"hosts": "127.0.0.1 localhost " + name + "\n", "resolv.conf": ""})
}

// configure writes files in the directory etc of the state directory.
func (b *box) configure(files map[string]string) error {
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(b.dir, "etc", name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write the configuration of %s: %w", b.name, err)
		}
	}
	return nil
}

// etc is where the program that runs inside finds what configure has written.
func etc(name string) string { return filepath.Join(wire.StateDir, "etc", name) }

// enter makes the namespaces, starts the first process, and waits until it listens.
func (b *box) enter(ctx context.Context, p *Programs, spec wire.Spec) error {
	spec.State, spec.Hostname, spec.Sysctls = b.dir, b.name, Sysctls()
	spec.Programs = map[string]string{"peer-cni": p.paths["inside"]}
	for name, path := range p.paths {
		if strings.HasPrefix(path, "/usr/") || strings.HasPrefix(path, "/bin/") || strings.HasPrefix(path, "/sbin/") {
			continue // the system's are seen where they are
		}
		spec.Programs[name] = path
	}
	text, err := json.Marshal(spec)
	if err == nil {
		err = os.WriteFile(filepath.Join(b.dir, specFile), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("say what %s is to be: %w", b.name, err)
	}
	// Of an earlier life, if there was one.
	if err := os.Remove(filepath.Join(b.dir, wire.ControlEnd)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("make way for %s: %w", b.name, err)
	}
	log, err := os.Create(b.Log("first"))
	if err != nil {
		return fmt.Errorf("make the first process's log: %w", err)
	}
	defer log.Close()
	b.first = exec.Command(p.paths["inside"], "init", filepath.Join(b.dir, specFile))
	b.first.Stdout, b.first.Stderr = log, log
	b.first.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Setsid:     true, // an interrupt at the terminal is for the test, which then ends the box
	}
	if b.hold, err = b.first.StdinPipe(); err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	if err := b.first.Start(); err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	return Await(ctx, "the first process of "+b.name, func(ctx context.Context) error {
		// It only ever says why it cannot go on.
		if text, _ := os.ReadFile(log.Name()); len(text) > 0 {
			giveUp(errors.New(string(text)))
		}
		conn, err := dialUnix(ctx, filepath.Join(b.dir, wire.ControlEnd))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// leave ends the first process, and with it everything else inside: the kernel does that
// before it lets go of the first process of a process namespace.
func (b *box) leave() error {
	var errs []error
	if b.hold != nil {
		errs = append(errs, b.hold.Close())
	}
	if b.first != nil && b.first.Process != nil {
		if err := b.first.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("end the first process of %s: %w", b.name, err))
		}
	}
	b.hold, b.first = nil, nil
	return errors.Join(errs...)
}

// remove removes the state directory, but for the logs of a test that has failed.
func (b *box) remove() error {
	var err error
	if b.dir != "" && b.t.Failed() {
		err = b.keepLogs()
	}
	return errors.Join(err, b.state.remove())
}

// keepLogs moves the logs out of the state directory.
func (b *box) keepLogs() error {
	to := filepath.Join(os.TempDir(), keptPrefix+filepath.Base(b.dir))
	if err := os.Rename(filepath.Join(b.dir, "log"), to); err != nil {
		return fmt.Errorf("keep the logs: %w", err)
	}
	b.t.Logf("the logs of %s in %s are in %s", b.name, b.t.Name(), to)
	plugins, err := filepath.Glob(filepath.Join(to, "plugin-*.log"))
	for _, name := range plugins {
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("show the plugin's log: %w", err)
		}
		b.t.Logf("%s:\n%s", filepath.Base(name), text)
	}
	return err
}

// pid is the first process's number outside.
func (b *box) pid() string { return strconv.Itoa(b.first.Process.Pid) }

// Path is where a path inside is for the test, until the box ends. No part of it may be a
// link to an absolute path: that would be followed outside.
func (b *box) Path(inside string) string { return filepath.Join("/proc", b.pid(), "root", inside) }

// Log is the path of a program's log: "kubelet", "containerd", a plugin's name.
func (b *box) Log(name string) string { return filepath.Join(b.dir, "log", name+".log") }
