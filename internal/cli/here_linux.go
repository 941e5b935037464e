package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/hostnet"
	"kata-device-plugin/internal/nodeview"
	"kata-device-plugin/internal/podresources"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sysfs"
)

// here is the node that the command runs on.
func (n *node) here(env Env, socket string) error {
	sys, err := sysfs.Open(filepath.Join(env.Host, "sys"))
	if err != nil {
		return unusable(fmt.Errorf("look at this node: %w", err), "name a captured node with --root")
	}
	n.source.Sys, n.source.Dev, n.close = sys, devfs.Dir(filepath.Join(env.Host, "dev")), sys.Close
	n.files = os.DirFS(env.Host)
	n.ask = func(ctx context.Context) nodeview.Kubelet {
		defer env.begin("asking kubelet who has which device")()
		return thisKubelet(ctx, socket)
	}
	n.source.Links = links(env, sys)
	n.name, err = os.Hostname()
	return err
}

// simulatedLinks is a file with the links of a simulated node, which sim puts into its sysfs: netlink would
// go on to tell of this machine. No kernel has a file there.
const simulatedLinks = "simulated-links"

// links reads the links of the node that the command runs on, nil where nobody can.
func links(env Env, sys fs.FS) func() (*host.Links, error) {
	file := filepath.Join(env.Host, "sys", simulatedLinks)
	simulated, err := exists(file)
	switch {
	case err != nil:
		return func() (*host.Links, error) { return nil, err }
	case simulated:
		return func() (*host.Links, error) { return sim.ReadLinks(file) }
	case env.Host == "/": // netlink tells of no other one
		return hostnet.OwnOf(sys).Links
	}
	return nil
}

// thisKubelet asks the kubelet of this node.
func thisKubelet(ctx context.Context, socket string) nodeview.Kubelet {
	const answerTime = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if _, err := os.Stat(socket); err != nil {
		return nodeview.Silent(fmt.Errorf("look for kubelet's PodResources: %w", err))
	}
	client := podresources.Dial(socket)
	defer client.Close()
	var k nodeview.Kubelet
	if k.Pods, k.PodsErr = client.Pods(ctx); k.PodsErr != nil {
		return nodeview.Silent(k.PodsErr) // it would not answer the other question either
	}
	k.Allocatable, k.AllocatableErr = client.Allocatable(ctx)
	return k
}
