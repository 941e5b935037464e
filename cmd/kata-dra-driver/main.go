// Command kata-dra-driver offers the node's VFIO-bound devices to claims of Dynamic Resource
// Allocation.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"kata-device-plugin/internal/dradriver"
	"kata-device-plugin/internal/host"
)

// version is set by the linker.
var version = "unknown"

func main() { os.Exit(run()) }

func run() int {
	const name = "kata-dra-driver"
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return dradriver.Command(ctx, name, version, host.System(name), os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
}
