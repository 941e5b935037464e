package hostnet_test

import (
	"encoding/binary"
	"net"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/hostnet"
)

// TestDefaults: default routes of both families and in every table, and nothing else.
func TestDefaults(t *testing.T) {
	hostnet.Alone(t)
	one, other := pair(t, "one", "other")
	if got := links(t).Defaults; len(got) != 0 {
		t.Fatalf("%v without any default route", got)
	}
	all4, all6 := prefix(t, "0.0.0.0/0"), prefix(t, "::/0")
	gw4, gw6 := net.ParseIP("192.0.2.2"), net.ParseIP("2001:db8:1::2")
	other4, other6 := net.ParseIP("198.51.100.2"), net.ParseIP("2001:db8:2::2")
	for _, r := range []struct {
		what  string
		route netlink.Route
	}{
		{"through a gateway", netlink.Route{Dst: all4, Gw: gw4}},
		{"the same with another metric", netlink.Route{Dst: all4, Gw: gw4, Priority: 7}},
		{"IPv6", netlink.Route{Dst: all6, Gw: gw6}},
		{"in a numbered table, to a link", netlink.Route{Dst: all4, LinkIndex: other, Scope: netlink.SCOPE_LINK, Table: 100}},
		{"in a table that does not fit into the header", netlink.Route{Dst: all6, LinkIndex: other, Table: 70000}},
		{"multipath", netlink.Route{Dst: all4, Table: 101, MultiPath: []*netlink.NexthopInfo{{Gw: gw4}, {Gw: other4}}}},
		{"IPv6 multipath", netlink.Route{Dst: all6, Table: 101, MultiPath: []*netlink.NexthopInfo{{Gw: gw6}, {Gw: other6}}}},
		// None of these counts.
		{"half of everything", netlink.Route{Dst: prefix(t, "0.0.0.0/1"), Gw: other4}},
		{"the other half", netlink.Route{Dst: prefix(t, "128.0.0.0/1"), Gw: other4}},
		{"one address", netlink.Route{Dst: prefix(t, "0.0.0.0/32"), Gw: other4}},
		{"IPv6 global", netlink.Route{Dst: prefix(t, "2000::/3"), Gw: other6}},
		{"unreachable", netlink.Route{Dst: all4, Type: unix.RTN_UNREACHABLE, Table: 102}},
		{"blackhole", netlink.Route{Dst: all6, Type: unix.RTN_BLACKHOLE, Table: 102}},
		{"to the node itself", netlink.Route{Dst: all4, LinkIndex: one, Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST, Table: 103}},
		{"local table", netlink.Route{Dst: all4, LinkIndex: other, Scope: netlink.SCOPE_LINK, Table: unix.RT_TABLE_LOCAL}},
	} {
		must(t, "add a route "+r.what, netlink.RouteAdd(&r.route))
	}
	want := []host.Default{
		{Index: one, Family: "inet", Table: 101},
		{Index: one, Family: "inet", Table: unix.RT_TABLE_MAIN},
		{Index: one, Family: "inet6", Table: 101},
		{Index: one, Family: "inet6", Table: unix.RT_TABLE_MAIN},
		{Index: other, Family: "inet", Table: 100},
		{Index: other, Family: "inet", Table: 101},
		{Index: other, Family: "inet6", Table: 101},
		{Index: other, Family: "inet6", Table: 70000},
	}
	if other < one { // the kernel numbers the peer first
		want = append(want[4:len(want):len(want)], want[:4]...)
	}
	if diff := cmp.Diff(want, links(t).Defaults); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestVRF: the route of a VRF is in its table and leads to its port.
func TestVRF(t *testing.T) {
	hostnet.Alone(t)
	one, _ := pair(t, "one", "other")
	vrf, ok := add(t, &netlink.Vrf{LinkAttrs: netlink.LinkAttrs{Name: "red"}, Table: 1000})
	if !ok {
		t.Skip("SKIPPED: this kernel has no vrf") // in CI too: TestDefaults has other tables
	}
	must(t, "set up", netlink.LinkSetUp(named(t, "red")))
	must(t, "enslave", netlink.LinkSetMaster(named(t, "one"), named(t, "red")))
	must(t, "add a route", netlink.RouteAdd(&netlink.Route{Dst: prefix(t, "0.0.0.0/0"), Gw: net.ParseIP("192.0.2.2"), LinkIndex: one, Table: 1000}))
	got := links(t)
	if diff := cmp.Diff([]host.Default{{Index: one, Family: "inet", Table: 1000}}, got.Defaults); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Links[one].Master != vrf {
		t.Errorf("the port's master is %d, want %d", got.Links[one].Master, vrf)
	}
}

// TestNexthopObjects: routes that name a nexthop object, where the kernel also says what it
// leads to and where it does not.
func TestNexthopObjects(t *testing.T) {
	hostnet.Alone(t)
	must(t, "set up lo", netlink.LinkSetUp(named(t, "lo"))) // black holes are there
	one, other := pair(t, "one", "other")
	nexthop(t, unix.AF_INET, attribute(unix.NHA_ID, 5), attribute(unix.NHA_OIF, one))
	nexthop(t, unix.AF_INET, attribute(unix.NHA_ID, 6), nl.NewRtAttr(unix.NHA_GATEWAY, net.ParseIP("192.0.2.2").To4()), attribute(unix.NHA_OIF, one))
	nexthop(t, unix.AF_INET, attribute(unix.NHA_ID, 7), nl.NewRtAttr(unix.NHA_GATEWAY, net.ParseIP("198.51.100.2").To4()), attribute(unix.NHA_OIF, other))
	group := make([]byte, 2*unix.SizeofNexthopGrp)
	binary.NativeEndian.PutUint32(group, 6)
	binary.NativeEndian.PutUint32(group[unix.SizeofNexthopGrp:], 7)
	nexthop(t, unix.AF_UNSPEC, attribute(unix.NHA_ID, 8), nl.NewRtAttr(unix.NHA_GROUP, group))
	nexthop(t, unix.AF_INET, attribute(unix.NHA_ID, 9), nl.NewRtAttr(unix.NHA_BLACKHOLE, nil))
	for table, object := range map[uint32]uint32{100: 5, 101: 8, 102: 9} {
		const nexthopID = 30 // RTA_NH_ID
		header := nl.NewRtMsg()
		header.Family = unix.AF_INET
		request(t, unix.RTM_NEWROUTE, header, attribute(unix.RTA_TABLE, int(table)), attribute(nexthopID, int(object)))
	}
	want := []host.Default{
		{Index: one, Family: "inet", Table: 100},
		{Index: one, Family: "inet", Table: 101},
		{Index: other, Family: "inet", Table: 101},
	}
	if other < one {
		want = append(want[2:3:3], want[:2]...)
	}
	if diff := cmp.Diff(want, links(t).Defaults); diff != "" {
		t.Errorf("the kernel says where they lead (-want +got):\n%s", diff)
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/nexthop_compat_mode", []byte("0"), 0); err != nil {
		hostnet.Skip(t, "this sysctl cannot be set", err)
	}
	if diff := cmp.Diff(want, links(t).Defaults); diff != "" {
		t.Errorf("the kernel does not (-want +got):\n%s", diff)
	}
}

// nexthop makes a nexthop object. The library does not know them.
func nexthop(t *testing.T, family byte, attrs ...*nl.RtAttr) {
	t.Helper()
	request(t, unix.RTM_NEWNEXTHOP, header{family, 0, unix.RTPROT_STATIC, 0, 0, 0, 0, 0}, attrs...)
}

func request(t *testing.T, kind int, first nl.NetlinkRequestData, attrs ...*nl.RtAttr) {
	t.Helper()
	req := nl.NewNetlinkRequest(kind, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	req.AddData(first)
	for _, a := range attrs {
		req.AddData(a)
	}
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	must(t, "make a nexthop object or a route to one", err)
}

func attribute(kind, value int) *nl.RtAttr { return nl.NewRtAttr(kind, nl.Uint32Attr(uint32(value))) }

// header is struct nhmsg.
type header [unix.SizeofNhmsg]byte

func (h header) Len() int          { return len(h) }
func (h header) Serialize() []byte { return h[:] }
