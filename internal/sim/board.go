package sim

import (
	"fmt"
	"path"
	"slices"
	"strconv"

	"kata-device-plugin/internal/pci"
)

// board collects the functions of a preset.
type board struct{ list []Function }

// nvidiaGPU is a data-centre GPU: no display outputs, hence class 3D controller.
func nvidiaGPU(device, subDevice pci.ID, driver string) Function {
	return Function{Vendor: nvidia, Device: device, SubVendor: nvidia, SubDevice: subDevice, Class: class3D,
		Revision: 0xa1, Driver: driver, LinkSpeed: gen5, LinkWidth: 16}
}

// nvSwitch is a third generation NVSwitch (LS10).
func nvSwitch() Function {
	return Function{Vendor: nvidia, Device: 0x22a3, SubVendor: nvidia, SubDevice: 0x1796, Class: classOtherPort,
		Revision: 0xa1, Driver: "vfio-pci", LinkSpeed: gen4, LinkWidth: 2}
}

// connectX is a network adapter of NVIDIA's Mellanox line on its kernel driver.
func connectX(device pci.ID, class pci.Class) Function {
	return Function{Vendor: mellanox, Device: device, SubVendor: mellanox, SubDevice: 0x0041, Class: class,
		Driver: "mlx5_core", LinkSpeed: gen5, LinkWidth: 16}
}

func nvme() Function {
	return Function{Vendor: samsung, Device: 0xa80a, SubVendor: samsung, SubDevice: 0xaa0a, Class: classNVMe,
		Driver: "nvme", LinkSpeed: gen4, LinkWidth: 4}
}

// port is a bridge on the kernel's port driver.
func port(vendor, device pci.ID) Function {
	return Function{Vendor: vendor, Device: device, SubVendor: vendor, Class: classBridge, Revision: 0x04,
		Driver: "pcieport", LinkSpeed: gen5, LinkWidth: 16}
}

// The models of bridges decide nothing; these are common ones.
func rootPort() Function   { return port(intel, 0x352a) }
func switchPort() Function { return port(broadcom, 0xc030) }
func gracePort() Function  { return port(nvidia, 0x22b1) }

// at is a function in a place.
func (f Function) at(dir, address string, numa int) Function {
	f.Path, f.NUMA = path.Join(dir, address), numa
	return f
}

// in is a function in an IOMMU group.
func (f Function) in(group string) Function {
	f.Group = group
	return f
}

// add puts a function below a directory and returns its own.
func (b *board) add(dir, address string, numa int, f Function) string {
	f = f.at(dir, address, numa)
	b.list = append(b.list, f)
	return f.Path
}

// direct hangs functions below a root port at DDDD:RR:01.0, on one bus behind it.
func (b *board) direct(root string, rootPort Function, bus string, numa int, below ...Function) {
	domain := root[:len(root)-len(":00")]
	dir := b.add("pci"+root, root+":01.0", numa, rootPort)
	for k, f := range below {
		b.add(dir, fmt.Sprintf("%s:%s:00.%d", domain, bus, k), numa, f)
	}
}

// switched hangs functions below a PCIe switch with a root port of its own: root
// bus R, switch upstream on R+1, its ports on R+2, the functions from R+3 on.
// portGroup is the IOMMU group of the switch's ports; empty where they separate
// what is below them (ACS), so that each has its own.
func (b *board) switched(domain uint32, first uint8, numa int, portGroup string, below ...Function) {
	bus := func(n uint8, device int) string { return fmt.Sprintf("%04x:%02x:%02x.0", domain, n, device) }
	r := first - 3
	dir := b.add(fmt.Sprintf("pci%04x:%02x", domain, r), bus(r, 1), numa, rootPort())
	dir = b.add(dir, bus(r+1, 0), numa, switchPort().in(portGroup))
	for k, f := range below {
		down := b.add(dir, bus(r+2, k), numa, switchPort().in(portGroup))
		b.add(down, bus(first+uint8(k), 0), numa, f)
	}
}

// server adds what every x86 server of the presets has besides: a boot disk and a
// two-port Ethernet adapter.
func (b *board) server() {
	b.direct("0000:00", rootPort(), "01", 0, nvme())
	nic := connectX(0x101d, classEthernet)
	b.direct("0000:e0", rootPort(), "e1", 0, nic, nic)
}

// platform sorts the functions by address and numbers the IOMMU groups of those
// without one in that order, as the kernel does while it enumerates.
func (b *board) platform(name, title string, gpus, nvSwitches int) Platform {
	slices.SortFunc(b.list, func(f, g Function) int { return f.Address().Compare(g.Address()) })
	b.nameAdapters()
	var groups ida
	for _, f := range b.list {
		if g, err := strconv.Atoi(f.Group); err == nil {
			groups.reserve(g)
		}
	}
	for i := range b.list {
		if b.list[i].Group == "" {
			b.list[i].Group = strconv.Itoa(groups.take())
		}
	}
	return Platform{Name: name, Title: title, Functions: b.list, GPUs: gpus, NVSwitches: nvSwitches}
}
