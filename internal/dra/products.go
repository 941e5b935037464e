package dra

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// product is a row of the table of what boards are called and how much memory they have.
type product struct {
	vendor, device pci.ID
	// subVendor and subDevice tell boards with one device number apart. 0 stands for any.
	subVendor, subDevice pci.ID
	name                 string
	// gib is the memory of the board as its vendor states it, 0 where no source is certain, or
	// the number stands for boards of several sizes. The vendor's GB are 2^30 bytes: an H100 of
	// 80 GB has five stacks of 16 GiB. What error correction and firmware keep for themselves is
	// in it, which a guest does not see; a selector should leave some room: >= 79Gi.
	gib int64
}

const (
	nvidia   pci.ID = 0x10de
	mellanox pci.ID = 0x15b3
	intel    pci.ID = 0x8086
)

// productOf finds the row of a function. One without a row has no name.
func productOf(id host.Identity) product {
	for _, rows := range [][]product{gpus(), switches(), adapters()} {
		for _, p := range rows {
			if p.vendor == id.Vendor && p.device == id.Device &&
				(p.subDevice == 0 || p.subVendor == id.SubVendor && p.subDevice == id.SubDevice) {
				return p
			}
		}
	}
	return product{}
}

// Capacity is the memory of a GPU whose model is known. It comes from a table: what a board has
// cannot be read while it is bound to VFIO, and its BARs may be larger.
func (d *Device) Capacity() map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	gib := productOf(d.Function.Identity).gib
	if d.Type != GPU || gib == 0 {
		return nil
	}
	return map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		"memory": {Value: *resource.NewQuantity(gib<<30, resource.BinarySI)},
	}
}

// gpus are NVIDIA's boards for servers. Numbers and names are those of the PCI ID Repository;
// the memory is that of the name, or of NVIDIA's list of GPUs with MIG and its data sheets.
// B300 and GB300 have none here: NVIDIA's own documents differ.
func gpus() []product {
	return []product{
		{nvidia, 0x15f7, 0, 0, "Tesla P100 PCIe 12GB", 12},
		{nvidia, 0x15f8, 0, 0, "Tesla P100 PCIe 16GB", 16},
		{nvidia, 0x15f9, 0, 0, "Tesla P100 SXM2 16GB", 16},
		{nvidia, 0x1db1, 0, 0, "Tesla V100 SXM2 16GB", 16},
		{nvidia, 0x1db3, 0, 0, "Tesla V100 FHHL 16GB", 16},
		{nvidia, 0x1db4, 0, 0, "Tesla V100 PCIe 16GB", 16},
		{nvidia, 0x1db5, 0, 0, "Tesla V100 SXM2 32GB", 32},
		{nvidia, 0x1db6, 0, 0, "Tesla V100 PCIe 32GB", 32},
		{nvidia, 0x1db8, 0, 0, "Tesla V100 SXM3 32GB", 32},
		{nvidia, 0x1df5, 0, 0, "Tesla V100 SXM2 16GB", 16},
		{nvidia, 0x1df6, 0, 0, "Tesla V100S PCIe 32GB", 32},
		{nvidia, 0x1eb8, 0, 0, "Tesla T4", 16},
		{nvidia, 0x20b0, 0, 0, "A100 SXM4 40GB", 40},
		{nvidia, 0x20b1, 0, 0, "A100 PCIe 40GB", 40},
		{nvidia, 0x20b2, 0, 0, "A100 SXM4 80GB", 80},
		{nvidia, 0x20b3, 0, 0, "A100 SXM 64GB", 64},
		{nvidia, 0x20b5, 0, 0, "A100 PCIe 80GB", 80},
		{nvidia, 0x20b7, 0, 0, "A30 PCIe", 24},
		{nvidia, 0x20b8, 0, 0, "A100X", 0},
		{nvidia, 0x20b9, 0, 0, "A30X", 0},
		{nvidia, 0x20bd, 0, 0, "A800 SXM4 40GB", 40},
		{nvidia, 0x20f1, 0, 0, "A100 PCIe 40GB", 40},
		{nvidia, 0x20f3, 0, 0, "A800 SXM4 80GB", 80},
		{nvidia, 0x20f5, 0, 0, "A800 PCIe 80GB", 80},
		{nvidia, 0x20f6, 0, 0, "A800 PCIe 40GB", 40},
		{nvidia, 0x2235, 0, 0, "A40", 48},
		{nvidia, 0x2236, 0, 0, "A10", 24},
		{nvidia, 0x2237, 0, 0, "A10G", 24},
		{nvidia, 0x25b6, nvidia, 0x14a9, "A16", 16}, // four of them on a card
		{nvidia, 0x25b6, nvidia, 0x157e, "A2", 16},
		{nvidia, 0x2321, 0, 0, "H100 NVL 94GB", 94},
		{nvidia, 0x2322, 0, 0, "H800 PCIe", 0},
		{nvidia, 0x2324, 0, 0, "H800", 0},
		{nvidia, 0x2329, 0, 0, "H20", 96},
		{nvidia, 0x232c, 0, 0, "H20 HBM3e", 0},
		{nvidia, 0x2330, 0, 0, "H100 SXM5 80GB", 80},
		{nvidia, 0x2331, 0, 0, "H100 PCIe", 80},
		{nvidia, 0x2335, 0, 0, "H200 SXM 141GB", 141},
		{nvidia, 0x2337, 0, 0, "H100 SXM5 64GB", 64},
		{nvidia, 0x2338, 0, 0, "H100 SXM5 96GB", 96},
		{nvidia, 0x2339, 0, 0, "H100 SXM5 94GB", 94},
		{nvidia, 0x233b, 0, 0, "H200 NVL", 141},
		{nvidia, 0x2342, 0, 0, "GH200 120GB / 480GB", 96}, // the name has the memory of the CPU
		{nvidia, 0x2348, 0, 0, "GH200 144G HBM3e", 144},
		{nvidia, 0x26b5, 0, 0, "L40", 48},
		{nvidia, 0x26b8, 0, 0, "L40G", 0},
		{nvidia, 0x26b9, 0, 0, "L40S", 48},
		{nvidia, 0x27b6, 0, 0, "L2", 0},
		{nvidia, 0x27b8, 0, 0, "L4", 24},
		{nvidia, 0x2901, 0, 0, "B200", 180},
		{nvidia, 0x2941, 0, 0, "GB200", 186},
		{nvidia, 0x2bb5, 0, 0, "RTX PRO 6000 Blackwell Server Edition", 96},
		{nvidia, 0x2c3a, 0, 0, "RTX PRO 4500 Blackwell Server Edition", 0},
		{nvidia, 0x3182, 0, 0, "B300 SXM6 AC", 0},
		{nvidia, 0x31c2, 0, 0, "GB300", 0},
		{nvidia, 0x31c3, 0, 0, "GB300", 0},
	}
}

// switches are NVSwitches, by the PCI ID Repository.
func switches() []product {
	return []product{
		{nvidia, 0x1af1, 0, 0, "A100 NVSwitch", 0},
		{nvidia, 0x22a3, 0, 0, "H100 NVSwitch", 0},
	}
}

// adapters are network controllers and their VFs. The numbers of NVIDIA's (Mellanox) are those
// of the PCI ID Repository, Intel's those of its drivers i40e and ice.
func adapters() []product {
	return []product{
		{mellanox, 0x1013, 0, 0, "ConnectX-4", 0},
		{mellanox, 0x1014, 0, 0, "ConnectX-4 Virtual Function", 0},
		{mellanox, 0x1015, 0, 0, "ConnectX-4 Lx", 0},
		{mellanox, 0x1016, 0, 0, "ConnectX-4 Lx Virtual Function", 0},
		{mellanox, 0x1017, 0, 0, "ConnectX-5", 0},
		{mellanox, 0x1018, 0, 0, "ConnectX-5 Virtual Function", 0},
		{mellanox, 0x1019, 0, 0, "ConnectX-5 Ex", 0},
		{mellanox, 0x101a, 0, 0, "ConnectX-5 Ex Virtual Function", 0},
		{mellanox, 0x101b, 0, 0, "ConnectX-6", 0},
		{mellanox, 0x101c, 0, 0, "ConnectX-6 Virtual Function", 0},
		{mellanox, 0x101d, 0, 0, "ConnectX-6 Dx", 0},
		{mellanox, 0x101e, 0, 0, "ConnectX Virtual Function", 0}, // of all later generations
		{mellanox, 0x101f, 0, 0, "ConnectX-6 Lx", 0},
		{mellanox, 0x1021, 0, 0, "ConnectX-7", 0},
		{mellanox, 0x1023, 0, 0, "ConnectX-8", 0},
		{mellanox, 0x1025, 0, 0, "ConnectX-9", 0},
		{mellanox, 0xa2d6, 0, 0, "BlueField-2 integrated ConnectX-6 Dx", 0},
		{mellanox, 0xa2dc, 0, 0, "BlueField-3 integrated ConnectX-7", 0},
		{intel, 0x1572, 0, 0, "Ethernet Controller X710 for 10GbE SFP+", 0},
		{intel, 0x1583, 0, 0, "Ethernet Controller XL710 for 40GbE QSFP+", 0},
		{intel, 0x158b, 0, 0, "Ethernet Controller XXV710 for 25GbE SFP28", 0},
		{intel, 0x1592, 0, 0, "Ethernet Controller E810-C for QSFP", 0},
		{intel, 0x1593, 0, 0, "Ethernet Controller E810-C for SFP", 0},
		{intel, 0x159b, 0, 0, "Ethernet Controller E810-XXV for SFP", 0},
		{intel, 0x1889, 0, 0, "Ethernet Adaptive Virtual Function", 0},
	}
}
