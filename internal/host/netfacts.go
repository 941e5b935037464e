package host

import (
	"cmp"
	"slices"
	"strings"
)

// network reads what a function is beyond PCI and VFIO. Its directory is listed once: the
// names in it say which of the rest there is to read.
func (l *look) network(r *reader, f, old *Function, link *classLink) *Network {
	was := Network{VFIndex: -1}
	if old.Network != nil {
		was = *old.Network
	}
	names, ok := r.list("")
	if !ok {
		return &was
	}
	r.left = r.left || len(names) == 0
	n := &Network{VFIndex: -1}
	for _, name := range names {
		switch {
		case name == "net":
			n.Interfaces = append(n.Interfaces, r.interfaces(name, was.Interfaces)...)
		case strings.HasPrefix(name, "virtio") && f.Driver == "virtio-pci":
			n.Interfaces = append(n.Interfaces, r.virtio(name, was.Interfaces)...)
		case name == "infiniband":
			n.RDMA = l.rdma(r, "", names, was.RDMA)
		case name == "uio":
			n.UIO = l.numbered(r, name, "uio", was.UIO)
		case name == "acpi_index": // asks the firmware where it is ACPI's (drivers/pci/pci-label.c)
			n.ACPIIndex = optional(r, name, parseACPIIndex, was.ACPIIndex, nil)
		case name == "sriov_totalvfs": // without the device's lock (drivers/pci/iov.c)
			n.MaxVFs = optional(r, name, parseInt, was.MaxVFs, 0)
		case isSubfunction(name):
			if sf, there := l.subfunction(r, name, was.Subfunctions); there {
				n.Subfunctions = append(n.Subfunctions, sf)
			}
		case l.onVDPA(name):
			if v, there := l.vdpa(r, name, was.VDPA); there {
				n.VDPA = append(n.VDPA, v)
			}
		}
	}
	if len(n.RDMA) == 0 {
		n.Hidden = l.hidden(r, names, was.Hidden)
	}
	if vfio := link != nil || slices.Contains(names, "vfio-dev") || isVFIO(f.Driver); r.bound && vfio && f.Group != nil {
		n.NoIOMMU = l.noIOMMU(r, was.NoIOMMU)
		n.GroupNode = l.groupNode(r, f.Group.Number, n.NoIOMMU, link != nil, was.GroupNode)
	}
	slices.SortFunc(n.Interfaces, func(a, b Interface) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(n.Subfunctions, func(a, b Subfunction) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), strings.Compare(a.Name, b.Name))
	})
	return n
}

// isVFIO says whether a driver that makes VFIO devices has this name. From Linux 6.1 on the
// directory vfio-dev says that of any driver; these are the older ones.
func isVFIO(driver string) bool {
	return driver == "vfio-pci" || driver == "mlx5_vfio_pci" || driver == "hisi_acc_vfio_pci"
}
