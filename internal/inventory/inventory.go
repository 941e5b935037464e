// Package inventory is the picture that people are given of a node: every PCI function that
// could be a device, where it hangs, what it is declared as, and for everything that is not
// declared the reason. It joins a snapshot with what the programs' own rules make of it; it
// reads nothing and judges nothing itself.
package inventory

import (
	"slices"

	"kata-device-plugin/internal/pci"
)

// The version of the document that JSON and YAML hold.
const (
	APIVersion = "katacontainers.io/v1alpha1"
	Kind       = "Inventory"
)

// Inventory is what a node has. It is immutable, and it is the document: what JSON says of a
// node decodes into the same value.
type Inventory struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Node is the node's name, empty where nobody said.
	Node string `json:"node,omitempty"`
	// Functions are the candidates and what else has a VFIO character device, by address.
	Functions []Function `json:"functions"`
	// Findings are about the node, about resources, and about entries that are no PCI function.
	Findings []Finding `json:"findings,omitempty"`
	// Resources are those that have devices, by name.
	Resources []Resource `json:"resources,omitempty"`
	Counts    Counts     `json:"counts"`
	// Partial says that something could not be read: a part may be older than the rest, or missing.
	Partial bool `json:"partial,omitempty"`
	// Unread says what that was, of what belongs to no function alone: those have findings of their own.
	Unread []string `json:"unread,omitempty"`
	// Unknown names what nobody told: what is not known is not "none".
	Unknown []Unknown `json:"unknown,omitempty"`
	// Because says why, where somebody has tried to find out.
	Because map[Unknown]string `json:"unknownBecause,omitempty"`
}

// Unknown is a source of facts that was not there.
type Unknown string

// The sources that an inventory may lack.
const (
	UnknownHolders Unknown = "holders"      // who has which device
	UnknownCDI     Unknown = "cdi"          // whether CDI specs resolve the devices
	UnknownRules   Unknown = "networkRules" // which pools network controllers are for
	UnknownLinks   Unknown = "hostLinks"    // which network controllers the host uses itself
)

// Lacks says whether a source of facts was not there.
func (i *Inventory) Lacks(u Unknown) bool {
	return slices.Contains(i.Unknown, u)
}

// Resource is an extended resource and how many devices it has.
type Resource struct {
	Name    string `json:"name"`
	Devices int    `json:"devices"`
	Healthy int    `json:"healthy"`
}

// Counts are numbers of functions by their states.
type Counts struct {
	Healthy     int `json:"healthy"`
	Unhealthy   int `json:"unhealthy"`
	NotDeclared int `json:"notDeclared"`
	NotOurs     int `json:"notOurs"`
}

// Function is one PCI function. What could not be read is empty.
type Function struct {
	Address pci.Address `json:"address"`
	State   State       `json:"state"`
	Type    Type        `json:"type"`
	// Name is the product's, empty where the numbers are in no list.
	Name string `json:"name,omitempty"`
	// Vendor, Device, Class and so on are spelled as sysfs does, with 0x.
	Vendor    string `json:"vendor,omitempty"`
	Device    string `json:"device,omitempty"`
	SubVendor string `json:"subVendor,omitempty"`
	SubDevice string `json:"subDevice,omitempty"`
	Class     string `json:"class,omitempty"`
	ClassName string `json:"className,omitempty"`

	// NUMANode is nil where it is unknown, which is not node 0.
	NUMANode *int   `json:"numaNode,omitempty"`
	PCIeRoot string `json:"pcieRoot,omitempty"`
	// Bridges are the ports above the function, from the root downwards.
	Bridges []pci.Address `json:"bridges,omitempty"`

	Driver     string      `json:"driver,omitempty"`
	IOMMUGroup string      `json:"iommuGroup,omitempty"`
	Companions []Companion `json:"companions,omitempty"`
	Cdev       *Cdev       `json:"cdev,omitempty"`

	// PhysicalFunction is the PF of a VF, and VFNumber its number there.
	PhysicalFunction *pci.Address  `json:"physicalFunction,omitempty"`
	VFNumber         *int          `json:"vfNumber,omitempty"`
	VirtualFunctions []pci.Address `json:"virtualFunctions,omitempty"`
	// Interfaces and RDMADevices are those in the network namespace that was looked at.
	Interfaces  []string `json:"interfaces,omitempty"`
	RDMADevices []string `json:"rdmaDevices,omitempty"`

	// Devices are what the function is declared as: itself, its shares, its subfunctions.
	Devices []Device `json:"devices,omitempty"`
	// HeldBy are who has the function as something that is no device of it, or no more.
	HeldBy []Holder `json:"heldBy,omitempty"`
	// Evidence is the fact by which a function is none of ours.
	Evidence []Evidence `json:"evidence,omitempty"`
	// Findings are why the function is not declared, and what else there is to say of it. The
	// faults of devices are with the devices.
	Findings []Finding `json:"findings,omitempty"`
}

// Device is one schedulable unit of a resource.
type Device struct {
	ID       string `json:"id"`
	Resource string `json:"resource"`
	Healthy  bool   `json:"healthy"`
	// Nodes are the device's own nodes on the host.
	Nodes []string `json:"nodes,omitempty"`
	// CDI is nil where it is unknown.
	CDI *CDI `json:"cdi,omitempty"`
	// Holders are who has the device. Whether that is known, Unknown says.
	Holders []Holder `json:"holders,omitempty"`
	// Findings are why the device must not be handed out.
	Findings []Finding `json:"findings,omitempty"`
}

// Companion is another function of the IOMMU group.
type Companion struct {
	Address pci.Address `json:"address"`
	Class   string      `json:"class"`
	Driver  string      `json:"driver,omitempty"`
	// YieldsDMA says whether its driver, or that it has none, leaves the group to VFIO.
	YieldsDMA bool `json:"yieldsDMA"`
}

// Cdev is the VFIO character device of a function.
type Cdev struct {
	Path   string    `json:"path"`
	State  CdevState `json:"state"`
	Detail string    `json:"detail,omitempty"`
}

// Evidence is where a fact was read, and what was there.
type Evidence struct {
	Path  string `json:"path"`
	Value string `json:"value,omitempty"`
}

// Finding is one thing that is wrong, or that nobody shall have to guess.
type Finding struct {
	ID       string     `json:"id"`
	Severity string     `json:"severity"`
	Title    string     `json:"title"`
	Resource string     `json:"resource,omitempty"`
	Device   string     `json:"device,omitempty"`
	Evidence []Evidence `json:"evidence,omitempty"`
	Remedy   string     `json:"remedy"`
}
