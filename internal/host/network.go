package host

// Network is what the kernel shows of a function beyond PCI and VFIO: what a network
// controller or an accelerator is to its users. It is read where Source.Network asks for it.
//
// Interfaces and RDMA devices are those of the network namespace that /sys was mounted in:
// what was moved into a pod is not among them, although it is there.
type Network struct {
	// Interfaces are the function's own network interfaces (sysfs: net/NAME, and
	// virtioN/net/NAME below a virtio function), sorted by name. Of a PF in switchdev mode
	// the representors of its VFs are among them.
	Interfaces []Interface
	// RDMA are the function's RDMA devices (sysfs: infiniband/NAME), sorted by name.
	RDMA []RDMADevice
	// Hidden are the nodes of RDMA devices of the function that are in another namespace: the
	// devices are not to be seen then, and their nodes are, with the numbers that they have
	// there. It is empty where RDMA is not.
	Hidden []CharDevice
	// VDPA are the function's vDPA devices (sysfs: vdpaN, or NAME with a link subsystem to
	// bus/vdpa), sorted by name.
	VDPA []VDPADevice
	// Subfunctions are the function's auxiliary devices of type sf (sysfs: DRIVER.sf.ID with
	// the file sfnum), sorted by number of the subfunction.
	Subfunctions []Subfunction
	// UIO are the nodes of the function's UIO devices (sysfs: uio/uioN).
	UIO []CharDevice
	// GroupNode is the legacy VFIO node of the IOMMU group, nil when the function is not
	// bound to VFIO. Its Path is /dev/vfio/N, or /dev/vfio/noiommu-N.
	GroupNode *CharDevice
	// NoIOMMU says that the group is one that VFIO invented (sysfs: iommu_group/name is
	// vfio-noiommu).
	NoIOMMU bool
	// ACPIIndex is the firmware's number of an onboard device (sysfs: acpi_index), nil when
	// there is none.
	ACPIIndex *uint32
	// MaxVFs is sriov_totalvfs; it is 0 for what is no PF.
	MaxVFs int
	// VFIndex is the number of a VF at its PF, -1 for what is no VF and where the PF does
	// not list it.
	VFIndex int
	// Profile is the name of the DDP package that the function runs, or its PF, "" when there
	// is none or it was not asked for. It comes from Source.Profile.
	Profile string
}

// Interface is a network interface.
type Interface struct {
	Name  string
	Index int // sysfs: ifindex
	Type  int // sysfs: type, an ARPHRD number of if_arp.h: 1 is ether, 32 infiniband
	// SwitchID and PortName are phys_switch_id and phys_port_name, "" where the driver knows
	// none. They are read only where a function has several interfaces.
	SwitchID, PortName string
}

// ARPHRD numbers of the links that PCI network controllers have.
const (
	TypeEther      = 1
	TypeInfiniBand = 32
)

// RDMADevice is an RDMA device.
type RDMADevice struct {
	Name string
	// The nodes of the device (sysfs: infiniband_verbs/uverbsN, infiniband_mad/umadN and
	// issmN, infiniband_cm/ucmN, by their file ibdev), each sorted.
	UVerbs, UMAD, ISSM, UCM []CharDevice
	// PKey is the entry 0 of the partition table of port 1 (sysfs: ports/1/pkeys/0), nil
	// where there is none. It is read of InfiniBand only.
	PKey *uint16
	// LinkLayer is that of port 1: InfiniBand or Ethernet.
	LinkLayer string
}

// LinkInfiniBand is the link layer of a port that is no Ethernet port.
const LinkInfiniBand = "InfiniBand"

// VDPADevice is a vDPA device.
type VDPADevice struct {
	Name   string
	Driver string // vhost_vdpa, virtio_vdpa, or "" when none is bound
	// Node is its vhost node (sysfs: vhost-vdpa-N), nil when it is bound to something else.
	Node *CharDevice
}

// Subfunction is an auxiliary device that is a function of its own to its users.
type Subfunction struct {
	Name       string // on the auxiliary bus: mlx5_core.sf.4
	Number     uint32 // sysfs: sfnum
	Driver     string
	Interfaces []Interface
	RDMA       []RDMADevice
}

// CharDevice is a character device that a container may be given.
type CharDevice struct {
	Path string // on every host, whatever Roots say: /dev/infiniband/uverbs0
	// Fault says why the node cannot be relied on: it is not there, it is no character
	// device, its number is not the one that sysfs states. "" is for one that can be.
	Fault string
}

// SharedNodes are the nodes that belong to no device alone and that containers are given
// beside a device's own.
func SharedNodes() []string {
	return []string{"/dev/vfio/vfio", "/dev/infiniband/rdma_cm", "/dev/vhost-net", "/dev/net/tun"}
}

// Links are what netlink shows of the network that the node's own traffic takes. A Source
// that has none leaves Snapshot.Links nil.
type Links struct {
	// Links are all network interfaces of the namespace, by ifindex.
	Links map[int]Link
	// Defaults are the interfaces with a default route, sorted, in any table but the local
	// one. A multipath route gives each of its hops.
	Defaults []Default
}

// Link is a network interface as netlink shows it.
type Link struct {
	Index int
	Name  string
	Kind  string // bond, bridge, vlan, openvswitch and so on; "" for a device of its own
	// Master is the ifindex of the bond, bridge or switch that the link is a port of, and
	// Lower that of the link below a VLAN, macvlan or the like. Both are 0 for none.
	Master, Lower int
}

// Default is a default route.
type Default struct {
	Index  int
	Family string // inet or inet6
	Table  int
}
