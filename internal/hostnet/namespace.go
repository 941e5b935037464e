package hostnet

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
)

// ErrNamespace is returned, wrapped, by SameNamespace when it is another one.
var ErrNamespace = errors.New("netlink and sysfs show different network namespaces")

// SameNamespace compares the links that netlink shows with those below class/net of a
// sysfs, by index and name. Netlink shows the namespace of the process, sysfs that of
// whoever mounted it: in a pod with the node's sysfs and without hostNetwork, they are two,
// and the pod's default routes say nothing about the node's interfaces.
//
// Neither side can be frozen. So both are read a few times, and only what differs every
// time counts: links that come and go in between do not.
func SameNamespace(sys fs.FS, links func() (*host.Links, error)) error {
	const attempts = 3
	var lasting map[string]string // what differs, and who has it
	for range attempts {
		differs, err := difference(sys, links)
		if err != nil {
			return fmt.Errorf("compare the network namespaces of netlink and sysfs: %w", err)
		}
		if lasting != nil {
			maps.DeleteFunc(differs, func(link, _ string) bool { return lasting[link] == "" })
		}
		if lasting = differs; len(lasting) == 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: %s", ErrNamespace, describe(lasting))
}

// difference are the links that only one side has.
func difference(sys fs.FS, links func() (*host.Links, error)) (map[string]string, error) {
	differs := map[string]string{}
	entries, err := fs.ReadDir(sys, "class/net")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		n, ok, err := ifindex(sys, e.Name())
		if err != nil {
			return nil, err
		}
		if ok {
			differs[fmt.Sprintf("%s (%d)", e.Name(), n)] = "sysfs"
		}
	}
	seen, err := links()
	if err != nil {
		return nil, err
	}
	for _, l := range seen.Links {
		link := fmt.Sprintf("%s (%d)", l.Name, l.Index)
		if _, both := differs[link]; both {
			delete(differs, link)
		} else {
			differs[link] = "netlink"
		}
	}
	return differs, nil
}

// ifindex reports false for what is no link, like the bonding driver's file bonding_masters,
// and for one that is leaving: the kernel then removes its files, or answers EINVAL
// (netdev_show in net/core/net-sysfs.c).
func ifindex(sys fs.FS, name string) (int, bool, error) {
	text, err := fs.ReadFile(sys, "class/net/"+name+"/ifindex")
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EINVAL):
		return 0, false, nil
	case err != nil:
		return 0, false, err
	}
	n, err := strconv.Atoi(strings.TrimSuffix(string(text), "\n"))
	if err != nil {
		return 0, false, fmt.Errorf("read ifindex of %s: %w", name, err)
	}
	return n, true, nil
}

// describe names a few of the links that differ.
func describe(differs map[string]string) string {
	const most = 4
	var parts []string
	for _, who := range []string{"sysfs", "netlink"} {
		var names []string
		for _, link := range slices.Sorted(maps.Keys(differs)) {
			if differs[link] == who {
				names = append(names, link)
			}
		}
		if more := len(names) - most; more > 0 {
			names = append(names[:most], fmt.Sprintf("%d more", more))
		}
		if len(names) > 0 {
			parts = append(parts, "only "+who+" has "+strings.Join(names, ", "))
		}
	}
	return strings.Join(parts, "; ")
}
