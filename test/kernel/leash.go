package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// held is a shell's work: it becomes the program, and leaves a watch behind that ends the whole
// process group when standard input ends. That is a pipe whose other end only we have, so the
// kernel closes it however we end. A signal at our death (Pdeathsig) would not do: it reaches the
// program and not what that has started, such as all of make's compilers.
const held = `exec 9<&0 </dev/null; { read -r _ <&9; kill -KILL 0; } >/dev/null 2>&1 & exec "$@" 9<&-`

// leash makes a command that does not outlive this process, nor does what it starts. Files are
// inherited by all of them.
func leash(ctx context.Context, program string, args []string, files ...*os.File) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", held, "leash", program}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.ExtraFiles = files
	if _, err := cmd.StdinPipe(); err != nil { // Wait closes it
		return nil, fmt.Errorf("leash %s: %w", program, err)
	}
	return cmd, nil
}

// room is a directory that goes when this process does, however it ends.
type room struct {
	dir    string
	end    io.Closer
	sweeps *exec.Cmd
}

// sweep waits for the end of standard input, as held does. What was killed may be writing yet, which
// makes the first try fail.
const sweep = `trap '' HUP INT TERM; read -r _; rm -rf -- "$1" || rm -rf -- "$1"`

// newRoom makes a directory.
func newRoom(prefix string) (*room, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	r, err := swept(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return r, nil
}

// swept sees to it that a directory goes with us.
func swept(dir string) (*room, error) {
	cmd := exec.Command("/bin/sh", "-c", sweep, "sweep", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what ends a terminal's programs is not for it
	cmd.Env = []string{"PATH=/usr/bin:/bin"}             // wherever ours leads
	end, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("have %s swept: %w", dir, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("have %s swept: %w", dir, err)
	}
	return &room{dir: dir, end: end, sweeps: cmd}, nil
}

// close removes the directory.
func (r *room) close() error {
	if err := errors.Join(r.end.Close(), r.sweeps.Wait()); err != nil {
		return fmt.Errorf("remove %s: %w", r.dir, err)
	}
	return nil
}
