package sim

import "kata-device-plugin/internal/pci"

// What the presets are made of.
const (
	nvidia   pci.ID = 0x10de
	intel    pci.ID = 0x8086
	mellanox pci.ID = 0x15b3
	broadcom pci.ID = 0x1000
	samsung  pci.ID = 0x144d
)

const (
	classHost        pci.Class = 0x060000
	classBridge      pci.Class = 0x060400
	classOtherPort   pci.Class = 0x068000 // "bridge, other": NVSwitch
	classAccelerator pci.Class = 0x120000
	classVGA         pci.Class = 0x030000
	class3D          pci.Class = 0x030200
	classAudio       pci.Class = 0x040300
	classEthernet    pci.Class = 0x020000
	classInfiniBand  pci.Class = 0x020700
	classNVMe        pci.Class = 0x010802
)

// Link speeds as drivers/pci/probe.c spells them.
const (
	gen4 = "16.0 GT/s PCIe"
	gen5 = "32.0 GT/s PCIe"
)
