package peer

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// MissingError says what a machine lacks to run a node.
type MissingError struct{ Things []string }

func (e *MissingError) Error() string {
	return "this machine cannot run a node: it lacks " + strings.Join(e.Things, ", ")
}

// find looks for what the machine has to bring along: the programs that are not built,
// and root. It looks for everything before it complains.
func (p *Programs) find() error {
	var missing []string
	if os.Geteuid() != 0 {
		missing = append(missing, "root")
	}
	for _, name := range []string{"runc", "ip"} {
		path, err := exec.LookPath(name)
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s (Debian's package %s)", name, map[string]string{"runc": "runc", "ip": "iproute2"}[name]))
			continue
		}
		p.paths[name] = path
	}
	if path, err := exec.LookPath("busybox"); err == nil && static(path) {
		p.paths["busybox"] = path
	} else {
		missing = append(missing, "a static busybox (Debian's package busybox-static)")
	}
	if missing != nil {
		return &MissingError{Things: missing}
	}
	return nil
}

// static says whether a program runs in an image that holds nothing else.
func static(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}

// Main runs the tests of a package whose nodes run the programs that build makes, and
// returns the exit code. Where something is missing on the machine that is said, and in CI
// it is a failure.
func Main(m *testing.M, build func(context.Context, io.Writer) (*Programs, error), programs **Programs) int {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute)
	defer cancel()
	p, err := build(ctx, os.Stderr)
	if missing := new(MissingError); errors.As(err, &missing) && !inCI() {
		fmt.Fprintln(os.Stderr, "SKIPPED: no test was run:", err)
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*programs = p
	code := m.Run()
	if err := p.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

//nolint:forbidigo // where a test runs is for its environment to say
func inCI() bool { return os.Getenv("CI") != "" }
