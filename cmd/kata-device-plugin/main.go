// Command kata-device-plugin declares the node's VFIO-bound NVIDIA GPUs and NVSwitches
// to kubelet, for pods that run in Kata VMs. It takes no arguments.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"kata-device-plugin/internal/agent"
	"kata-device-plugin/internal/host"
)

// version is set by the linker.
var version = "unknown"

func main() { os.Exit(run()) }

func run() int {
	const name = "kata-device-plugin"
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return agent.Passthrough(name, version, host.System(name)).Command(ctx, os.Args[1:], os.Stderr)
}
