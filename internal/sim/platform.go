package sim

import (
	"fmt"
	"path"
	"strconv"

	"kata-device-plugin/internal/pci"
)

// Platform is a machine to lay out: its PCI functions and what a scan of it must
// find.
type Platform struct {
	// Name is the word that PlatformByName takes, for example "hgx-h100".
	Name string
	// Title says the same to people.
	Title string
	// Functions are the PCI functions. Bridges that a Path goes through and that are
	// not in the list are added with the identity of Bridge.
	Functions []Function
	// Bridge gives vendor, device and driver to the bridges added. Its zero value
	// stands for an Intel root port on pcieport.
	Bridge Function
	// Shared are the nodes of host.SharedNodes that are there besides VFIO's.
	Shared []string
	// DefaultRoute is the interface that the host's own traffic takes; empty for none.
	DefaultRoute string
	// GPUs and NVSwitches are how many functions are VFIO-bound NVIDIA GPUs and
	// NVSwitches after layout: what a plugin on this machine offers.
	GPUs, NVSwitches int
}

// Function is one PCI function.
type Function struct {
	// Path is the directory below /sys/devices, for example
	// "pci0000:40/0000:40:01.0/0000:41:00.0". Its last element is the address.
	Path                                 string
	Vendor, Device, SubVendor, SubDevice pci.ID
	Class                                pci.Class
	Revision                             uint8
	// NUMA is the NUMA node; -1 where the firmware does not tell, which numa_node
	// then says too.
	NUMA int
	// NoNUMAFile leaves numa_node out, as a kernel without CONFIG_NUMA does.
	NoNUMAFile bool
	// Group is the number of the IOMMU group. It is empty without an IOMMU.
	Group string
	// Driver is bound after layout; empty for none. A VFIO driver gives a cdev, and
	// cdevs are numbered in the order of the list.
	Driver string
	// VFIO makes a cdev whatever Driver is called. The nvidia driver serves VFs in
	// the vendor VFIO framework like this.
	VFIO bool
	// TotalVFs is positive for a physical function with SR-IOV.
	TotalVFs int
	// VFOffset and VFStride place the VFs among the routing IDs behind the PF's. Zero
	// means 1 for both.
	VFOffset, VFStride int
	// VFDevice is the device ID of the VFs. Zero means Device.
	VFDevice pci.ID
	// VFs are enabled after layout, once the driver is bound.
	VFs []VF
	// NIC is what network controllers and some accelerators have besides.
	NIC *NIC
	// LinkSpeed is the text of max_link_speed, for example "32.0 GT/s PCIe", and
	// LinkWidth the number of lanes. Without a speed the function is conventional PCI
	// or integrated in the root complex: no link files and 256 bytes of config.
	LinkSpeed string
	LinkWidth int
}

// Address is the last element of Path. New and Add refuse a function whose Path
// does not end in one.
func (f Function) Address() pci.Address {
	a, _ := pci.ParseAddress(path.Base(f.Path)) // zero where there is none; check rejects that
	return a
}

// check says what is wrong with a function, before anything is written.
func (f Function) check() error {
	if _, err := pci.ParsePath("devices/" + f.Path); err != nil {
		return fmt.Errorf("lay out function: %w", err)
	}
	if f.Group != "" {
		if g, err := strconv.Atoi(f.Group); err != nil || g < 0 || strconv.Itoa(g) != f.Group {
			return fmt.Errorf("lay out %s: IOMMU group %q is not a number", f.Address(), f.Group)
		}
	}
	if len(f.VFs) > f.TotalVFs || len(f.VFs) > 0 && f.Driver == "" {
		return fmt.Errorf("lay out %s: %d VFs, %d at most, and only with a driver", f.Address(), len(f.VFs), f.TotalVFs)
	}
	if f.NUMA < -1 || f.TotalVFs < 0 || f.VFOffset < 0 || f.VFStride < 0 {
		return fmt.Errorf("lay out %s: negative NUMA node or number of VFs", f.Address())
	}
	return nil
}

// isVFIODriver says whether a driver registers its devices with VFIO. The nvidia
// driver is not among them: it does so only for VFs, and only where asked to.
func isVFIODriver(driver string) bool {
	switch driver {
	case "vfio-pci", "nvgrace_gpu_vfio_pci", "mlx5_vfio_pci":
		return true
	}
	return false
}

// needsOverride says whether a driver takes a function only after its name was
// written to driver_override, where it then stays, also after an unbind.
func needsOverride(driver string) bool { return isVFIODriver(driver) || driver == "pci-stub" }
