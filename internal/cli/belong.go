package cli

import (
	"fmt"
	"slices"

	"kata-device-plugin/internal/check"
)

// belong finds out which objects the nodes are those of, as check does. All that is compared by name would
// silently not match, so what has no object is said. Older captures of a node are left out: what has changed
// between two of them would be there twice.
func belong(env Env, view *check.View, nodes []*node) []*node {
	return slices.DeleteFunc(nodes, func(n *node) bool {
		if n.capture == nil {
			n.name = view.NodeNamed(n.name)
			return false
		}
		of := view.Belonging(n.capture)
		n.name = of.Name
		switch {
		case of.Newer != "":
			fmt.Fprintf(env.Stderr, "note: %s is left out: %s is of node %s too, and it is newer or was named before\n",
				n.root, of.Newer, n.name)
			return true
		case n.capture.Meta.Redacted:
			n.foreign = true
			fmt.Fprintf(env.Stderr, "note: %s has other words in the place of names, "+
				"so its pods and its node are those of no object: take it with snapshot --clear-names to have them matched\n", n.root)
		case of.Stranger:
			n.foreign = true
			fmt.Fprintf(env.Stderr, "note: %s is of node %s, which is no Node of the input: "+
				"what its kubelet says is about none of them\n", n.root, n.name)
		}
		return false
	})
}
