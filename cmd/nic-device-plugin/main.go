// Command nic-device-plugin declares the node's NICs to kubelet, from the configuration files
// of the SR-IOV network device plugin and of the RDMA shared device plugin.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nicplugin"
)

// version is set by the linker.
var version = "unknown"

func main() { os.Exit(run()) }

func run() int {
	const name = "nic-device-plugin"
	signal.Ignore(syscall.SIGHUP) // until it is listened to, so that it never ends the program
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return nicplugin.Command(ctx, name, version, host.System(name), os.Args[1:], os.Stdout, os.Stderr)
}
