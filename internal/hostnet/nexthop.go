package hostnet

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// nexthop is a nexthop object (ip nexthop), which routing daemons share between routes.
type nexthop struct {
	id      uint32
	link    int      // 0 for a group and for a black hole
	members []uint32 // of a group; they are no groups themselves
}

// resolve fills in the interfaces of routes that only name a nexthop object. The kernel
// names both, unless net.ipv4.nexthop_compat_mode is 0 (fib_dump_info in
// net/ipv4/fib_semantics.c, rt6_fill_node in net/ipv6/route.c).
func resolve(routes []route) error {
	msgs, err := dump(unix.RTM_GETNEXTHOP, unix.RTM_NEWNEXTHOP, blank(unix.SizeofNhmsg))
	if err != nil {
		return fmt.Errorf("read nexthop objects: %w", err)
	}
	objects := make(map[uint32]nexthop, len(msgs))
	for _, m := range msgs {
		n, err := parseNexthop(m)
		if err != nil {
			return fmt.Errorf("read nexthop objects: %w", err)
		}
		objects[n.id] = n
	}
	for i := range routes {
		r := &routes[i]
		if len(r.links) > 0 || r.id == 0 {
			continue
		}
		object, ok := objects[r.id]
		if !ok {
			return fmt.Errorf("a route in table %d leads to nexthop object %d, which is not there", r.table, r.id)
		}
		for _, n := range append([]nexthop{object}, pick(objects, object.members)...) {
			if n.link != 0 {
				r.links = append(r.links, n.link)
			}
		}
	}
	return nil
}

func pick(objects map[uint32]nexthop, ids []uint32) []nexthop {
	picked := make([]nexthop, 0, len(ids))
	for _, id := range ids {
		picked = append(picked, objects[id])
	}
	return picked
}

func parseNexthop(msg []byte) (nexthop, error) {
	if len(msg) < unix.SizeofNhmsg {
		return nexthop{}, errShort
	}
	var n nexthop
	err := attributes(msg[unix.SizeofNhmsg:], func(kind uint16, value []byte) (err error) {
		switch kind {
		case unix.NHA_ID:
			n.id, err = number(value)
		case unix.NHA_OIF:
			n.link, err = index(value)
		case unix.NHA_GROUP:
			for ; len(value) > 0 && err == nil; value = value[min(unix.SizeofNexthopGrp, len(value)):] {
				var id uint32
				id, err = number(value) // struct nexthop_grp begins with it
				n.members = append(n.members, id)
			}
		}
		return err
	})
	return n, err
}

// blank is the header of a request that asks for nothing in particular.
type blank int

// Len implements the library's NetlinkRequestData.
func (b blank) Len() int { return int(b) }

// Serialize implements the library's NetlinkRequestData.
func (b blank) Serialize() []byte { return make([]byte, b) }
