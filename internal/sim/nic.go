package sim

import "fmt"

// NIC is what a function has beyond PCI: what its kernel driver makes of it.
type NIC struct {
	// Interfaces and RDMA are there while the function is bound to a driver for network
	// controllers, which is any that is not for VFIO or UIO. Of virtio-pci the interfaces
	// are below the function's virtio device.
	Interfaces []Interface
	RDMA       []RDMA
	// UIO is the number of the UIO device, while bound to a driver for such: 0 stands for
	// the lowest that is free.
	UIO int
	// ACPIIndex is the firmware's number of an onboard device, 0 for none.
	ACPIIndex uint32
	// SwitchID is the phys_switch_id of a PF's switch, in switchdev mode.
	SwitchID string
	// VFInterface names the interface of VF K, "ens1f0v%d", and VFRDMA its RDMA device, of
	// which it takes the lowest number that is free, "mlx5_%d". Both are empty where VFs
	// have none.
	VFInterface, VFRDMA string
}

// Interface is a network interface.
type Interface struct {
	Name string
	Type int // an ARPHRD number; 0 stands for 1, Ethernet
	// SwitchID and PortName are phys_switch_id and phys_port_name. Empty ones have no file
	// here; the kernel has one that answers EOPNOTSUPP.
	SwitchID, PortName string
}

// RDMA is an RDMA device with one port.
type RDMA struct {
	Name string
	// Number is that of uverbsN, umadN and issmN; 0 stands for the lowest that is free.
	Number int
	// InfiniBand says that the port is one. It is Ethernet otherwise.
	InfiniBand bool
	PKey       uint16 // entry 0 of the partition table; 0 stands for 0xffff
	NoMAD      bool   // without umadN and issmN: the module ib_umad is not loaded
	CM         bool   // with ucmN, which Linux 5.2 was the last to have
}

// VF describes a virtual function of a platform.
type VF struct {
	Driver string
	Group  string // the IOMMU group; empty for a new one
	NIC    *NIC   // nil for what the PF's NIC says of its VFs
}

// vf is what VF k has where nothing else is said.
func (n *NIC) vf(k int) *NIC {
	if n == nil {
		return nil
	}
	v := &NIC{}
	if n.VFInterface != "" {
		v.Interfaces = []Interface{{Name: fmt.Sprintf(n.VFInterface, k), Type: n.kind()}}
	}
	if n.VFRDMA != "" {
		v.RDMA = []RDMA{{Name: n.VFRDMA, InfiniBand: n.kind() == infiniBand}}
	}
	return v
}

// kind is the type of the first interface: that of all VFs too.
func (n *NIC) kind() int {
	if len(n.Interfaces) == 0 {
		return 0
	}
	return n.Interfaces[0].Type
}

// infiniBand is ARPHRD_INFINIBAND.
const infiniBand = 32

// isUIODriver says whether a driver makes a UIO device of what is bound to it.
func isUIODriver(driver string) bool { return driver == "igb_uio" || driver == "uio_pci_generic" }

// isNetDriver says whether a driver makes interfaces of what has some.
func isNetDriver(driver string) bool {
	return driver != "" && !isVFIODriver(driver) && !isUIODriver(driver) && driver != "pci-stub"
}
