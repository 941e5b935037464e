package check

import "slices"

// outlived says whether a node has nothing of a name but devices that a rename has left there:
// nic-device-plugin goes on announcing what its configuration has lost, as unhealthy, for as long as
// it runs, and kubelet keeps the number. It is said only where everything that could make the name is
// in the input, and known: a plugin of somebody else may have nothing but devices that are ill.
func (w *World) outlived(n *Names, node *Node, name string) bool {
	if node.Allocatable[name] > 0 || len(n.of(name)) > 0 || !w.closed() || !w.complete("DaemonSet") {
		return false
	}
	prefix, _ := split(name)
	akin := func(p *Producer) bool { of, _ := split(p.Name); return of == prefix }
	return len(w.configs) > 0 && slices.ContainsFunc(n.all, akin) && !slices.ContainsFunc(w.agents, func(a *Agent) bool { return !w.told(a) })
}

// told says whether the names that an agent makes are in the input.
func (w *World) told(a *Agent) bool {
	switch a.plugin {
	case kataPlugin, nvidiaPlugin:
		return true
	case unknownPlugin:
		return false
	}
	return slices.ContainsFunc(w.configs, func(c *Config) bool { return slices.Contains(c.Agents, a) })
}

// Outlived says whether nodes have a name, and none of them has more of it than what a rename leaves.
func (v *View) Outlived(name string) bool {
	has := func(n *Node) bool { return n.Key(name).Exists() }
	return slices.ContainsFunc(v.nodes, has) &&
		!slices.ContainsFunc(v.nodes, func(n *Node) bool { return has(n) && !v.outlived(v.names, n, name) })
}
