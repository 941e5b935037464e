// Command rooted is kata-device-plugin with its root paths below a directory, for
// simulated nodes. Everything else is the shipped program's code.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"kata-device-plugin/internal/agent"
	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/host"
)

func main() { os.Exit(run()) }

func run() int {
	const name = "kata-device-plugin"
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: rooted DIRECTORY")
		return exit.Usage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return agent.Passthrough(name, "simulated", host.Under(os.Args[1], name)).Command(ctx, os.Args[2:], os.Stderr)
}
