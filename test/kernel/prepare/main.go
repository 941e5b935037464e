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
	lab, err := kernel.Prepare(ctx, os.Stderr)
	if err == nil {
		err = lab.Close()
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		os.Exit(1)
	}
}
