package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"kata-device-plugin/internal/check"
)

// lookFlags are those of the commands that look at objects and at the hardware of nodes beside them.
type lookFlags struct {
	inputFlags
	// named: the command takes the name of an object, whose namespace may be given as a flag.
	named  bool
	roots  []string
	nics   nicFlags
	socket string // kubelet's on this node
	output string
}

func (f *lookFlags) register(c *cobra.Command, formats ...string) {
	flags := c.Flags()
	f.inputFlags.register(flags, "nodes,pods")
	flags.StringSliceVar(&f.roots, "root", nil, "captured `node`, as snapshot writes it, or a directory with its files")
	registerOutput(c, &f.output, formats[0], formats...)
	f.nics.register(flags)
}

// look loads the objects, and opens the nodes that were captured with them or, where an origin has no path, this
// one.
func (f *lookFlags) look(ctx context.Context, env Env, in *inputs, at []origin) (*check.View, []*node, error) {
	set, err := f.objects(ctx, env, in)
	if err == nil && !f.named {
		err = f.checkNamespace(set)
	}
	if err != nil {
		return nil, nil, err
	}
	nodes, err := f.nodes(env, at)
	if err != nil {
		return nil, nil, err
	}
	o := check.Options{Namespace: f.cluster.which.Namespace()}
	given := captured(nodes)
	o.Nodes = given
	view := check.Look(set, o)
	nodes = belong(env, view, nodes)
	// What kubelet says on a node of no object would count for the objects.
	if o.Nodes = captured(nodes); len(o.Nodes) < len(given) {
		view = check.Look(set, o)
	}
	return view, nodes, nil
}

// captured are the nodes of captures that objects of the input may be about.
func captured(nodes []*node) []check.NodeInput {
	var all []check.NodeInput
	for _, n := range nodes {
		if n.capture != nil && !n.foreign {
			all = append(all, check.NodeInput{Name: n.name, File: n.root, Capture: n.capture})
		}
	}
	return all
}

// nodes opens nodes.
func (f *lookFlags) nodes(env Env, at []origin) ([]*node, error) {
	if len(f.nics.files) > 0 && len(at) == 0 {
		return nil, unusable(errors.New("--nic-config says what a node's NIC plugin declares, and no node is looked at"),
			"name a captured node with --root, or leave it out")
	}
	o, err := f.nics.opener(env, f.socket)
	if err != nil {
		return nil, err
	}
	var all []*node
	for _, a := range at {
		n, err := o.open(a)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}
