package hostnet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
)

// nexthopID is RTA_NH_ID of include/uapi/linux/rtnetlink.h.
const nexthopID = 30

// route is a default route that leads somewhere.
type route struct {
	table int
	links []int  // the interfaces of its hops
	id    uint32 // the nexthop object that it leads to, 0 for none
}

func readDefaults() ([]host.Default, error) {
	var all []host.Default
	for _, f := range []struct {
		name   string
		number uint8
	}{{"inet", unix.AF_INET}, {"inet6", unix.AF_INET6}} {
		routes, err := readRoutes(f.number)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		for _, r := range routes {
			for _, link := range r.links {
				all = append(all, host.Default{Index: link, Family: f.name, Table: r.table})
			}
		}
	}
	slices.SortFunc(all, func(a, b host.Default) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Family, b.Family), cmp.Compare(a.Table, b.Table))
	})
	return slices.Compact(all), nil // they may differ in metric, type of service or source
}

// readRoutes reads the default routes of a family, each with its interfaces.
func readRoutes(family uint8) ([]route, error) {
	header := &nl.RtMsg{}
	header.Family = family
	msgs, err := dump(unix.RTM_GETROUTE, unix.RTM_NEWROUTE, header)
	if err != nil {
		return nil, err
	}
	var routes []route
	unresolved := false
	for _, m := range msgs {
		r, ok, err := parseRoute(m, family)
		if err != nil {
			return nil, err
		}
		if ok {
			routes = append(routes, r)
			unresolved = unresolved || len(r.links) == 0 && r.id != 0
		}
	}
	if !unresolved {
		return routes, nil
	}
	return routes, resolve(routes)
}

// parseRoute reports false for what is no default route of interest. Those that answer an
// error (unreachable, blackhole, prohibit) or that deliver to the node itself (local) lead
// to no other machine. Routes of another family come where the kernel does not have the one
// that was asked for: it then answers with all (rtnl_dump_all in net/core/rtnetlink.c).
func parseRoute(msg []byte, family uint8) (route, bool, error) {
	if len(msg) < unix.SizeofRtMsg {
		return route{}, false, errShort
	}
	header := nl.DeserializeRtMsg(msg)
	if header.Family != family || header.Dst_len != 0 || header.Type != unix.RTN_UNICAST {
		return route{}, false, nil
	}
	r := route{table: int(header.Table)}
	err := attributes(msg[unix.SizeofRtMsg:], func(kind uint16, value []byte) error {
		switch kind {
		case unix.RTA_TABLE: // the header has room for small numbers only
			n, err := number(value)
			r.table = int(n)
			return err
		case unix.RTA_OIF:
			link, err := index(value)
			r.links = append(r.links, link)
			return err
		case unix.RTA_MULTIPATH:
			hops, err := parseHops(value)
			r.links = append(r.links, hops...)
			return err
		case nexthopID:
			n, err := number(value)
			r.id = n
			return err
		}
		return nil
	})
	return r, r.table != unix.RT_TABLE_LOCAL, err
}

// parseHops reads the interfaces of a multipath route (struct rtnexthop, each followed by
// attributes of its own).
func parseHops(b []byte) ([]int, error) {
	var links []int
	for len(b) > 0 {
		if len(b) < unix.SizeofRtNexthop {
			return nil, fmt.Errorf("%w: a hop of %d bytes", errShort, len(b))
		}
		hop := nl.DeserializeRtNexthop(b)
		size := int(hop.RtNexthop.Len)
		if size < unix.SizeofRtNexthop || size > len(b) {
			return nil, fmt.Errorf("a hop has %d of %d bytes: %w", size, len(b), errShort)
		}
		links = append(links, int(hop.Ifindex))
		b = b[min((size+3)&^3, len(b)):]
	}
	return links, nil
}
