package nic

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nicconfig"
	"kata-device-plugin/internal/pci"
)

// hca is an RDMA device, or the several of one function, as a pool shares it.
type hca struct {
	u      *unit
	nodes  []declare.Node
	faults []finding.Finding // of the function; each share has them under its own name
}

// share deals the shares of a pool.
//
// The budget of a pool without sharesPerDevice is one of pods, not of devices: a container
// gets the nodes of all devices of the pool, and a share's device is where kubelet is told
// to look for the NUMA node. So as long as one device is healthy there are as many healthy
// shares as the budget says: when a device fails its shares are unhealthy, and the others
// take them over, with higher numbers. They give them back when it is well again.
func (l *look) share(p *sharedPool) {
	var all []*hca
	for i := range l.s.Functions {
		f := &l.s.Functions[i]
		if !f.Known || base(f.Identity) != network {
			continue
		}
		if h := l.hca(p, l.unit(f, "")); h != nil {
			all = append(all, h)
			l.shared[f.Address] = append(l.shared[f.Address], p.name)
		}
	}
	l.tallies[p.name].got = len(all)
	var everyone, healthy []pci.Address
	for _, h := range all {
		everyone = append(everyone, h.u.f.Address)
		if len(h.faults) == 0 {
			healthy = append(healthy, h.u.f.Address)
		}
	}
	held := l.holds(p)
	would, does := deal(everyone, p.terms(), held), deal(healthy, p.terms(), held)
	for _, h := range all {
		numbers := does[h.u.f.Address]
		if len(h.faults) > 0 {
			numbers = would[h.u.f.Address]
		}
		with := l.with(p, h, all)
		for _, n := range numbers {
			l.devices[p.name] = append(l.devices[p.name], h.share(p, shareID(h.u.f.Address, n), with))
		}
		l.notDealt(p, h, numbers)
	}
}

// terms are those of the configuration. One of the two is always given.
func (p *sharedPool) terms() terms {
	t := terms{budget: nicconfig.MaxShares, limit: nicconfig.MaxShares}
	if p.RDMAHCAMax != nil {
		t.budget = *p.RDMAHCAMax
	}
	if p.SharesPerDevice != nil {
		t.limit = *p.SharesPerDevice
	}
	return t
}

// hca is a function as a pool shares it, nil when it does not.
func (l *look) hca(p *sharedPool, u *unit) *hca {
	t := l.tallies[p.name]
	v := p.match(u)
	known := l.knows(p, u)
	a := v.answer
	if a == unseen && known {
		a = yes
	} else if a == unseen {
		a = v.guess
	}
	switch {
	case a == no:
		t.refused[v.key]++
		if len(l.past.announced[p.name].of(u.f.Address)) > 0 {
			l.find(finding.New(finding.Deselected(), u.id, v.fact).For(p.name))
		}
		return nil
	case a == unseen:
		t.kept++
		l.find(finding.New(finding.Unseen(), u.id, v.fact).For(p.name))
		return nil
	case len(u.rdma()) == 0 && !known:
		t.refused["RDMA"]++
		if l.whole[u.f.Address] == "" { // else it has its use
			l.find(finding.New(finding.NoRDMA(), u.id, noRDMA(u)).For(p.name))
		}
		return nil
	case !p.AllowHostInUse && l.guard(u, p.name):
		t.kept++
		return nil
	}
	return newHCA(p, u, l.node)
}

// newHCA puts together what a container is given of a function, and what speaks against it.
func newHCA(p *sharedPool, u *unit, shared func(string) string) *hca {
	h := &hca{u: u}
	fault := func(k finding.Kind, e ...finding.Evidence) {
		h.faults = append(h.faults, finding.New(k, u.id, e...).For(p.name))
	}
	if u.f.Driver == "" {
		fault(finding.NoDriver(), finding.Evidence{Path: host.SysPath(u.f.Address, "driver"), Value: "none"})
		return h
	}
	var missing []finding.Evidence
	h.nodes, _, missing = rdmaNodes(u.seen.RDMA, p.Nodes, permissions)
	if len(u.seen.RDMA) == 0 {
		missing = append(missing, noRDMA(u))
	}
	if why := shared(rdmaCMNode); p.Nodes.RDMACM == nicconfig.Required && why != "" {
		missing = append(missing, finding.Evidence{Path: rdmaCMNode, Value: why + ": load rdma_ucm"})
	}
	if len(missing) > 0 {
		fault(finding.RDMAIncomplete(), missing...)
	}
	return h
}

// permissions are what the old plugin gives on shared nodes.
const permissions = "rwm"

// knows says whether a function was announced as a device of the pool, or is held as one.
func (l *look) knows(p *sharedPool, u *unit) bool {
	return len(l.past.home[p.name].of(u.f.Address))+len(l.past.holds[p.name].of(u.f.Address)) > 0
}

// holds are the shares that pods hold. Where kubelet's record cannot be read, those that
// were announced as healthy may be.
func (l *look) holds(p *sharedPool) shares {
	if !l.past.known {
		return l.past.healthy[p.name]
	}
	return l.past.holds[p.name]
}

// with are the nodes that come with the shares of a device: rdma_cm, and where shares are
// of the pool the nodes of its other devices that are whole.
func (l *look) with(p *sharedPool, of *hca, all []*hca) []declare.Node {
	nodes := of.beside()
	for _, h := range all {
		if h != of && p.SharesPerDevice == nil && len(h.faults) == 0 {
			for _, n := range h.nodes {
				n.Owner = h.u.id
				nodes = append(nodes, n)
			}
		}
	}
	if p.Nodes.RDMACM != nicconfig.Never && l.node(rdmaCMNode) == "" {
		nodes = append(nodes, declare.Node{Path: rdmaCMNode, Permissions: permissions})
	}
	return nodes
}

// verbs are the nodes that a share has under its CDI name, and beside those that come with it.
// A pool may have a thousand shares, and container runtimes and Kata's shims read the whole
// spec: with all nodes of a device in each share it would take them a second.
func (h *hca) verbs() []declare.Node {
	return slices.DeleteFunc(slices.Clone(h.nodes), func(n declare.Node) bool { return !isVerbs(n) })
}

func (h *hca) beside() []declare.Node {
	return slices.DeleteFunc(slices.Clone(h.nodes), isVerbs)
}

func isVerbs(n declare.Node) bool { return strings.HasPrefix(path.Base(n.Path), "uverbs") }

// share is one share of a device.
func (h *hca) share(p *sharedPool, id string, with []declare.Node) declare.Device {
	d := declare.Device{ID: id, Function: *h.u.f, Present: true, Nodes: h.verbs(), With: with, NoTopology: p.ExcludeTopology}
	for _, f := range h.faults {
		f.Device = id
		d.Faults = append(d.Faults, f)
	}
	return d
}

// notDealt is the reason why a device has no share, or not those that were announced.
func (l *look) notDealt(p *sharedPool, h *hca, numbers []int) {
	if len(numbers) == 0 {
		l.find(finding.New(finding.NotDealt(), h.u.id, finding.Evidence{Path: "shares of the device now", Value: "0"}).For(p.name))
		return
	}
	for n := range l.past.announced[p.name].of(h.u.f.Address) {
		if !slices.Contains(numbers, n) {
			l.find(finding.New(finding.NotDealt(), h.u.id, finding.Evidence{Path: "shares of the device now", Value: strconv.Itoa(len(numbers))}).For(p.name))
			return
		}
	}
}

// again is a share as its function, read anew, makes it.
func (p *sharedPool) again(f *host.Function, was *declare.Device) declare.Device {
	u := newUnit(f, "")
	u.remember(&was.Function)
	if v := p.match(u); v.answer == no {
		return absent(f, was, p.name, finding.New(finding.Deselected(), was.ID, v.fact))
	}
	return newHCA(p, u, from(was)).share(p, was.ID, was.With)
}
