package sim

import "strconv"

// graceDriver also maps the GPU memory that is coherent with the CPU's.
const graceDriver = "nvgrace_gpu_vfio_pci"

// gb200 is one compute tray: each GPU directly below a root port in a PCI domain
// of its own. The NVSwitches are in other trays.
func gb200() Platform {
	var b board
	for i, domain := range []string{"0008", "0009", "0018", "0019"} {
		dir := b.add("pci"+domain+":00", domain+":00:00.0", i/2, gracePort())
		b.add(dir, domain+":01:00.0", i/2, nvidiaGPU(0x2941, 0x2046, graceDriver))
	}
	b.graceIO(connectX(0x1021, classInfiniBand))
	return b.platform("gb200", "NVIDIA GB200 NVL72 compute tray, 4 GPUs", 4, 0)
}

// gb300 has its GPUs on bus 06, below the PCIe switch that is part of a ConnectX-8,
// whose network function is on bus 03. The models of the switch's ports are
// assumed.
func gb300() Platform {
	var b board
	b.superchips(nvidiaGPU(0x31c2, 0x21f1, graceDriver), 79)
	b.graceIO()
	return b.platform("gb300", "NVIDIA GB300 NVL72 compute tray, 4 GPUs", 4, 0)
}

// veraRubin is mostly uncertain. 3041 is reported, but sources contradict each
// other on whether it or 307f is the physical function. Class, driver, root ports,
// addresses and the ConnectX-9 are assumed to continue those of GB300.
func veraRubin() Platform {
	var b board
	b.superchips(nvidiaGPU(0x3041, 0x0000, graceDriver), 79)
	b.graceIO()
	p := b.platform("vera-rubin", "NVIDIA Vera Rubin NVL compute tray, 4 GPUs (identities uncertain)", 4, 0)
	for i, f := range p.Functions {
		if f.Vendor == mellanox && f.Class == classInfiniBand {
			p.Functions[i].Device = 0x1025
		}
	}
	return p
}

// superchips adds four GPUs behind the switches of their network adapters, in
// consecutive IOMMU groups.
func (b *board) superchips(gpu Function, firstGroup int) {
	for i, domain := range []string{"0008", "0009", "0018", "0019"} {
		numa := i / 2
		dir := b.add("pci"+domain+":00", domain+":00:00.0", numa, gracePort())
		dir = b.add(dir, domain+":01:00.0", numa, switchPort())
		nic := b.add(dir, domain+":02:00.0", numa, switchPort())
		b.add(nic, domain+":03:00.0", numa, connectX(0x1023, classInfiniBand))
		down := b.add(dir, domain+":02:03.0", numa, switchPort())
		b.add(down, domain+":06:00.0", numa, gpu.in(strconv.Itoa(firstGroup+i)))
	}
}

// graceIO adds a disk and an adapter at the first CPU's root ports.
func (b *board) graceIO(more ...Function) {
	below := append([]Function{nvme(), connectX(0xa2dc, classEthernet)}, more...)
	for i, f := range below {
		domain := "000" + strconv.Itoa(2*i)
		dir := b.add("pci"+domain+":00", domain+":00:00.0", 0, gracePort())
		b.add(dir, domain+":01:00.0", 0, f)
	}
}
