//go:build kubernetes

// Command kubelet is kubelet as it ships, in the version that go.mod has for the tests
// with the device manager alone. The tag keeps it out of what the other tests compile.
package main

import (
	"context"
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kubelet/app"
)

func main() { os.Exit(cli.Run(app.NewKubeletCommand(context.Background()))) }
