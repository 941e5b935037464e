package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"tags.cncf.io/container-device-interface/pkg/cdi"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/kubelet"
)

// Node is a simulated machine with a real kubelet device manager and a real plugin.
// The kubelet and the plugin are started and stopped by whoever uses it.
type Node struct {
	*sim.Node
	Dir     string
	Roots   host.Roots
	Binary  string
	Args    []string // of the plugin, behind the directory
	Options kubelet.Options
	Log     io.Writer // of the plugin

	Kubelet *kubelet.Kubelet
	Plugin  *Plugin
}

// NewNode lays out a platform in a directory of its own. The plugin's log goes to log.
func NewNode(p sim.Platform, binary string, log io.Writer) (*Node, error) {
	dir, err := sim.TempDir()
	if err != nil {
		return nil, err
	}
	n, err := sim.New(dir, p)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	roots := n.Roots(product)
	if err := os.MkdirAll(roots.Run, 0o755); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Node{Node: n, Dir: dir, Roots: roots, Binary: binary, Log: log, Options: kubelet.Options{NUMANodes: 2}}, nil
}

// StartKubelet starts kubelet, for the first time or again.
func (n *Node) StartKubelet(ctx context.Context) (err error) {
	n.Kubelet, err = kubelet.Start(ctx, n.Roots.DevicePlugins, n.Options)
	return err
}

// StartPlugin starts the plugin, for the first time or again.
func (n *Node) StartPlugin(ctx context.Context) (err error) {
	n.Plugin, err = StartPlugin(ctx, n.Binary, n.Dir, n.Log, n.Args...)
	return err
}

// Close ends what runs and removes the directory.
func (n *Node) Close() error {
	var errs []error
	if n.Plugin != nil {
		errs = append(errs, n.Plugin.Kill())
	}
	if n.Kubelet != nil {
		errs = append(errs, n.Kubelet.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(n.Dir))...)
}

// AwaitDevices waits until kubelet has just these devices of a resource as healthy, and
// the CDI spec resolves each of them to its present character device.
func (n *Node) AwaitDevices(ctx context.Context, resource string, ids []string) error {
	if err := n.Kubelet.Await(ctx, func() bool {
		return slices.Equal(n.Kubelet.Allocatable(resource), ids) && n.Resolves(resource, ids)
	}); err != nil {
		return fmt.Errorf("wait for %s to be %v, kubelet has %v: %w", resource, ids, n.Kubelet.Allocatable(resource), err)
	}
	return nil
}

// Resolves says whether the CDI library, reading as a container runtime does, finds each
// device with its present node.
func (n *Node) Resolves(resource string, ids []string) bool {
	for _, id := range ids {
		nodes, err := n.Resolve(resource + "=" + id)
		if err != nil || len(nodes) != 1 || nodes[0] != n.Cdevs()[id] {
			return false
		}
	}
	return true
}

// Resolve finds the device nodes behind a CDI name.
func (n *Node) Resolve(name string) ([]string, error) {
	cache, err := cdi.NewCache(cdi.WithSpecDirs(n.Roots.CDI), cdi.WithAutoRefresh(false))
	if err != nil {
		return nil, fmt.Errorf("read CDI specs: %w", err)
	}
	if err := cache.Refresh(); err != nil {
		return nil, fmt.Errorf("read CDI specs: %w", err)
	}
	d := cache.GetDevice(name)
	if d == nil {
		return nil, fmt.Errorf("resolve %s: no CDI spec names it", name)
	}
	var nodes []string
	for _, dn := range d.ContainerEdits.DeviceNodes {
		nodes = append(nodes, dn.Path)
	}
	return nodes, nil
}

// Cdevs are the character devices of all bound functions, by PCI address.
func (n *Node) Cdevs() map[string]string {
	all := map[string]string{}
	for _, f := range n.Functions() {
		if number, ok := n.Cdev(f.Address()); ok {
			all[f.Address().String()] = fmt.Sprintf("%s/vfio%d", host.DevicesDir, number)
		}
	}
	return all
}

// The resources of the flagship.
const (
	GPU      = "nvidia.com/gpu"
	NVSwitch = "nvidia.com/nvswitch"
)

// AwaitAll waits until everything that is bound is allocatable.
func (n *Node) AwaitAll(ctx context.Context) error {
	return errors.Join(n.AwaitDevices(ctx, GPU, n.GPUs()), n.AwaitDevices(ctx, NVSwitch, n.NVSwitches()))
}
