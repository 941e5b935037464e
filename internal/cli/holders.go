package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"kata-device-plugin/internal/holders"
	"kata-device-plugin/internal/nodestate"
)

func holdersCommand(env Env) *cobra.Command {
	var f lookFlags
	c := &cobra.Command{
		Use:   "holders [FILE|DIRECTORY|-]...",
		Short: "Say which pod has which device, and which devices nobody has",
		Long: `Say which pod, container and claim has which device, and which devices nobody has. Without anything the kubelet of this
node is asked, which knows it best. A captured node has its answer. Objects of a cluster, in files or with --live, name the
devices of claims; of device plugins they know only how many a container has.

The exit code is 0, or 2 when something could not be read. What is not known is said below the table.`,
		Example: fmt.Sprintf(`  # On a node
  %[1]s holders
  # The whole cluster
  %[1]s holders --live -A
  # A captured node, with the PCI addresses that drivers have published
  %[1]s holders --root node-a.snapshot slices.yaml`, env.Name),
	}
	f.register(c, holdersFormats()...)
	socket := filepath.Join(env.Host, podResources)
	c.Flags().StringVar(&f.socket, "pod-resources", socket, "kubelet's PodResources `socket` on this node")
	c.RunE = func(c *cobra.Command, args []string) error {
		l, err := f.holders(c.Context(), env, args)
		if err != nil {
			return err
		}
		if f.output == "json" {
			return holders.JSON(env.Stdout, l)
		}
		return holders.Table(env.Stdout, l)
	}
	return c
}

func holdersFormats() []string { return []string{"table", "json"} }

// holders asks whom the flags mean.
func (f *lookFlags) holders(ctx context.Context, env Env, args []string) (*holders.List, error) {
	if err := cmp.Or(known("output", "format", f.output, holdersFormats()), f.inputFlags.check()); err != nil {
		return nil, err
	}
	in, err := readInputs(args, env.Stdin)
	if err != nil {
		return nil, err
	}
	at := slices.Concat(origins(f.roots), in.captures)
	if len(at) == 0 && len(in.paths) == 0 && !f.live {
		at = []origin{{}} // this one
	}
	view, nodes, err := f.look(ctx, env, in, at)
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return holders.FromObjects(view), nil
	}
	var all []holders.Node
	for _, n := range nodes {
		one, err := heldOn(ctx, n)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return holders.FromBoth(view, all...), nil
}

// heldOn is who has what on a node. A kubelet that does not say it is an error: there is nothing else
// to show.
func heldOn(ctx context.Context, n *node) (holders.Node, error) {
	state := n.look(ctx)
	if err := n.close(); err != nil {
		return holders.Node{}, err
	}
	err := state.Source(nodestate.Pods).Err
	switch {
	case err == nil:
		return holders.Node{Name: n.name, State: state}, nil
	case n.root == "":
		return holders.Node{}, unusable(err, "name a captured node, files with objects, or --live for the cluster")
	}
	return holders.Node{}, unusable(fmt.Errorf("%s: %w", n.root, err), "")
}
