package host

import (
	"strings"

	"kata-device-plugin/internal/pci"
)

// SysPath is where a person finds an attribute of a function.
func SysPath(a pci.Address, name string) string {
	return "/sys/bus/pci/devices/" + a.String() + "/" + name
}

// NodesOf are the host paths of the nodes that belong to a device alone and that can be relied
// on now. The device is a function by its address, a share of one (ADDRESS::N), or a
// subfunction by its name.
func (s *Snapshot) NodesOf(id string) []string {
	if s == nil {
		return nil
	}
	owner, _, _ := strings.Cut(id, "::")
	if a, err := pci.ParseAddress(owner); err == nil {
		if f, ok := s.Function(a); ok {
			return f.NodesOf(owner)
		}
		return nil
	}
	for i := range s.Functions {
		if nodes := s.Functions[i].NodesOf(owner); len(nodes) > 0 {
			return nodes
		}
	}
	return nil
}

// NodesOf is that of a single function, which may have been read anew: of the function itself
// by its address, or of one of its subfunctions by name.
func (f *Function) NodesOf(id string) []string {
	var all []string
	if id != f.Address.String() {
		if f.Network != nil {
			for i := range f.Network.Subfunctions {
				if sf := &f.Network.Subfunctions[i]; sf.Name == id {
					all = rdmaPaths(all, sf.RDMA)
				}
			}
		}
		return all
	}
	if f.Cdev != nil && f.Cdev.State == CdevReady {
		all = append(all, DevicesDir+"/"+f.Cdev.Name)
	}
	n := f.Network
	if n == nil {
		return all
	}
	if n.GroupNode != nil {
		all = reliable(all, *n.GroupNode)
	}
	all = reliable(all, n.UIO...)
	for _, v := range n.VDPA {
		if v.Node != nil {
			all = reliable(all, *v.Node)
		}
	}
	return rdmaPaths(reliable(all, n.Hidden...), n.RDMA)
}

func rdmaPaths(all []string, devices []RDMADevice) []string {
	for i := range devices {
		d := &devices[i]
		for _, nodes := range [][]CharDevice{d.UCM, d.ISSM, d.UMAD, d.UVerbs} {
			all = reliable(all, nodes...)
		}
	}
	return all
}

func reliable(all []string, nodes ...CharDevice) []string {
	for _, n := range nodes {
		if n.Fault == "" {
			all = append(all, n.Path)
		}
	}
	return all
}
