// Command prepare builds what a node and a control plane are made of into the user's
// cache, so that it can be done beside something else, or before a test with a deadline.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"kata-device-plugin/test/peer"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	programs, err := peer.BuildCluster(ctx, os.Stderr)
	if err == nil {
		err = programs.Close()
	}
	stop()
	if missing := new(peer.MissingError); errors.As(err, &missing) {
		err = fmt.Errorf("%w; install them first", err)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		os.Exit(1)
	}
}
