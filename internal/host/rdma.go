package host

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// rdma reads the RDMA devices below a directory of the function, "" or "mlx5_core.sf.4/",
// which has these entries.
//
// In RDMA's exclusive mode the devices are those of one network namespace, as interfaces are
// (drivers/infiniband/core/device.c, ib_class). Their nodes are seen in all of them
// (uverbs_main.c, user_mad.c), so nodes of a device that is not here are passed over.
func (l *look) rdma(r *reader, dir string, entries []string, old []RDMADevice) []RDMADevice {
	if !slices.Contains(entries, "infiniband") {
		return nil
	}
	names, ok := r.list(dir + "infiniband")
	if !ok {
		return old
	}
	var all []RDMADevice
	for _, name := range names {
		var was RDMADevice
		if i := slices.IndexFunc(old, func(d RDMADevice) bool { return d.Name == name }); i >= 0 {
			was = old[i]
		}
		if d, there := r.rdmaDevice(dir+"infiniband/"+name, name, was); there {
			all = append(all, d)
		}
	}
	for _, class := range []string{"infiniband_verbs", "infiniband_mad", "infiniband_cm"} {
		if len(all) > 0 && slices.Contains(entries, class) {
			l.rdmaNodes(r, dir+class, all, old)
		}
	}
	return all
}

// rdmaDevice reads one device without its nodes. A device is there before its ports are, and
// longer (drivers/infiniband/core/device.c, ib_register_device), but is of no use then. The partition table is read
// of InfiniBand only: elsewhere nobody uses it, and it may be the firmware that answers.
func (r *reader) rdmaDevice(dir, name string, was RDMADevice) (d RDMADevice, there bool) {
	d.Name = name
	layer, err := read(r, dir+"/ports/1/link_layer", parseText)
	if d.LinkLayer, there = member(r, dir+"/ports/1/link_layer", layer, err, was.LinkLayer); !there {
		return d, false
	}
	if d.LinkLayer == LinkInfiniBand {
		d.PKey = optional(r, dir+"/ports/1/pkeys/0", parsePKey, was.PKey, nil)
	}
	return d, true
}

// rdmaNodes reads the nodes of a class, and gives them to their devices.
func (l *look) rdmaNodes(r *reader, dir string, all, old []RDMADevice) {
	names, ok := r.list(dir)
	if !ok {
		for i := range all {
			for k := range old {
				if all[i].Name == old[k].Name {
					all[i].keep(old[k], path.Base(dir))
				}
			}
		}
		return
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	for _, name := range names {
		node := infiniBandDir + name
		owner, err := read(r, dir+"/"+name+"/ibdev", parseText)
		owner, there := member(r, dir+"/"+name+"/ibdev", owner, err, ownerOf(old, node))
		i := slices.IndexFunc(all, func(d RDMADevice) bool { return d.Name == owner })
		if !there || i < 0 {
			continue
		}
		if list := all[i].list(name); list != nil {
			*list = append(*list, l.node(r, node, r.dir+"/"+dir+"/"+name+"/dev", nodesOf(old, owner, name)))
		}
	}
}

// hidden reads the nodes that are a function's own and none of a device that is to be seen.
func (l *look) hidden(r *reader, entries []string, old []CharDevice) []CharDevice {
	var all []CharDevice
	for _, class := range []string{"infiniband_cm", "infiniband_mad", "infiniband_verbs"} {
		if !slices.Contains(entries, class) {
			continue
		}
		names, ok := r.list(class)
		if !ok {
			return old
		}
		for _, name := range names {
			if (&RDMADevice{}).list(name) != nil {
				all = append(all, l.node(r, infiniBandDir+name, r.dir+"/"+class+"/"+name+"/dev", old))
			}
		}
	}
	return all
}

// infiniBandDir is where the nodes of RDMA devices are.
const infiniBandDir = "/dev/infiniband/"

// list is where a node of some name belongs, nil for a name that is of no kind.
func (d *RDMADevice) list(name string) *[]CharDevice {
	switch strings.TrimRight(name, "0123456789") {
	case "uverbs":
		return &d.UVerbs
	case "umad":
		return &d.UMAD
	case "issm":
		return &d.ISSM
	case "ucm":
		return &d.UCM
	}
	return nil
}

// keep takes the nodes of a class from an earlier look.
func (d *RDMADevice) keep(old RDMADevice, class string) {
	switch class {
	case "infiniband_verbs":
		d.UVerbs = old.UVerbs
	case "infiniband_mad":
		d.UMAD, d.ISSM = old.UMAD, old.ISSM
	case "infiniband_cm":
		d.UCM = old.UCM
	}
}

// ownerOf is the device that had a node, "" for none.
func ownerOf(devices []RDMADevice, node string) string {
	for i := range devices {
		if list := devices[i].list(path.Base(node)); list != nil {
			if slices.ContainsFunc(*list, func(c CharDevice) bool { return c.Path == node }) {
				return devices[i].Name
			}
		}
	}
	return ""
}

// nodesOf are the nodes of the kind of a name that a device had.
func nodesOf(devices []RDMADevice, device, name string) []CharDevice {
	for i := range devices {
		if list := devices[i].list(name); devices[i].Name == device && list != nil {
			return *list
		}
	}
	return nil
}
