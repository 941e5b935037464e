// Command kubectl-device shows passthrough devices, and why a pod does not get one. It is used as
// kubectl device, and by itself on a node.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"kata-device-plugin/internal/cli"
)

// version is set by the linker.
var version = "unknown"

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	env := cli.Env{
		Name: cli.Called(os.Getenv("_")), Version: version, Args: os.Args[1:],
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Host: "/",
	}
	env.Width, env.Watched = cli.Terminal(os.Stdout, os.Stderr)
	return cli.Process(ctx, stop, env)
}
