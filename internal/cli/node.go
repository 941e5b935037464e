package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/pflag"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/nic"
	"kata-device-plugin/internal/nicconfig"
	"kata-device-plugin/internal/nodestate"
	"kata-device-plugin/internal/nodeview"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/pciids"
)

// nicFlags say what the NIC plugin of a node declares.
type nicFlags struct {
	files  []string
	prefix string
}

func (f *nicFlags) register(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.files, "nic-config", nil, "configuration `file` of the NIC plugin on the node: what it declares is shown as well")
	flags.StringVar(&f.prefix, "resource-prefix", "", "the NIC plugin's --resource-prefix")
}

// node is one that can be looked at.
type node struct {
	name    string
	root    string // where it was read, "" for this node
	source  host.Source
	files   fs.FS                                  // of the node, from its root
	ask     func(context.Context) nodeview.Kubelet // what kubelet says about devices
	capture *capture.Capture                       // nil for this node, and for a directory
	foreign bool                                   // no object of the input is about it, or its names were replaced
	rules   declare.Rules                          // of the NIC plugin, nil where they are not known
	ids     *pciids.IDs
	last    *host.Snapshot
	close   func() error
}

// opener opens nodes, which are looked at alike.
type opener struct {
	env    Env
	rules  declare.Rules // of the NIC plugin, nil where they are not known
	ids    *pciids.IDs
	socket string // kubelet's on this node
}

// opener reads what the flags name.
func (f *nicFlags) opener(env Env, socket string) (*opener, error) {
	rules, err := f.rules()
	if err != nil {
		return nil, err
	}
	ids, err := pciids.Open()
	if err != nil {
		return nil, err
	}
	return &opener{env: env, rules: rules, ids: ids, socket: socket}, nil
}

// origin is where a node is: a capture that was read from a file, or what is at a path. That of this node
// is "".
type origin struct {
	path    string
	capture *capture.Capture // nil where it is still to be read
	// bytes and sha256 are of the text of the capture.
	bytes  int64
	sha256 string
}

// origins are the nodes at paths.
func origins(paths []string) (all []origin) {
	for _, path := range paths {
		all = append(all, origin{path: path})
	}
	return all
}

// open opens a node.
func (o *opener) open(at origin) (*node, error) {
	n := &node{root: at.path, rules: o.rules, ids: o.ids, close: func() error { return nil }}
	var err error
	switch {
	case at.capture != nil:
		n.elsewhere(at.capture.Tree())
	case at.path == "":
		err = n.here(o.env, o.socket)
	default:
		var tree *capture.Tree
		if tree, err = capture.Open(at.path); err != nil {
			return nil, unusable(err, "name a file that snapshot has written, or a directory with a node's files")
		}
		n.elsewhere(tree)
	}
	if err != nil {
		return nil, err
	}
	n.source.Wanted, n.source.Network, n.source.PCIeLink = wanted, nic.Wants, wanted
	return n, nil
}

// elsewhere is a captured node.
func (n *node) elsewhere(tree *capture.Tree) {
	n.source, n.files, n.capture = tree.Source(), tree.Files, tree.Capture
	n.ask = func(context.Context) nodeview.Kubelet { return capturedKubelet(tree.Capture) }
	if tree.Capture != nil {
		n.name = tree.Capture.Meta.Hostname
	}
}

// wanted are the functions that any of the programs is about.
func wanted(id host.Identity) bool { return declare.Passthrough().Wants(id) || nic.Wants(id) }

// rules are those of the configuration files, nil where none was named.
func (f *nicFlags) rules() (declare.Rules, error) {
	if len(f.files) == 0 {
		if f.prefix != "" {
			return nil, unusable(errors.New("--resource-prefix without a configuration"), "name that with --nic-config")
		}
		return nil, nil
	}
	var files []nicconfig.File
	for _, path := range f.files {
		data, err := readFile("nic-config", path)
		if err != nil {
			return nil, err
		}
		files = append(files, nicconfig.File{Name: path, Data: data})
	}
	config, err := nicconfig.ParseFiles(files, nicconfig.Options{Prefix: f.prefix})
	if err != nil {
		return nil, unusable(fmt.Errorf("--nic-config: %w", err), "")
	}
	return nic.New(config), nil
}

// look looks at the node, and joins what there is.
func (n *node) look(ctx context.Context) *nodestate.State {
	n.last = n.source.Look(n.last)
	return nodeview.Join(nodeview.Sources{Hardware: n.last, NICs: n.rules, Files: n.files, Dev: n.source.Dev, Kubelet: n.ask(ctx)})
}

// inventory looks at the node.
func (n *node) inventory(ctx context.Context) *inventory.Inventory {
	state := n.look(ctx)
	in := inventory.Input{
		Node: n.name, NICs: n.rules,
		Name: func(vendor, device pci.ID) string { return n.ids.Device(vendor, device) },
	}
	nodeview.Add(&in, state, 0)
	return inventory.New(n.last, in)
}
