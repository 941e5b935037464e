package hostnet_test

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"testing"
	"testing/fstest"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/hostnet"
	"kata-device-plugin/internal/sysfs"
)

// TestSameNamespace compares with a real sysfs of the same namespace, and of another one.
func TestSameNamespace(t *testing.T) {
	dir := t.TempDir()
	hostnet.Alone(t)
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		hostnet.Skip(t, "no mount namespace can be made", err)
	}
	must(t, "leave the machine's mounts alone", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	if err := unix.Mount("sysfs", dir, "sysfs", unix.MS_RDONLY, ""); err != nil {
		hostnet.Skip(t, "sysfs cannot be mounted", err)
	}
	t.Cleanup(func() { must(t, "unmount", unix.Unmount(dir, 0)) })
	pair(t, "one", "other")
	add(t, netlink.NewLinkBond(netlink.LinkAttrs{Name: "bond0"})) // makes bonding_masters, where there are bonds
	sys, err := sysfs.Open(dir)
	must(t, "open", err)
	t.Cleanup(func() { sys.Close() })
	if err := hostnet.SameNamespace(sys, hostnet.Links); err != nil {
		t.Error(err)
	}
	hostnet.Alone(t)
	if err := hostnet.SameNamespace(sys, hostnet.Links); !errors.Is(err, hostnet.ErrNamespace) {
		t.Errorf("another namespace: %v", err)
	}
}

// tree is class/net with one file ifindex a link.
func tree(links map[string]string) fs.FS {
	t := fstest.MapFS{"class/net": {Mode: fs.ModeDir | 0o755}, "class/net/bonding_masters": {Data: []byte("bond0\n")}}
	for name, index := range links {
		t["class/net/"+name+"/ifindex"] = &fstest.MapFile{Data: []byte(index)}
	}
	return t
}

// shown are links as netlink shows them.
func shown(links map[string]int) *host.Links {
	l := &host.Links{Links: map[int]host.Link{}}
	for name, index := range links {
		l.Links[index] = host.Link{Index: index, Name: name}
	}
	return l
}

func TestDifferences(t *testing.T) {
	many := map[string]string{"lo": "1\n"}
	for i := range 100 {
		many["eth"+strconv.Itoa(i)] = strconv.Itoa(2+i) + "\n"
	}
	const differ = "netlink and sysfs show different network namespaces: "
	for _, c := range []struct {
		name  string
		sys   fs.FS
		links []map[string]int // one read after the other
		want  string
	}{
		{"the same", tree(map[string]string{"lo": "1\n", "eno1": "2\n"}), []map[string]int{{"lo": 1, "eno1": 2}}, ""},
		{
			"a pod's", tree(map[string]string{"lo": "1\n", "eno1": "2\n", "eno2": "3\n"}),
			[]map[string]int{{"lo": 1, "eth0": 3}, {"lo": 1, "eth0": 3}, {"lo": 1, "eth0": 3}},
			differ + "only sysfs has eno1 (2), eno2 (3); only netlink has eth0 (3)",
		},
		{
			"the same names", tree(map[string]string{"lo": "1\n", "eth0": "2\n"}),
			[]map[string]int{{"lo": 1, "eth0": 9}, {"lo": 1, "eth0": 9}, {"lo": 1, "eth0": 9}},
			differ + "only sysfs has eth0 (2); only netlink has eth0 (9)",
		},
		{
			"many", tree(many), []map[string]int{{"lo": 1}, {"lo": 1}, {"lo": 1}},
			differ + "only sysfs has eth0 (2), eth1 (3), eth10 (12), eth11 (13), 96 more",
		},
		{
			"pods come and go", tree(map[string]string{"lo": "1\n", "veth1": "2\n"}),
			[]map[string]int{{"lo": 1}, {"lo": 1, "veth1": 2, "veth2": 3}, {"never": 4}}, "",
		},
		{
			"one stays a while", tree(map[string]string{"lo": "1\n"}),
			[]map[string]int{{"lo": 1, "veth1": 2}, {"lo": 1, "veth1": 2}, {"lo": 1}}, "",
		},
		{
			"and another one stays", tree(map[string]string{"lo": "1\n"}),
			[]map[string]int{{"lo": 1, "veth2": 3, "eth0": 7}, {"lo": 1, "veth3": 4, "eth0": 7}, {"lo": 1, "eth0": 7}},
			differ + "only netlink has eth0 (7)",
		},
		{
			"renumbered in between", tree(map[string]string{"lo": "1\n", "veth1": "2\n"}),
			[]map[string]int{{"lo": 1, "veth1": 3}, {"lo": 1, "veth1": 2}}, "",
		},
		{
			"no class", fstest.MapFS{}, []map[string]int{{}},
			"compare the network namespaces of netlink and sysfs: open class/net: file does not exist",
		},
		{
			"no number", tree(map[string]string{"lo": "one\n"}), []map[string]int{{}},
			`compare the network namespaces of netlink and sysfs: read ifindex of lo: strconv.Atoi: parsing "one": invalid syntax`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			err := hostnet.SameNamespace(c.sys, func() (*host.Links, error) {
				now := shown(c.links[0])
				c.links = c.links[1:]
				return now, nil
			})
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestUnreadable: what could not be read is no difference.
func TestUnreadable(t *testing.T) {
	err := hostnet.SameNamespace(tree(nil), func() (*host.Links, error) { return nil, os.ErrPermission })
	if !errors.Is(err, os.ErrPermission) || errors.Is(err, hostnet.ErrNamespace) {
		t.Error(err)
	}
}
