// Command rooteddra is kata-dra-driver with its root paths below a directory, for simulated
// nodes. The program's flags follow behind the directory. Everything else is the shipped
// program's code.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"kata-device-plugin/internal/dradriver"
	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/host"
)

func main() { os.Exit(run()) }

func run() int {
	const name = "kata-dra-driver"
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: rooteddra DIRECTORY [FLAG ...]")
		return exit.Usage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	dir := os.Args[1]
	args := append([]string{"--kubelet-dir=" + filepath.Join(dir, "var/lib/kubelet")}, os.Args[2:]...)
	return dradriver.Command(ctx, name, "simulated", host.Under(dir, name), args, os.Getenv, os.Stdout, os.Stderr)
}
