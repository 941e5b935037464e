package hostnet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// attr is an attribute with what is in it, as the kernel lays it out.
func attr(kind uint16, parts ...[]byte) []byte {
	value := bytes.Join(parts, nil)
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, -len(b)&3)...)
}

func num(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }

func text(s string) []byte { return append([]byte(s), 0) }

// linkMessage is struct ifinfomsg and attributes.
func linkMessage(index uint32, attrs ...[]byte) []byte {
	return slices.Concat([]byte{unix.AF_UNSPEC, 0, 1, 0}, num(index), num(unix.IFF_UP), num(0), bytes.Join(attrs, nil))
}

// TestParseLink: kinds that the kernel of a test may lack, as others have them.
func TestParseLink(t *testing.T) {
	const nested = unix.NLA_F_NESTED
	kind := func(k string, rest ...[]byte) []byte {
		return attr(unix.IFLA_LINKINFO|nested, attr(nl.IFLA_INFO_KIND, text(k)), bytes.Join(rest, nil))
	}
	for _, c := range []struct {
		name string
		msg  []byte
		want host.Link
	}{
		{
			"a NIC's own", linkMessage(2, attr(unix.IFLA_IFNAME, text("eno1")), attr(unix.IFLA_MTU, num(1500))),
			host.Link{Index: 2, Name: "eno1"},
		},
		{
			"a port of a bond", linkMessage(3, attr(unix.IFLA_IFNAME, text("eno2")), attr(unix.IFLA_MASTER, num(7)),
				attr(unix.IFLA_LINKINFO|nested, attr(nl.IFLA_INFO_SLAVE_KIND, text("bond")), attr(nl.IFLA_INFO_SLAVE_DATA|nested, attr(1, []byte{0})))),
			host.Link{Index: 3, Name: "eno2", Master: 7},
		},
		{
			"a bond", linkMessage(7, attr(unix.IFLA_IFNAME, text("bond0")), kind("bond", attr(nl.IFLA_INFO_DATA|nested, attr(1, []byte{4})))),
			host.Link{Index: 7, Name: "bond0", Kind: "bond"},
		},
		{
			"a VLAN above it in a VRF", linkMessage(8, attr(unix.IFLA_IFNAME, text("bond0.7")), attr(unix.IFLA_LINK, num(7)), attr(unix.IFLA_MASTER, num(9)),
				kind("vlan", attr(nl.IFLA_INFO_SLAVE_KIND, text("vrf")))),
			host.Link{Index: 8, Name: "bond0.7", Kind: "vlan", Lower: 7, Master: 9},
		},
		{
			"a pod's end of a veth", linkMessage(10, attr(unix.IFLA_IFNAME, text("veth1")), attr(unix.IFLA_LINK_NETNSID, num(0)), attr(unix.IFLA_LINK, num(2)), kind("veth")),
			host.Link{Index: 10, Name: "veth1", Kind: "veth"},
		},
		{
			"a port of Open vSwitch", linkMessage(11, attr(unix.IFLA_IFNAME, text("rep0")), attr(unix.IFLA_MASTER, num(12)),
				attr(unix.IFLA_LINKINFO|nested, attr(nl.IFLA_INFO_SLAVE_KIND, text("openvswitch")))),
			host.Link{Index: 11, Name: "rep0", Master: 12},
		},
	} {
		got, err := parseLink(c.msg)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, diff)
		}
	}
}

// TestParseRoute: messages that a kernel without what they ask for sends.
func TestParseRoute(t *testing.T) {
	message := func(family, prefix byte, attrs ...[]byte) []byte {
		return append([]byte{family, prefix, 0, 0, unix.RT_TABLE_MAIN, 0, 0, unix.RTN_UNICAST, 0, 0, 0, 0}, bytes.Join(attrs, nil)...)
	}
	oif := attr(unix.RTA_OIF, num(2))
	for _, c := range []struct {
		name string
		msg  []byte
		ok   bool
	}{
		{"a default route", message(unix.AF_INET6, 0, oif), true},
		{"IPv4 from a kernel without IPv6", message(unix.AF_INET, 0, oif), false},
		{"one with a destination", message(unix.AF_INET6, 1, oif), false},
	} {
		r, ok, err := parseRoute(c.msg, unix.AF_INET6)
		if ok != c.ok || err != nil || ok && !slices.Equal(r.links, []int{2}) {
			t.Errorf("%s: %+v, %v, %v", c.name, r, ok, err)
		}
	}
}

// version is an entry of devlink's info, and message is one with some.
func version(kind uint16, name, value string) []byte {
	return attr(kind|unix.NLA_F_NESTED, attr(nl.DEVLINK_ATTR_INFO_VERSION_NAME, text(name)), attr(nl.DEVLINK_ATTR_INFO_VERSION_VALUE, text(value)))
}

func infoMessage(attrs ...[]byte) []byte {
	return append([]byte{nl.DEVLINK_CMD_INFO_GET, 1, 0, 0}, bytes.Join(append([][]byte{
		attr(nl.DEVLINK_ATTR_BUS_NAME, text("pci")), attr(nl.DEVLINK_ATTR_DEV_NAME, text("0000:41:00.0")),
		attr(nl.DEVLINK_ATTR_INFO_DRIVER_NAME, text("ice")), attr(nl.DEVLINK_ATTR_INFO_SERIAL_NUMBER, text("00-01-00-ff-ff-00-00-00")),
	}, attrs...), nil)...)
}

func TestParseProfile(t *testing.T) {
	const fixed, running, stored = nl.DEVLINK_ATTR_INFO_VERSION_FIXED, nl.DEVLINK_ATTR_INFO_VERSION_RUNNING, nl.DEVLINK_ATTR_INFO_VERSION_STORED
	board, mgmt := version(fixed, "board.id", "K65390-000"), version(running, "fw.mgmt", "5.4.5")
	for _, c := range []struct {
		name  string
		attrs [][]byte
		want  string
	}{
		{"a package", [][]byte{
			board, mgmt, version(running, "fw.app.name", "ICE COMMS Package"), version(running, "fw.app", "1.3.45.0"),
			version(running, "fw.app.bundle_id", "0xc0000001"), version(stored, "fw.mgmt", "6.0.0"),
		}, "ICE COMMS Package"},
		{"none", [][]byte{board, mgmt, version(running, "fw.app", "1.3.45.0")}, ""},
		{"another one is stored", [][]byte{version(running, "fw.app.name", "ICE OS Default Package"), version(stored, "fw.app.name", "ICE COMMS Package")}, "ICE OS Default Package"},
		{"one that does not run", [][]byte{version(stored, "fw.app.name", "ICE COMMS Package")}, ""},
		{"without a name", [][]byte{version(running, "fw.app.name", "")}, ""},
		{"nothing", nil, ""},
	} {
		if got, err := parseProfile(infoMessage(c.attrs...)); got != c.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

// TestBroken: what is cut off or overlong is an error and not a value.
func TestBroken(t *testing.T) {
	whole := infoMessage(version(nl.DEVLINK_ATTR_INFO_VERSION_RUNNING, "fw.app.name", "ICE COMMS Package"))
	for n := len(whole) - 1; n > len(infoMessage()); n-- {
		// The padding at the end may be missing; the kernel never leaves it out.
		if got, err := parseProfile(whole[:n]); got != "" && got != "ICE COMMS Package" || got == "" && !errors.Is(err, errShort) {
			t.Errorf("%d of %d bytes: %q, %v", n, len(whole), got, err)
		}
	}
	for name, msg := range map[string][]byte{
		"no header": {0, 0, 0}, "no room for an attribute": linkMessage(1, []byte{8, 0}), "an attribute of nothing": linkMessage(1, []byte{0, 0, 3, 0}),
		"an attribute without end": linkMessage(1, []byte{255, 0, 3, 0}), "half a number": linkMessage(1, attr(unix.IFLA_MASTER, []byte{1, 0})),
		"half a kind": linkMessage(1, attr(unix.IFLA_LINKINFO, []byte{9, 0, 1, 0, 'v'})),
	} {
		if l, err := parseLink(msg); !errors.Is(err, errShort) {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
}

// TestWhole: a dump that was interrupted is made again, and what it had is not used.
func TestWhole(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name      string
		interrupt int // so many times
		then      error
		reads     int
		want      error
	}{
		{"never", 0, nil, 1, nil},
		{"twice", 2, nil, 3, nil},
		{"always", 1000, nil, 10, nl.ErrDumpInterrupted},
		{"broken", 0, broken, 1, broken},
		{"and then broken", 1, broken, 2, broken},
	} {
		reads := 0
		msgs, err := whole(func() ([][]byte, error) {
			reads++
			if reads <= c.interrupt {
				return [][]byte{{1}}, nl.ErrDumpInterrupted
			}
			return [][]byte{{2}}, c.then
		})
		if reads != c.reads || !errors.Is(err, c.want) || err == nil && !bytes.Equal(msgs[0], []byte{2}) {
			t.Errorf("%s: %v, %v after %d reads", c.name, msgs, err, reads)
		}
	}
}

// TestDevlink asks the real kernel, about what no kernel has.
func TestDevlink(t *testing.T) {
	before := sockets(t)
	d, err := OpenDevlink()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("devlink is family %d", d.family)
	for range 3 {
		if got, err := d.Profile(pci.Address{Domain: 0xffff, Bus: 0xff, Device: 0x1f, Function: 7}); got != "" || err != nil {
			t.Errorf("a function that is not there: %q, %v", got, err)
		}
		if n, err := d.find("nlctrl"); n != unix.GENL_ID_CTRL || err != nil {
			t.Errorf("the family of families: %d, %v", n, err)
		}
		if n, err := d.find("kata"); n != 0 || err != nil {
			t.Errorf("no family: %d, %v", n, err)
		}
	}
	// A family that is there and knows nothing of PCI functions.
	d.family = unix.GENL_ID_CTRL
	if got, err := d.Profile(pci.Address{}); got != "" || err != nil && !errors.Is(err, unix.EINVAL) {
		t.Errorf("of another family: %q, %v", got, err)
	}
	if n := sockets(t); n != before+1 {
		t.Errorf("%d sockets, want one more than %d", n, before)
	}
	d.Close()
	if n := sockets(t); n != before {
		t.Errorf("%d sockets after the end, %d before", n, before)
	}
	if _, err := d.Profile(pci.Address{}); err == nil {
		t.Error("an answer after the end")
	}
}

// TestConcerns: of routes only default routes are a reason to look. A node has one of its own
// for each pod.
func TestConcerns(t *testing.T) {
	route := func(kind uint16, length uint8) syscall.NetlinkMessage {
		header := &nl.RtMsg{}
		header.Dst_len = length
		return syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: kind}, Data: header.Serialize()}
	}
	for _, tt := range []struct {
		what string
		msg  syscall.NetlinkMessage
		want bool
	}{
		{"a default route", route(unix.RTM_NEWROUTE, 0), true},
		{"a default route that goes", route(unix.RTM_DELROUTE, 0), true},
		{"a route to a pod", route(unix.RTM_NEWROUTE, 32), false},
		{"a route to a network that goes", route(unix.RTM_DELROUTE, 24), false},
		{"a link", syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: unix.RTM_NEWLINK}, Data: make([]byte, unix.SizeofIfInfomsg)}, true},
		{"a torn route", syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: unix.RTM_NEWROUTE}, Data: []byte{2}}, true},
	} {
		if got := concerns(tt.msg); got != tt.want {
			t.Errorf("%s: %v", tt.what, got)
		}
	}
}
