package sim

// rtxPro6000 has two cards with SR-IOV, whose VFs have the class of the card, so
// that only physfn tells them apart. Number and place of the VFs are assumed.
func rtxPro6000() Platform {
	var b board
	b.server()
	card := nvidiaGPU(0x2bb5, 0x204e, "vfio-pci")
	card.TotalVFs, card.VFOffset, card.VFStride = 48, 4, 1
	b.direct("0000:40", rootPort(), "41", 0, card)
	b.direct("0000:c0", rootPort(), "c1", 1, card)
	return b.platform("rtx-pro-6000", "server with 2 NVIDIA RTX PRO 6000 Blackwell, SR-IOV", 2, 0)
}

// workstation has a GeForce with display outputs, hence class VGA, and its audio
// function. Root port and both functions are in one group, as on boards whose
// ports do not separate (ACS). The processor's own graphics drives the display.
func workstation() Platform {
	var b board
	card := nvidiaGPU(0x2204, 0x1454, "vfio-pci").in("2")
	card.Class, card.LinkSpeed = classVGA, gen4
	audio := card
	audio.Device, audio.Class = 0x1aef, classAudio
	b.direct("0000:00", rootPort().in("2"), "01", -1, card, audio)
	b.add("pci0000:00", "0000:00:00.0", -1, Function{Vendor: intel, Device: 0xa700, SubVendor: intel,
		Class: classHost, Revision: 0x01})
	b.add("pci0000:00", "0000:00:02.0", -1, Function{Vendor: intel, Device: 0xa780, SubVendor: intel,
		Class: classVGA, Revision: 0x04, Driver: "i915"})
	disk := b.add("pci0000:00", "0000:00:06.0", -1, rootPort())
	b.add(disk, "0000:02:00.0", -1, nvme())
	return b.platform("workstation", "workstation with a GeForce RTX and its audio function", 1, 0)
}

// cpuOnly has nothing to offer: a plugin must wait there, not fail.
func cpuOnly() Platform {
	const amd = 0x1022
	var b board
	b.add("pci0000:00", "0000:00:00.0", 0, Function{Vendor: amd, Device: 0x14a4, SubVendor: amd,
		SubDevice: 0x14a4, Class: classHost, Revision: 0x01})
	b.direct("0000:00", port(amd, 0x14ab), "01", 0, nvme())
	nic := connectX(0x101d, classEthernet)
	b.direct("0000:40", port(amd, 0x14ab), "41", 0, nic, nic)
	return b.platform("cpu-only", "server without NVIDIA functions", 0, 0)
}
