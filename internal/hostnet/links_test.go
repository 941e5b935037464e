package hostnet_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/hostnet"
)

// TestLinks: what there is, how it is stacked, and of what kind it is.
func TestLinks(t *testing.T) {
	hostnet.Alone(t)
	if diff := cmp.Diff(map[int]host.Link{1: {Index: 1, Name: "lo"}}, links(t).Links); diff != "" {
		t.Fatalf("a new namespace (-want +got):\n%s", diff)
	}
	one, other := pair(t, "one", "other")
	bridge, _ := add(t, &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}})
	must(t, "enslave", netlink.LinkSetMaster(named(t, "one"), named(t, "br0")))
	want := map[int]host.Link{
		1:      {Index: 1, Name: "lo"},
		one:    {Index: one, Name: "one", Kind: "veth", Master: bridge, Lower: other},
		other:  {Index: other, Name: "other", Kind: "veth", Lower: one},
		bridge: {Index: bridge, Name: "br0", Kind: "bridge"},
	}
	if diff := cmp.Diff(want, links(t).Links); diff != "" {
		t.Errorf("veth and bridge (-want +got):\n%s", diff)
	}
	must(t, "take out", netlink.LinkSetNoMaster(named(t, "one")))
	must(t, "rename", netlink.LinkSetName(named(t, "br0"), "br1"))
	must(t, "remove", netlink.LinkDel(named(t, "other")))
	want = map[int]host.Link{1: want[1], bridge: {Index: bridge, Name: "br1", Kind: "bridge"}}
	if diff := cmp.Diff(want, links(t).Links); diff != "" {
		t.Errorf("the bridge alone (-want +got):\n%s", diff)
	}
}

// TestElsewhere: the number of a link in another namespace is none of this one, although
// there is a link of that number here.
func TestElsewhere(t *testing.T) {
	hostnet.Alone(t)
	there, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	must(t, "open the namespace", err)
	defer unix.Close(there)
	hostnet.Alone(t)
	// The first link of the other namespace after lo, and of this one: both have index 2.
	pair(t, "one", "other")
	inner, ok := add(t, &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: "inner"}, PeerName: "outer", PeerNamespace: netlink.NsFd(there),
	})
	if !ok {
		t.Fatal("the kernel has no veth")
	}
	if got := named(t, "inner").Attrs().ParentIndex; links(t).Links[got].Name == "" {
		t.Fatalf("the peer has index %d, which proves nothing: there is no such link here", got)
	}
	if diff := cmp.Diff(host.Link{Index: inner, Name: "inner", Kind: "veth"}, links(t).Links[inner]); diff != "" {
		t.Errorf("a link with its peer elsewhere (-want +got):\n%s", diff)
	}
}

// TestKinds: the kinds that a kernel may lack.
func TestKinds(t *testing.T) {
	for _, c := range []struct {
		kind string
		link func(base netlink.LinkAttrs) netlink.Link
		port bool // veth one becomes its port
	}{
		{"dummy", func(base netlink.LinkAttrs) netlink.Link {
			base.ParentIndex = 0
			return &netlink.Dummy{LinkAttrs: base}
		}, false},
		{"macvlan", func(base netlink.LinkAttrs) netlink.Link {
			return &netlink.Macvlan{LinkAttrs: base, Mode: netlink.MACVLAN_MODE_BRIDGE}
		}, false},
		{"vlan", func(base netlink.LinkAttrs) netlink.Link { return &netlink.Vlan{LinkAttrs: base, VlanId: 7} }, false},
		{"bond", func(base netlink.LinkAttrs) netlink.Link {
			bond := netlink.NewLinkBond(netlink.LinkAttrs{Name: base.Name})
			bond.Mode = netlink.BOND_MODE_ACTIVE_BACKUP
			return bond
		}, true},
		{"vrf", func(base netlink.LinkAttrs) netlink.Link {
			base.ParentIndex = 0
			return &netlink.Vrf{LinkAttrs: base, Table: 1000}
		}, true},
	} {
		t.Run(c.kind, func(t *testing.T) {
			hostnet.Alone(t)
			one, other := pair(t, "one", "other")
			want := host.Link{Name: "x", Kind: c.kind}
			l := c.link(netlink.LinkAttrs{Name: "x", ParentIndex: one})
			want.Lower = l.Attrs().ParentIndex
			made, ok := add(t, l)
			if !ok {
				// Also in CI: a kernel without it is a kernel too. See TestParseLink.
				t.Skip("SKIPPED: this kernel has no " + c.kind)
			}
			want.Index = made
			port := host.Link{Index: one, Name: "one", Kind: "veth", Lower: other}
			if c.port {
				must(t, "set down", netlink.LinkSetDown(named(t, "one"))) // a bond wants that
				must(t, "enslave", netlink.LinkSetMaster(named(t, "one"), named(t, "x")))
				port.Master = made
			}
			got := links(t).Links
			if diff := cmp.Diff([]host.Link{want, port}, []host.Link{got[made], got[one]}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
