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
}

func (w *work) say(format string, args ...any) {
	fmt.Fprintf(w.out, "%s kernel: %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// run runs a command and returns what it printed. Its error has what the command complained about.
func run(ctx context.Context, dir, program string, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
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

// install installs the packages that are missing. Without root, or without apt, it says which.
func (w *work) install(ctx context.Context) error {
	var missing []string
	for _, n := range needs() {
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
	if _, err := run(ctx, "", "apt-get", "-qq", "update"); err != nil {
		return fmt.Errorf("install %s: %w", list, err)
	}
	args := append([]string{"-qq", "install", "--yes", "--no-install-recommends"}, missing...)
	if _, err := run(ctx, "", "apt-get", args...); err != nil {
		return fmt.Errorf("install %s: %w", list, err)
	}
	return nil
}

// plain makes a version a name that make and QEMU take in a path.
func plain(version string) string {
	return regexp.MustCompile(`[^A-Za-z0-9.-]`).ReplaceAllString(version, "_")
}
