// Command prepare fetches and builds what the tests on a real kernel need, so that it can be done
// while something else runs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"kata-device-plugin/test/kernel"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "prepare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	_, err = kernel.Prepare(ctx, dir, os.Stderr)
	return err
}
