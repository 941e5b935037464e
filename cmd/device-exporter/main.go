// Command device-exporter tells Prometheus which pod has which device of the node, and how the
// devices are.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"kata-device-plugin/internal/exporter"
	"kata-device-plugin/internal/host"
)

// version is set by the linker.
var version = "unknown"

func main() { os.Exit(run()) }

func run() int {
	const name = "device-exporter"
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return exporter.Command(ctx, name, version, exporter.Node{Roots: host.System(name)}, os.Args[1:], os.Stdout, os.Stderr)
}
