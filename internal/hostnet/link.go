package hostnet

import (
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
)

// skipStats is RTEXT_FILTER_SKIP_STATS of include/uapi/linux/rtnetlink.h. That
// RTEXT_FILTER_VF is not asked for matters more: it makes drivers report on each VF.
const skipStats = 1 << 3

func readLinks() (map[int]host.Link, error) {
	msgs, err := dump(unix.RTM_GETLINK, unix.RTM_NEWLINK,
		nl.NewIfInfomsg(unix.AF_UNSPEC), nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(skipStats)))
	if err != nil {
		return nil, err
	}
	links := make(map[int]host.Link, len(msgs))
	for _, m := range msgs {
		l, err := parseLink(m)
		if err != nil {
			return nil, err
		}
		links[l.Index] = l
	}
	return links, nil
}

func parseLink(msg []byte) (host.Link, error) {
	if len(msg) < unix.SizeofIfInfomsg {
		return host.Link{}, errShort
	}
	l := host.Link{Index: int(nl.DeserializeIfInfomsg(msg).Index)}
	elsewhere := false
	err := attributes(msg[unix.SizeofIfInfomsg:], func(kind uint16, value []byte) (err error) {
		switch kind {
		case unix.IFLA_IFNAME:
			l.Name = unix.ByteSliceToString(value)
		case unix.IFLA_MASTER:
			l.Master, err = index(value)
		case unix.IFLA_LINK:
			l.Lower, err = index(value)
		case unix.IFLA_LINK_NETNSID:
			elsewhere = true
		case unix.IFLA_LINKINFO:
			l.Kind, err = parseKind(value)
		}
		return err
	})
	if elsewhere {
		// The number is one of another namespace, where the other end of a veth or the
		// link below a VLAN is. Here it may be that of any link (rtnl_fill_link_netnsid in
		// net/core/rtnetlink.c).
		l.Lower = 0
	}
	return l, err
}

// parseKind reads the kind of a link out of its IFLA_LINKINFO. A link that belongs to a
// device has none, or one for its ports alone (IFLA_INFO_SLAVE_KIND).
func parseKind(info []byte) (string, error) {
	kind := ""
	err := attributes(info, func(attribute uint16, value []byte) error {
		if attribute == nl.IFLA_INFO_KIND {
			kind = unix.ByteSliceToString(value)
		}
		return nil
	})
	return kind, err
}
