package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
)

// Command is the path of kubectl-device.
type Command string

// BuildCommand builds kubectl-device as it is shipped.
func BuildCommand(ctx context.Context, outDir string) (Command, error) {
	path, err := build(ctx, outDir, "cmd/kubectl-device")
	return Command(path), err
}

// Run runs it. That it exits with another code than 0 is no error.
func (c Command) Run(ctx context.Context, args ...string) (stdout, stderr string, code int, err error) {
	var out, told bytes.Buffer
	run := exec.CommandContext(ctx, string(c), args...)
	run.Stdout, run.Stderr = &out, &told
	if err := run.Run(); err != nil {
		if _, exited := errors.AsType[*exec.ExitError](err); !exited {
			return "", "", 0, fmt.Errorf("run kubectl-device: %w", err)
		}
	}
	return out.String(), told.String(), run.ProcessState.ExitCode(), nil
}
