package nodestate

import (
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// Type is what a function is to people. It decides nothing.
type Type string

// The types.
const (
	GPU         Type = "gpu"
	NVSwitch    Type = "nvswitch"
	NIC         Type = "nic"
	VF          Type = "vf"
	Accelerator Type = "accelerator"
	Other       Type = "other"
	NotSeen     Type = "unknown" // it could not be read
)

// typeOf goes by the class code. The bridges that count are the NVSwitches of NVIDIA.
func typeOf(f *host.Function) Type {
	const display, network, accelerator = 0x03, 0x02, 0x12
	if f == nil || !f.Known {
		return NotSeen
	}
	switch f.Class >> 16 {
	case display:
		return GPU
	case network:
		if f.PhysFn != nil {
			return VF
		}
		return NIC
	case accelerator:
		return Accelerator
	}
	if f.Vendor == pci.ID(0x10de) && f.Class.Sub() == 0x0680 {
		return NVSwitch
	}
	return Other
}
