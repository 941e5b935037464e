package host

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
)

// isSubfunction says whether an entry has the name of an auxiliary device of type sf
// (drivers/base/auxiliary.c: module, type, number).
func isSubfunction(name string) bool {
	rest, number, ok := cutLast(name, ".")
	module, kind, _ := cutLast(rest, ".")
	return ok && kind == "sf" && module != "" && isNumber(number)
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// subfunction reads one subfunction.
func (l *look) subfunction(r *reader, name string, old []Subfunction) (sf Subfunction, there bool) {
	was := Subfunction{Name: name}
	if i := slices.IndexFunc(old, func(s Subfunction) bool { return s.Name == name }); i >= 0 {
		was = old[i]
	}
	sf.Name = name
	number, err := read(r, name+"/sfnum", parseNumber)
	if sf.Number, there = member(r, name+"/sfnum", number, err, was.Number); !there {
		return sf, false
	}
	sf.Driver, _ = r.link(name+"/driver", was.Driver)
	entries, ok := r.list(name)
	if !ok {
		sf.Interfaces, sf.RDMA = was.Interfaces, was.RDMA
		return sf, true
	}
	if slices.Contains(entries, "net") {
		sf.Interfaces = r.interfaces(name+"/net", was.Interfaces)
	}
	sf.RDMA = l.rdma(r, name+"/", entries, was.RDMA)
	return sf, true
}

// onVDPA says whether a name is that of a device on the vDPA bus. Whoever adds one may call it
// anything, and a function's directory has some sixty entries, so the bus is listed first.
func (l *look) onVDPA(name string) bool {
	if l.vdpaNames == nil {
		l.vdpaNames = map[string]bool{}
		names, err := l.list("bus/vdpa/devices")
		for _, n := range names {
			l.vdpaNames[n] = true
		}
		for i := range l.prev.Functions {
			if n := l.prev.Functions[i].Network; n != nil && err != nil {
				for _, v := range n.VDPA {
					l.vdpaNames[v.Name] = true
				}
			}
		}
	}
	return l.vdpaNames[name]
}

// vdpa reads one vDPA device. The driver is bound before it makes the node
// (drivers/vhost/vdpa.c, vhost_vdpa_probe).
func (l *look) vdpa(r *reader, name string, old []VDPADevice) (v VDPADevice, there bool) {
	var was VDPADevice
	if i := slices.IndexFunc(old, func(v VDPADevice) bool { return v.Name == name }); i >= 0 {
		was = old[i]
	}
	bus, err := fs.ReadLink(r.sys, r.dir+"/"+name+"/subsystem")
	switch {
	case gone(err), errors.Is(err, syscall.ENOTDIR):
		return v, false
	case err != nil:
		r.fail(name+"/subsystem", err)
		return was, was.Name != ""
	case path.Base(bus) != "vdpa":
		return v, false
	}
	v.Name = name
	v.Driver, _ = r.link(name+"/driver", was.Driver)
	if v.Driver != "vhost_vdpa" {
		return v, true
	}
	var before []CharDevice
	if was.Node != nil {
		before = append(before, *was.Node)
	}
	if nodes := l.numbered(r, name, "vhost-vdpa-", before); len(nodes) > 0 {
		v.Node = &nodes[0]
	} else {
		r.torn = true
	}
	return v, true
}

// noIOMMU says whether the function's group is one that VFIO invented
// (drivers/vfio/group.c, vfio_noiommu_group_alloc). Most groups have no name.
func (l *look) noIOMMU(r *reader, old bool) bool {
	parse := func(s string) (bool, error) { return strings.TrimSuffix(s, "\n") == "vfio-noiommu", nil }
	return optional(r, "iommu_group/name", parse, old, false)
}

// groupNode examines the node of the function's group. A function that is registered with
// VFIO has one, unless the kernel has none at all (CONFIG_VFIO_GROUP): then that it is absent
// does not pass.
func (l *look) groupNode(r *reader, number string, noIOMMU, registered bool, old *CharDevice) *CharDevice {
	if noIOMMU {
		number = "noiommu-" + number
	}
	var before []CharDevice
	if old != nil {
		before = append(before, *old)
	}
	torn := r.torn
	c := l.node(r, "/dev/vfio/"+number, "class/vfio/"+number+"/dev", before)
	if registered {
		r.torn = torn
	}
	return &c
}
