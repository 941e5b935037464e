package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
)

// network is what only netlink shows, which a node answers by Links: links that are no
// device's, masters, and default routes. Masters and routes go by name here, so that a test
// may set them before the interface is there.
type network struct {
	virtual map[string]host.Link
	master  map[string]string
	lower   map[string]string
	routes  []route
}

type route struct {
	name, family string
	table        int
}

// AddLink adds a link that is no device's: a bond, a bridge, a VLAN.
func (n *Node) AddLink(name, kind string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, there := n.network.virtual[name]; there {
		return fmt.Errorf("add link %s: %w", name, unix.EEXIST)
	}
	n.ifindex++
	n.network.virtual[name] = host.Link{Index: n.ifindex, Name: name, Kind: kind}
	return nil
}

// SetMaster makes a link a port of another; "" for none.
func (n *Node) SetMaster(name, master string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.network.master[name] = master
}

// SetLower stacks a link upon another; "" for none.
func (n *Node) SetLower(name, lower string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.network.lower[name] = lower
}

// AddDefaultRoute adds a default route by a link, of the family inet or inet6, in the main
// table.
func (n *Node) AddDefaultRoute(name, family string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addDefaultRoute(name, family)
}

func (n *Node) addDefaultRoute(name, family string) {
	const mainTable = 254
	n.network.routes = append(n.network.routes, route{name, family, mainTable})
}

// RemoveDefaultRoutes removes all default routes.
func (n *Node) RemoveDefaultRoutes() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.network.routes = nil
}

// Links is what netlink shows of the host's namespace, for host.Source.Links. Like the
// kernel's, a route is gone while its link is.
func (n *Node) Links() (*host.Links, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	byName := maps.Clone(n.network.virtual)
	byName["lo"] = host.Link{Index: 1, Name: "lo"}
	for _, d := range n.devices {
		for _, nd := range d.nic.interfaces {
			if !nd.away {
				byName[nd.Name] = host.Link{Index: nd.index, Name: nd.Name}
			}
		}
	}
	links := &host.Links{Links: map[int]host.Link{}}
	for name, l := range byName {
		l.Master, l.Lower = byName[n.network.master[name]].Index, byName[n.network.lower[name]].Index
		links.Links[l.Index] = l
	}
	for _, r := range n.network.routes {
		if l, there := byName[r.name]; there {
			links.Defaults = append(links.Defaults, host.Default{Index: l.Index, Family: r.family, Table: r.table})
		}
	}
	slices.SortFunc(links.Defaults, func(a, b host.Default) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Family, b.Family), cmp.Compare(a.Table, b.Table))
	})
	return links, nil
}
