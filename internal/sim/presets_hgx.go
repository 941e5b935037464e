package sim

// GPU addresses and NUMA nodes of the HGX presets are those of vfio.md 5.4. The
// switches above them follow one pattern: on the real boards, too, a GPU shares a
// PCIe switch with the network adapter meant for it.

// hgxH100 has its addresses from a capture of a real machine.
func hgxH100() Platform {
	var b board
	b.server()
	nvs := nvSwitch()
	b.switched(0, 0x05, 0, "", nvs, nvs, nvs, nvs)
	for i, bus := range []uint8{0x53, 0x64, 0x75, 0x86, 0x97, 0xa8, 0xb9, 0xca} {
		b.switched(0, bus, i/4, "", nvidiaGPU(0x2330, 0x16c1, "vfio-pci"), connectX(0x1021, classInfiniBand))
	}
	return b.platform("hgx-h100", "NVIDIA HGX H100, 8 GPUs, 4 NVSwitches", 8, 4)
}

// hgxH200 has addresses and groups from a public report. All four NVSwitches are
// in one group, so their PCIe switch does not separate them and its ports, which
// never hinder VFIO, are in it too.
func hgxH200() Platform {
	var b board
	b.server()
	nvs := nvSwitch().in("114")
	b.switched(0, 0x05, 0, "114", nvs, nvs, nvs, nvs)
	gpus := []struct {
		bus   uint8
		group string
	}{{0x18, "59"}, {0x2a, "50"}, {0x3a, "41"}, {0x5d, "15"}, {0x9a, "107"}, {0xab, "98"}, {0xba, "89"}, {0xdb, "79"}}
	for i, g := range gpus {
		gpu := nvidiaGPU(0x2335, 0x18be, "vfio-pci").in(g.group)
		b.switched(0, g.bus, i/4, "", gpu, connectX(0x1021, classInfiniBand))
	}
	return b.platform("hgx-h200", "NVIDIA HGX H200, 8 GPUs, 4 NVSwitches in one IOMMU group", 8, 4)
}

// hgxB200 has the addresses of a cloud guest and the NUMA nodes of a host with
// sub-NUMA clustering. Its NVSwitches are no PCI functions: they are managed
// through four ConnectX-7, which must not be taken for NVSwitches.
func hgxB200() Platform {
	var b board
	b.server()
	bridge := connectX(0x1021, classInfiniBand)
	b.switched(0, 0x05, 0, "", bridge, bridge, bridge, bridge)
	gpu := nvidiaGPU(0x2901, 0x1999, "vfio-pci")
	for i, bus := range []uint8{0x8f, 0x96, 0xc4, 0xcb} {
		numa := []int{0, 2, 3, 5}[i]
		b.switched(0, bus, numa, "", gpu, gpu, connectX(0x1021, classInfiniBand))
	}
	return b.platform("hgx-b200", "NVIDIA HGX B200, 8 GPUs, NVSwitches not on PCI", 8, 0)
}

// hgxB300 is uncertain: the device ID comes from a third-party table, addresses and
// class are assumed. The adapter of each GPU is a ConnectX-8.
func hgxB300() Platform {
	var b board
	b.server()
	bridge := connectX(0x1021, classInfiniBand)
	b.switched(0, 0x05, 0, "", bridge, bridge, bridge, bridge)
	for i, bus := range []uint8{0x17, 0x27, 0x37, 0x47, 0x97, 0xa7, 0xb7, 0xc7} {
		b.switched(0, bus, i/4, "", nvidiaGPU(0x3182, 0x20e6, "vfio-pci"), connectX(0x1023, classInfiniBand))
	}
	return b.platform("hgx-b300", "NVIDIA HGX B300, 8 GPUs, NVSwitches not on PCI", 8, 0)
}
