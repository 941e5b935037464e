// Command rootednic is nic-device-plugin with its root paths below a directory, for
// simulated nodes. The program's flags follow behind the directory, and the paths in them are
// below it too.
//
// A simulated /sys does not show the interfaces of the machine that it is on, so links and
// routes are not asked of the kernel: DIRECTORY/netlink/links.json has a host.Links. Nobody
// tells of a change either; SIGHUP does. Everything else is the shipped program's code.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"kata-device-plugin/internal/agent"
	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nicplugin"
	"kata-device-plugin/internal/sim"
)

func main() { os.Exit(run()) }

func run() int {
	const name, version = "nic-device-plugin", "simulated"
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: rootednic DIRECTORY [FLAG ...]")
		return exit.Usage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	dir := os.Args[1]
	program := func(o nicplugin.Options, log *slog.Logger) agent.Program {
		for i, file := range o.Config {
			o.Config[i] = filepath.Join(dir, file)
		}
		o.Dev, o.DeviceInfo = filepath.Join(dir, o.Dev), filepath.Join(dir, o.DeviceInfo)
		p := nicplugin.New(name, version, host.Under(dir, name), o, log)
		netlink := filepath.Join(dir, "netlink")
		p.Source.Links = func() (*host.Links, error) { return sim.ReadLinks(filepath.Join(netlink, "links.json")) }
		p.Access.Read = append(p.Access.Read, netlink)
		return p
	}
	return nicplugin.Run(ctx, name, version, program, os.Args[2:], os.Stdout, os.Stderr)
}
