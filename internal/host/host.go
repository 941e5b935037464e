// Package host looks at the node's PCI hardware as the kernel shows it in sysfs and
// devtmpfs, and returns facts. One look gives one immutable Snapshot. The package
// decides nothing: which facts become a device is the business of package declare.
package host

import (
	"kata-device-plugin/internal/pci"
)

// Snapshot is what one look at the node found. It is immutable and may be shared.
type Snapshot struct {
	// Functions are the PCI functions that were wanted or that have a VFIO
	// character device, sorted by address.
	Functions []Function
	// Strays are entries below /dev/vfio/devices and /sys/class/vfio-dev that are no
	// character device of a PCI function, sorted by name.
	Strays []Stray
	// Unread are the directories that could not be listed. What they held is taken
	// from the snapshot before: a read error is not "gone".
	Unread []error
	// Shared are the states of SharedNodes, by path. It is empty where Source.Network is nil.
	Shared map[string]CharDevice
	// Links is nil where the Source has none. LinksErr says why they could not be read; Links
	// are then those of the last look that could, if there was one.
	Links    *Links
	LinksErr error

	index    map[pci.Address]int    // into Functions
	unwanted map[pci.Address]bool   // functions looked at and passed over
	prints   map[string]nodePrint   // by cdev name: what a quick look compares
	groups   map[string]*IOMMUGroup // by number
	torn     bool                   // a function, or something of it, left while it was read
	uses     map[pci.Address][]Use  // functions in the host's use
}

// Function finds a function by its address.
func (s *Snapshot) Function(a pci.Address) (*Function, bool) {
	if s == nil {
		return nil, false
	}
	i, ok := s.index[a]
	if !ok {
		return nil, false
	}
	return &s.Functions[i], true
}

// Torn says whether the look met a state that the kernel passes through while it
// binds or unbinds a driver. sysfs sends no event when such a state ends, so
// whoever looks should look again soon.
func (s *Snapshot) Torn() bool {
	if s.torn {
		return true
	}
	for i := range s.Functions {
		c := s.Functions[i].Cdev
		if c != nil && (c.State == CdevPending || c.State == CdevNoNumber) {
			return true
		}
	}
	for _, s := range s.Strays {
		if s.Kind == StrayOrphan {
			return true
		}
	}
	return false
}

// Partial says whether something could not be read, so that a part of the snapshot
// is older than the rest.
func (s *Snapshot) Partial() bool {
	if len(s.Unread) > 0 || s.LinksErr != nil {
		return true
	}
	for i := range s.Functions {
		if s.Functions[i].Err != nil {
			return true
		}
	}
	return false
}

// Identity is what a function is, for as long as it is in its slot.
type Identity struct {
	Vendor, Device       pci.ID    // sysfs: vendor, device
	Class                pci.Class // sysfs: class
	Revision             uint8     // sysfs: revision
	SubVendor, SubDevice pci.ID    // sysfs: subsystem_vendor, subsystem_device
}

// Node is a NUMA node number.
type Node int

// NoNode is the kernel's own "unknown" (NUMA_NO_NODE): numa_node says -1, or there
// is no such file because the kernel has no NUMA. It is not node 0.
const NoNode Node = -1

// Function is one PCI function.
type Function struct {
	pci.Path // address, PCIe root and bridges: where it hangs
	Identity

	NUMA   Node   // sysfs: numa_node
	Driver string // base name of the link driver; "" when no driver is bound

	// Group is the function's IOMMU group, nil when it is in none (no IOMMU, or
	// switched off).
	Group *IOMMUGroup

	// PhysFn is the PF of a VF (link physfn), nil for everything else.
	PhysFn *pci.Address
	// VFs are the VFs that a PF has enabled, in the order of their numbers (sysfs: links
	// virtfnN).
	VFs []pci.Address

	// Network is nil where the Source does not ask for it.
	Network *Network

	// PCIeLink is what the function's own link can do, the zero value where that cannot be
	// told, or the Source does not ask for it.
	PCIeLink PCIeLink

	// Cdev is the function's VFIO character device, nil when it has none.
	Cdev *Cdev

	// Err is set when something of the function could not be read. The facts are
	// then those of the last look that could, if there was one (Known).
	Err   error
	Known bool
}

// Companions are the other functions of the IOMMU group.
func (f *Function) Companions() []Member {
	if f.Group == nil {
		return nil
	}
	others := make([]Member, 0, len(f.Group.Members))
	for _, m := range f.Group.Members {
		if m.Address != f.Address {
			others = append(others, m)
		}
	}
	return others
}

// IOMMUGroup is the smallest set of functions that the IOMMU can tell apart from
// the rest: DMA ownership is taken for all of them at once.
type IOMMUGroup struct {
	Number  string // as the kernel spells it; never a device identity
	Members []Member
}

// Member is one function of an IOMMU group. For a function that is alone in its
// group only the address is filled in: there is nobody to ask about its driver.
type Member struct {
	Address pci.Address
	Class   pci.Class
	Driver  string // "" when no driver is bound
	VFIO    bool   // bound to a driver that gave it a VFIO device (vfio-dev/)
}

// CdevState says how far a VFIO character device can be relied on.
type CdevState uint8

// The states of a character device.
const (
	// CdevReady: sysfs and devtmpfs agree.
	CdevReady CdevState = iota
	// CdevPending: a part is not there yet, or not any more. The kernel passes
	// through this in both directions; when it lasts, the directory that we see is
	// not the one that the kernel writes to.
	CdevPending
	// CdevNoNumber: vfio-dev/vfioN without the file dev. The kernel has no VFIO
	// character devices (CONFIG_VFIO_DEVICE_CDEV), or no IOMMU before Linux 7.
	CdevNoNumber
	// CdevNotChar: the entry in /dev/vfio/devices is no character device.
	CdevNotChar
	// CdevOtherNumber: the node's device number is not the one that sysfs states.
	CdevOtherNumber
	// CdevNoIOMMU: a noiommu-vfioN device, which protects the host from nothing.
	CdevNoIOMMU
)

// Cdev is the VFIO character device of a bound function.
type Cdev struct {
	// Name is vfioN. N is the lowest number that was free when the driver was bound;
	// after a rebind it may be another device's. It is never an ID.
	Name         string
	State        CdevState
	Major, Minor uint32 // sysfs: dev. Zero in the states without it.
	// Detail is the evidence for a state other than CdevReady.
	Detail string
}

// StrayKind says what a stray entry is.
type StrayKind uint8

// The kinds of stray entries.
const (
	StrayJunkName   StrayKind = iota // a name that is not vfioN in the kernel's spelling
	StrayNotChar                     // no character device, and sysfs does not know it
	StrayOrphan                      // a character device that sysfs does not list (yet)
	StrayNotPCI                      // a mediated or platform device
	StrayNoIOMMU                     // noiommu-vfioN without a PCI function that we look at
	StrayUnreadable                  // could not be examined
)

// Stray is an entry that is no character device of a PCI function.
type Stray struct {
	Name   string
	Kind   StrayKind
	Path   string // where it was seen, on the host
	Detail string // what was seen there
}
