// Command rooted is device-exporter with its root paths below a directory, for simulated nodes. The
// program's flags follow behind the directory. Everything else is the shipped program's code.
//
// Links and routes are those in DIRECTORY/netlink/links.json, if there is such a file when it starts, as
// nic-device-plugin has them on a simulated node. A program that confines itself can read there if a file of
// --nic-config-file is there too.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/exporter"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/sim"
)

func main() { os.Exit(run()) }

func run() int {
	const name = "device-exporter"
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: rooted DIRECTORY [FLAG ...]")
		return exit.Usage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	dir := os.Args[1]
	roots := host.Under(dir, name)
	args := append([]string{"--dev-dir=" + roots.Dev, "--kubelet-dir=" + filepath.Join(dir, "var/lib/kubelet")}, os.Args[2:]...)
	on := exporter.Node{Roots: roots}
	links := filepath.Join(dir, "netlink", "links.json")
	if _, err := os.Stat(links); err == nil {
		on.Links = func() (*host.Links, error) { return sim.ReadLinks(links) }
	}
	return exporter.Command(ctx, name, "simulated", on, args, os.Stdout, os.Stderr)
}
