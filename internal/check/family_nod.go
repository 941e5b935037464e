package check

import (
	"maps"
	"slices"
	"strings"
	"time"

	"kata-device-plugin/internal/finding"
)

// The family NOD: what nodes say of devices.
func nodeChecks() []Check {
	nodes := []Need{needNodes}
	return []Check{
		{finding.NotAllAllocatable(), nodes, notAllAllocatable},
		{finding.KeyZero(), nodes, keyZero},
		{finding.NeverRegistered(), []Need{needNodes, needConfigs, needAgents}, neverRegistered},
		{finding.FewerOffered(), []Need{needOffers}, fewerOffered},
		{finding.Overcommitted(), []Need{needNodes, needPods}, overcommitted},
		{finding.NodeChanged(), []Need{needNodes, needPods}, nodeChanged},
		{finding.KeyLeftOver(), []Need{needNodes, needConfigs}, keyLeftOver},
	}
}

// keys goes through the keys of devices of all nodes.
func (w *World) keys(do func(*Node, string)) {
	for _, n := range w.nodes {
		for _, name := range n.names() {
			if !strings.Contains(name, native) {
				do(n, name)
			}
		}
	}
}

func (n *Node) ref() Ref { return Ref{Kind: "Node", Name: n.Name} }

func notAllAllocatable(w *World) []Finding {
	var all []Finding
	w.keys(func(n *Node, name string) {
		if gone := n.Capacity[name] - n.Allocatable[name]; gone > 0 {
			f := foundKey(n.ref(), n.key(name), "node %s has %d of %q and %d allocatable: %d are not healthy", n.Name,
				n.Capacity[name], name, n.Allocatable[name], gone).about(name)
			if n.Allocatable[name] == 0 {
				f = f.because("none is allocatable, which is also so in the five minutes after a plugin has left")
			}
			all = append(all, f)
		}
	})
	return all
}

// keyZero: kubelet leaves the key there for ever.
func keyZero(w *World) []Finding {
	var all []Finding
	w.keys(func(n *Node, name string) {
		if n.Capacity[name] != 0 || n.Allocatable[name] != 0 || w.leftOver(name) {
			return
		}
		f := foundKey(n.ref(), n.key(name), "node %s has the key %q with 0: the plugin has left or has no device", n.Name,
			name).about(name)
		for _, p := range w.names.exact[name] {
			if p.Object.Kind == "DeviceClass" {
				f = p.note(f).as(finding.Note).advise("nothing, if the claims of the class are meant to take over")
			}
		}
		all = append(all, f)
	})
	return all
}

// leftOver says whether a key with 0 is what a rename leaves: nothing makes the name any more,
// and the configurations of plugins are in the input.
func (w *World) leftOver(name string) bool {
	if len(w.configs) == 0 || len(w.names.of(name)) > 0 || len(w.names.nodes[name]) > 0 {
		return false
	}
	return w.names.like(name).How == likePrefix || w.complete("ConfigMap")
}

func keyLeftOver(w *World) []Finding {
	var all []Finding
	w.keys(func(n *Node, name string) {
		if n.Capacity[name] != 0 || n.Allocatable[name] != 0 || !w.leftOver(name) {
			return
		}
		f := foundKey(n.ref(), n.key(name), "node %s has the key %q with 0, which no configuration makes", n.Name,
			name).about(name)
		if s := w.names.like(name); s.How == likePrefix {
			f = w.names.source(f, s.Name)
		}
		all = append(all, f)
	})
	return all
}

// neverRegistered can be said only when all nodes are there.
func neverRegistered(w *World) []Finding {
	var all []Finding
	if !w.complete("Node") {
		return nil
	}
	said := map[string]bool{} // a configuration may have a key for each node
	for _, c := range w.configs {
		for _, pool := range c.Pools {
			for _, name := range pool.names() {
				full := name.String()
				if name.agent == nil || name.Prefix == unknownPrefix || said[full] || len(w.names.nodes[full])+len(w.names.zeros[full]) > 0 {
					continue
				}
				said[full] = true
				f := found(c.Owner, pool.Name, "%s declares %q, and no node has ever had it", c.Owner, full).about(full)
				all = append(all, f.with(name.agent.Object.Place(), "%s reads the configuration", name.agent.ref()))
			}
		}
	}
	return all
}

func overcommitted(w *World) []Finding {
	var all []Finding
	for _, n := range w.nodes {
		sums := map[string]int64{}
		for _, p := range w.podsOn[n.Name] {
			for _, want := range p.Wants() {
				if !p.ByClaim(want.Name) {
					sums[want.Name] += want.Count
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(sums)) {
			if _, has := n.Allocatable[name]; has && sums[name] > n.Allocatable[name] && ordinary(name) {
				f := foundKey(n.ref(), n.key(name), "the pods of node %s request %d of %q, of which %d are allocatable", n.Name,
					sums[name], name, n.Allocatable[name]).about(name)
				all = append(all, w.holders(f, []*Node{n}, name))
			}
		}
	}
	return all
}

// nodeChanged puts a refused pod beside what happened to its node at the time.
func nodeChanged(w *World) []Finding {
	const near = 10 * time.Minute
	var all []Finding
	for _, p := range w.workloads {
		n := w.nodeOf[p.node()]
		if n == nil || p.phase() != "Failed" || p.Object.Get("status", "reason").Text() != "UnexpectedAdmissionError" {
			continue
		}
		failed, err := time.Parse(time.RFC3339, p.Object.Get("status", "startTime").Text())
		if err != nil {
			continue
		}
		for c := range n.Object.Get("status", "conditions").Each() {
			at := c.Get("lastTransitionTime")
			changed, err := time.Parse(time.RFC3339, at.Text())
			if c.Get("type").Text() != "Ready" || err != nil || changed.Sub(failed).Abs() > near {
				continue
			}
			f := found(n.ref(), at, "node %s changed to Ready=%s at %s, near the time at which %s was refused", n.Name,
				c.Get("status").Text(), at.Text(), p.ref())
			all = append(all, f.with(p.Object.Get("status", "reason").Place(), "%s was refused at %s", p.ref(),
				failed.Format(time.RFC3339)))
		}
	}
	return all
}
