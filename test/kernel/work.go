package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// ErrMissing says that the machine lacks something that cannot be installed from here.
var ErrMissing = errors.New("this machine lacks something")

// work is one preparation.
type work struct {
	out   io.Writer
	cache string
	dir   string   // for what is needed only while this process runs
	lock  *os.File // while the cache is ours
}

func (w *work) say(format string, args ...any) {
	fmt.Fprintf(w.out, "%s kernel: %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// command makes a command that ends with us. It keeps the cache locked as long as anything of it
// lives, so the next run never works beside the rest of one that was killed.
func (w *work) command(ctx context.Context, program string, args ...string) (*exec.Cmd, error) {
	var files []*os.File
	if w.lock != nil {
		files = append(files, w.lock)
	}
	cmd, err := leash(ctx, program, args, files...)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(cmd.Environ(), "TMPDIR="+w.dir) // what a killed compiler leaves goes with the rest
	return cmd, nil
}

// run runs a command and returns what it printed. Its error has what the command complained about.
func (w *work) run(ctx context.Context, dir, program string, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	cmd, err := w.command(ctx, program, args...)
	if err != nil {
		return "", err
	}
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run %s %s: %w: %s", filepath.Base(program), strings.Join(args[:min(len(args), 3)], " "), err,
			tail(complaint.String()+out.String(), 20))
	}
	return strings.TrimSpace(out.String()), nil
}

// tail is the end of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// install installs those packages that are missing. Without root, or without apt, it says which.
func (w *work) install(ctx context.Context, needs []need) error {
	var missing []string
	for _, n := range needs {
		_, err := exec.LookPath(n.program)
		if n.file != "" {
			_, err = os.Stat(n.file)
		}
		if err != nil {
			missing = append(missing, n.pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(missing, " ")
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("%w: the Debian packages %s", ErrMissing, list)
	}
	w.say("installing %s", list)
	if _, err := w.run(ctx, "", "apt-get", "-qq", "update"); err != nil {
		return fmt.Errorf("install %s: %w", list, err)
	}
	args := append([]string{"-qq", "install", "--yes", "--no-install-recommends"}, missing...)
	if _, err := w.run(ctx, "", "apt-get", args...); err != nil {
		return fmt.Errorf("install %s: %w", list, err)
	}
	return nil
}

// plain makes a version a name that make and QEMU take in a path.
func plain(version string) string {
	return regexp.MustCompile(`[^A-Za-z0-9.-]`).ReplaceAllString(version, "_")
}
