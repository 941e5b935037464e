package nic

import (
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nicconfig"
)

// kindOfNode is a kind of character device of an RDMA device: its name in the answer to
// containers, the kernel module that makes it, and what a pool says about it.
type kindOfNode struct {
	name, module string
	policy       nicconfig.NodePolicy
	nodes        func(*host.RDMADevice) []host.CharDevice
}

// kindsOfNodes are in the order in which the old plugins hand them out. Without uverbs
// there is no RDMA, whatever a pool says.
func kindsOfNodes(p nicconfig.RDMANodes) []kindOfNode {
	return []kindOfNode{
		{"ucm", "ib_ucm", p.UCM, func(d *host.RDMADevice) []host.CharDevice { return d.UCM }},
		{"issm", "ib_umad", p.ISSM, func(d *host.RDMADevice) []host.CharDevice { return d.ISSM }},
		{"umad", "ib_umad", p.UMAD, func(d *host.RDMADevice) []host.CharDevice { return d.UMAD }},
		{"uverbs", "ib_uverbs", nicconfig.Required, func(d *host.RDMADevice) []host.CharDevice { return d.UVerbs }},
	}
}

// rdmaNodes are the nodes of RDMA devices by a pool's policy, what is said about them, and
// what is missing.
func rdmaNodes(all []host.RDMADevice, p nicconfig.RDMANodes, permissions string) (nodes []declare.Node, names map[string]string, missing []finding.Evidence) {
	names = map[string]string{}
	for i := range all {
		d := &all[i]
		if i == 0 {
			names["rdma_dev"] = d.Name
		}
		for _, k := range kindsOfNodes(p) {
			if k.policy == nicconfig.Never {
				continue
			}
			found, fault := false, "no "+k.name+": load "+k.module
			for _, n := range k.nodes(d) {
				if n.Fault != "" {
					fault = n.Fault
					continue
				}
				found = true
				nodes = append(nodes, declare.Node{Path: n.Path, Permissions: permissions})
				if k.name != "ucm" { // which the old plugin gives without a word
					names[k.name] = n.Path
				}
			}
			if !found && k.policy == nicconfig.Required {
				missing = append(missing, finding.Evidence{Path: d.Name, Value: fault})
			}
		}
	}
	return nodes, names, missing
}

// noRDMA is the evidence that a function has no RDMA device that can be seen.
func noRDMA(u *unit) finding.Evidence {
	if u.sf != "" {
		return finding.Evidence{Path: "/sys/bus/auxiliary/devices/" + u.sf + "/infiniband", Value: "none"}
	}
	return finding.Evidence{Path: host.SysPath(u.f.Address, "infiniband"), Value: "none"}
}

// rdma gives the nodes of the unit's RDMA devices, those that are remembered while a pod
// has them.
func (b *builder) rdma() {
	nodes, names, missing := rdmaNodes(b.u.rdma(), nicconfig.RDMANodes{}, "rw")
	hidden := len(b.u.rdmaOf(b.u.seen)) == 0
	if now := b.u.seen.Hidden; hidden && b.u.sf == "" && len(now) > 0 {
		nodes = b.hidden(now, names)
	} else if hidden {
		// The kernel numbers the nodes anew when the device changes its namespace
		// (drivers/infiniband/core/device.c, rdma_dev_change_netns). An old number may be
		// another device's by now.
		nodes = slices.DeleteFunc(nodes, func(n declare.Node) bool { return b.rdmaTaken[n.Path] })
	}
	b.nodes = append(b.nodes, nodes...)
	if b.shared(rdmaCMNode) == "" {
		names["rdma_cm"] = rdmaCMNode
		b.with = append(b.with, declare.Node{Path: rdmaCMNode, Permissions: "rw"})
	}
	b.about["rdma"] = names
	if hidden && b.inUse {
		return
	}
	if hidden {
		missing = append(missing, noRDMA(b.u))
	}
	if len(missing) > 0 {
		b.fault(finding.RDMAIncomplete(), missing...)
	}
}

// hidden are the nodes of a device in another namespace, as they are numbered now.
func (b *builder) hidden(now []host.CharDevice, names map[string]string) []declare.Node {
	var nodes []declare.Node
	for _, n := range now {
		if n.Fault != "" {
			continue
		}
		nodes = append(nodes, declare.Node{Path: n.Path, Permissions: "rw"})
		if kind := strings.TrimRight(path.Base(n.Path), "0123456789"); kind != "ucm" {
			names[kind] = n.Path
		}
	}
	return nodes
}

// rdmaNodesOf are the nodes of all RDMA devices that a look has seen.
func rdmaNodesOf(s *host.Snapshot) map[string]bool {
	all := map[string]bool{}
	add := func(devices []host.RDMADevice) {
		nodes, _, _ := rdmaNodes(devices, nicconfig.RDMANodes{}, "")
		for _, n := range nodes {
			all[n.Path] = true
		}
	}
	for i := range s.Functions {
		if n := s.Functions[i].Network; n != nil {
			add(n.RDMA)
			for _, sf := range n.Subfunctions {
				add(sf.RDMA)
			}
		}
	}
	return all
}
