package hostnet

import (
	"bytes"
	"strings"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
)

// FuzzLink writes a link and reads it again.
func FuzzLink(f *testing.F) {
	f.Add("eno1", "", uint32(2), uint32(0), uint32(0), false)
	f.Add("bond0.7", "vlan", uint32(8), uint32(9), uint32(7), false)
	f.Add("veth1", "veth", uint32(10), uint32(0), uint32(2), true)
	f.Fuzz(func(t *testing.T, name, kind string, number, master, lower uint32, elsewhere bool) {
		if len(name)+len(kind) > 1000 || number > 1<<31-1 {
			t.Skip()
		}
		attrs := [][]byte{
			attr(unix.IFLA_IFNAME, text(name)), attr(unix.IFLA_LINK, num(lower)), attr(unix.IFLA_MASTER|unix.NLA_F_NET_BYTEORDER, num(master)),
			attr(unix.IFLA_LINKINFO|unix.NLA_F_NESTED, attr(nl.IFLA_INFO_KIND, text(kind)), attr(nl.IFLA_INFO_DATA, text(name))),
		}
		if elsewhere {
			attrs = append(attrs, attr(unix.IFLA_LINK_NETNSID, num(lower)))
			lower = 0
		}
		name, _, _ = strings.Cut(name, "\x00")
		kind, _, _ = strings.Cut(kind, "\x00")
		want := host.Link{Index: int(number), Name: name, Kind: kind, Master: int(master), Lower: int(lower)}
		if got, err := parseLink(linkMessage(number, attrs...)); got != want || err != nil {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	})
}

// FuzzMessages gives any message to every reader.
func FuzzMessages(f *testing.F) {
	f.Add(linkMessage(8, attr(unix.IFLA_IFNAME, text("bond0.7")), attr(unix.IFLA_LINKINFO, attr(nl.IFLA_INFO_KIND, text("vlan")))))
	f.Add(infoMessage(version(nl.DEVLINK_ATTR_INFO_VERSION_RUNNING, "fw.app.name", "ICE COMMS Package")))
	hop := append([]byte{8, 0, 0, 0}, num(3)...)
	route := []byte{unix.AF_INET, 0, 0, 0, unix.RT_TABLE_MAIN, 0, 0, unix.RTN_UNICAST, 0, 0, 0, 0}
	f.Add(bytes.Join([][]byte{route, attr(unix.RTA_TABLE, num(70000)), attr(unix.RTA_MULTIPATH, hop, hop)}, nil))
	f.Add(bytes.Join([][]byte{route, attr(unix.RTA_OIF, num(3)), attr(nexthopID, num(5))}, nil))
	f.Add(bytes.Join([][]byte{make([]byte, 8), attr(unix.NHA_ID, num(5)), attr(unix.NHA_GROUP, num(6), num(0), num(7), num(0))}, nil))
	f.Add([]byte{1, 2, 0, 0, 6, 0, 1, 0, 0x10, 0, 0, 0})
	f.Fuzz(func(t *testing.T, msg []byte) {
		if l, err := parseLink(msg); err == nil && len(l.Name)+len(l.Kind) > len(msg) {
			t.Errorf("%x is %+v", msg, l)
		}
		r, ok, err := parseRoute(msg, unix.AF_INET)
		if ok && err == nil && (msg[0] != unix.AF_INET || msg[1] != 0 || msg[7] != unix.RTN_UNICAST || r.table == unix.RT_TABLE_LOCAL || len(r.links)*8 > len(msg)) {
			t.Errorf("%x is %+v", msg, r)
		}
		if n, err := parseNexthop(msg); err == nil && len(n.members)*4 > len(msg) {
			t.Errorf("%x is %+v", msg, n)
		}
		if profile, err := parseProfile(msg); profile != "" && (err != nil || !bytes.Contains(msg, []byte("fw.app.name")) || !bytes.Contains(msg, []byte(profile))) {
			t.Errorf("%x is %q, %v", msg, profile, err)
		}
		if n, err := parseFamily(msg); err != nil && len(msg) == 4 || n != 0 && len(msg) < 10 {
			t.Errorf("%x is %d, %v", msg, n, err)
		}
	})
}
