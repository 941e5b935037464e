package hostnet_test

import (
	"errors"
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/hostnet"
)

// must ends the test at a step of its preparation.
func must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// add makes a link and returns its index. It reports false where the kernel was built
// without the kind, as small ones for virtual machines are.
func add(t *testing.T, l netlink.Link) (int, bool) {
	t.Helper()
	err := netlink.LinkAdd(l)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return 0, false
	}
	must(t, "make "+l.Attrs().Name, err)
	return named(t, l.Attrs().Name).Attrs().Index, true
}

func named(t *testing.T, name string) netlink.Link {
	t.Helper()
	l, err := netlink.LinkByName(name)
	must(t, "find "+name, err)
	return l
}

// pair makes two links that are connected, up and with addresses, and returns their indexes.
func pair(t *testing.T, one, other string) (int, int) {
	t.Helper()
	if _, ok := add(t, &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: one}, PeerName: other}); !ok {
		t.Fatal("the kernel has no veth")
	}
	for name, addresses := range map[string][]string{
		one: {"192.0.2.1/24", "2001:db8:1::1/64"}, other: {"198.51.100.1/24", "2001:db8:2::1/64"},
	} {
		must(t, "set up "+name, netlink.LinkSetUp(named(t, name)))
		for _, a := range addresses {
			parsed, err := netlink.ParseAddr(a)
			must(t, "parse", err)
			parsed.Flags = unix.IFA_F_NODAD // it can be used at once
			must(t, "give "+name+" "+a, netlink.AddrAdd(named(t, name), parsed))
		}
	}
	return named(t, one).Attrs().Index, named(t, other).Attrs().Index
}

// prefix parses a destination.
func prefix(t *testing.T, text string) *net.IPNet {
	t.Helper()
	_, p, err := net.ParseCIDR(text)
	must(t, "parse", err)
	return p
}

// links reads what is to be tested.
func links(t *testing.T) *host.Links {
	t.Helper()
	l, err := hostnet.Links()
	must(t, "read links", err)
	return l
}
