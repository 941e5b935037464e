// Package harness runs the device plugin that is shipped as a child process on a
// simulated node, so that a test can do to it what happens to a container: kill
// it, terminate it, start it again.
package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Plugin is a running plugin.
type Plugin struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed once state is set
	state  *os.ProcessState
	err    error
}

// StartPlugin starts a plugin, built by BuildPlugin, on the node whose directories
// lie below dir, with arguments. Its log goes to stderr. The plugin is killed when ctx ends.
//
// It returns when the process runs, which is before the plugin has registered; a
// kubelet tells when that has happened.
func StartPlugin(ctx context.Context, binary, dir string, stderr io.Writer, args ...string) (*Plugin, error) {
	cmd := exec.CommandContext(ctx, binary, append([]string{dir}, args...)...)
	cmd.Stderr = stderr
	// A test binary that dies, of its own time limit for example, takes its plugins along.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p := &Plugin{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s on %s: %w", binary, dir, err)
	}
	return p, nil
}

// run starts the process and waits until it has gone, both on one thread that does nothing
// else meanwhile. The signal of Pdeathsig comes at the end of the thread that forked, not of
// the process (kernel/exit.c, reparent_leader and its caller), and a thread of Go's may end
// at any time: with the goroutine that some library has locked to it.
func (p *Plugin) run(started chan<- error) {
	defer close(p.exited)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	p.state = p.cmd.ProcessState
}

// PID is the plugin's process ID.
func (p *Plugin) PID() int { return p.cmd.Process.Pid }

// Exited is closed once the process has gone and its log is complete.
func (p *Plugin) Exited() <-chan struct{} { return p.exited }

// Wait waits for the process to go by itself. The code is its exit status, or -1
// if a signal ended it.
func (p *Plugin) Wait(ctx context.Context) (code int, err error) {
	select {
	case <-p.exited:
	case <-ctx.Done():
		return -1, fmt.Errorf("wait for plugin %d to exit: %w", p.PID(), context.Cause(ctx))
	}
	if p.state == nil {
		return -1, fmt.Errorf("wait for plugin %d to exit: %w", p.PID(), p.err)
	}
	return p.state.ExitCode(), nil
}

// Kill ends the plugin as running out of memory does, with no chance to say
// goodbye, and returns when it has gone. A plugin that has gone already is no error.
func (p *Plugin) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.exited
	return nil
}

// Terminate asks the plugin to end, as the removal of its pod does, and waits
// until it has. It returns the exit code, as Wait does, and how long it took. A
// plugin that is still there when ctx ends goes on running.
func (p *Plugin) Terminate(ctx context.Context) (code int, took time.Duration, err error) {
	start := time.Now()
	if err := p.signal(syscall.SIGTERM); err != nil {
		return -1, 0, err
	}
	code, err = p.Wait(ctx)
	return code, time.Since(start), err
}

// Hangup sends SIGHUP, which makes a plugin look anew that listens to it. It ends one that
// does not, or does not yet.
func (p *Plugin) Hangup() error { return p.signal(syscall.SIGHUP) }

// signal sends a signal to the process, unless it has gone.
func (p *Plugin) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to plugin %d: %w", s, p.PID(), err)
	}
	return nil
}
