package host

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"
)

// interfaces reads the network interfaces in a directory net.
//
// Its entries are those of one network namespace, that of whoever mounted sysfs
// (fs/sysfs/mount.c): what a pod has been given is not among them.
func (r *reader) interfaces(dir string, old []Interface) []Interface {
	names, ok := r.list(dir)
	if !ok {
		return old
	}
	was := func(name string) Interface {
		if i := slices.IndexFunc(old, func(i Interface) bool { return i.Name == name }); i >= 0 {
			return old[i]
		}
		return Interface{Name: name}
	}
	var all []Interface
	for _, name := range names {
		if i, there := r.netdev(dir+"/"+name, was(name)); there {
			all = append(all, i)
		}
	}
	if len(all) > 1 {
		for i := range all {
			at, before := dir+"/"+all[i].Name, was(all[i].Name)
			all[i].SwitchID = r.port(at+"/phys_switch_id", before.SwitchID)
			all[i].PortName = r.port(at+"/phys_port_name", before.PortName)
		}
	}
	return all
}

// virtio reads those of a virtio device, which has none without its driver.
func (r *reader) virtio(name string, old []Interface) []Interface {
	entries, ok := r.list(name)
	switch {
	case !ok:
		return old
	case !slices.Contains(entries, "net"):
		return nil
	}
	return r.interfaces(name+"/net", old)
}

// netdev reads what every interface has. It takes no lock (net/core/net-sysfs.c,
// netdev_show).
func (r *reader) netdev(dir string, was Interface) (i Interface, there bool) {
	i.Name = was.Name
	index, err := readNet(r, dir+"/ifindex", parseIndex)
	if i.Index, there = member(r, dir+"/ifindex", index, err, was.Index); !there {
		return i, false
	}
	kind, err := readNet(r, dir+"/type", parseInt)
	i.Type, there = member(r, dir+"/type", kind, err, was.Type)
	return i, there
}

// port reads what a driver knows of an interface's port, "" where that is nothing. It takes
// the RTNL, which a change of any interface of the machine may hold for long, so that is
// asked only where it tells several interfaces apart, as a PF and its representors.
func (r *reader) port(name, old string) string {
	text, err := readNet(r, name, parseText)
	switch {
	case gone(err):
		return ""
	case err != nil:
		r.fail(name, err)
		return old
	}
	return text
}

// readNet reads an attribute of an interface. One that is being unregistered answers EINVAL
// while its directory is there, and a port of which the driver knows nothing EOPNOTSUPP
// (net/core/net-sysfs.c): neither is an error.
func readNet[T any](r *reader, name string, parse func(string) (T, error)) (T, error) {
	v, err := read(r, name, parse)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EOPNOTSUPP) {
		err = fs.ErrNotExist
	}
	return v, err
}
