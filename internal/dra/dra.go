// Package dra decides which facts of a snapshot become which device of Dynamic Resource
// Allocation, and what is said of it in a ResourceSlice. It is pure: a snapshot goes in,
// devices, slices and findings come out. It reads nothing and talks to nobody.
package dra

import (
	"slices"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/host"
)

// Driver is the name of the driver, and the domain of its attributes.
const Driver = draname.Driver

// Type is what a device is to those who ask for one: the attribute type, and the beginning of
// its name.
type Type string

// The types.
const (
	GPU      Type = "gpu"
	NVSwitch Type = "nvswitch"
	NIC      Type = "nic" // a whole network controller
	VF       Type = "vf"  // a virtual function of one
)

// Wants says whether a function is a candidate: an NVIDIA GPU or NVSwitch, or a network
// controller of any vendor.
func Wants(id host.Identity) bool { return kind(id) != "" }

// kind is the type of a function, "" for what is no candidate. Whether a network controller is
// a VF its identity does not tell.
func kind(id host.Identity) Type {
	switch declare.Passthrough().Resource(id) {
	case "nvidia.com/gpu":
		return GPU
	case "nvidia.com/nvswitch":
		return NVSwitch
	}
	// Ethernet and InfiniBand controllers. A ConnectX changes between the two with its link type.
	if slices.Contains([]uint16{0x0200, 0x0207}, id.Class.Sub()) {
		return NIC
	}
	return ""
}

// typeOf is the type of a function.
func typeOf(f *host.Function) Type {
	t := kind(f.Identity)
	if t == NIC && f.PhysFn != nil {
		return VF
	}
	return t
}
