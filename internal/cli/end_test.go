package cli_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kata-device-plugin/internal/cli"
	"kata-device-plugin/internal/exit"
)

// TestToldToEnd: a command ends that was told to once, also one that waits for an input that never comes.
func TestToldToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never, writer := io.Pipe()
		defer writer.Close()
		ctx, cancel := context.WithCancel(t.Context())
		stopped := 0
		var stderr bytes.Buffer
		time.AfterFunc(time.Hour, cancel)
		start := time.Now()
		code := cli.Process(ctx, func() { stopped++ }, cli.Env{
			Name: "kubectl-device", Version: "v0", Args: []string{"check", "-"}, Stdin: never, Stdout: io.Discard, Stderr: &stderr,
			Getenv: func(string) string { return "" }, Host: "/",
		})
		if code != exit.Interrupted || stopped != 1 {
			t.Errorf("it ended with %d, and gave signals back %d times; want %d, once", code, stopped, exit.Interrupted)
		}
		if took := time.Since(start); took < time.Hour || took > time.Hour+15*time.Second {
			t.Errorf("it ended after %s, it was told to after an hour", took)
		}
		if !strings.Contains(stderr.String(), "another signal ends this one at once") {
			t.Errorf("it said %q", stderr.String())
		}
	})
}
