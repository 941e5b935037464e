package sim

import (
	"fmt"
	"strings"
)

// sriovCPU is a server for network functions: an onboard adapter for the node's own traffic,
// a two-port E810 and a two-port ConnectX-6 Dx. Of the E810's VFs the even ones are on
// vfio-pci for DPDK and the odd ones on iavf; of the ConnectX's one is not bound. Of the
// E810 the VFs lie where Intel's hardware has them, behind the PFs' eight functions and 128
// further on for the second port.
func sriovCPU() Platform {
	var b board
	b.direct("0000:00", rootPort(), "01", 0, onboard(0), onboard(1))
	port0, port1 := e810(0), e810(1)
	port0.VFs = []VF{{Driver: "vfio-pci"}, {Driver: "iavf"}, {Driver: "vfio-pci"}, {Driver: "iavf"}}
	port1.VFs = port0.VFs
	b.direct("0000:30", rootPort(), "31", 0, port0, port1)
	nic := connectX(0x101d, classEthernet)
	nic.TotalVFs, nic.VFOffset, nic.VFStride, nic.VFDevice = 8, 2, 1, 0x101e
	second := nic
	second.VFOffset = 9
	nic.VFs = []VF{{Driver: "mlx5_core"}, {Driver: "mlx5_core"}, {Driver: "vfio-pci"}, {}}
	b.direct("0000:b0", rootPort(), "b1", 1, nic, second)
	b.direct("0000:e0", rootPort(), "e1", 1, nvme())
	p := b.platform("sriov-cpu", "two-socket server with an E810 and a ConnectX-6 Dx, VFs enabled", 0, 0)
	p.Shared, p.DefaultRoute = []string{"/dev/vhost-net", "/dev/net/tun", "/dev/infiniband/rdma_cm"}, "eno1"
	return p
}

// Adapters is a small machine for tests of what becomes of network controllers and
// accelerators: it has a function of each kind that they tell apart, with VFs on every kind
// of driver and on none. Addresses, names and numbers stay as they are.
func Adapters() Platform {
	i350 := Function{Vendor: intel, Device: 0x1521, SubVendor: intel, Class: classEthernet, Driver: "igb",
		NIC: &NIC{Interfaces: []Interface{{Name: "eno1"}}}}.in("1")
	pf := connectX(0x101d, classEthernet).in("30")
	pf.TotalVFs, pf.VFOffset, pf.VFDevice = 8, 2, 0x101e
	idle := pf.in("31")
	idle.VFOffset = 9 // behind the VFs of the first
	pf.NIC = &NIC{Interfaces: []Interface{{Name: "ens1f0np0", PortName: "p0"}}, VFInterface: "ens1f0v%d",
		SwitchID: "65000ee0f5fe0000"}
	idle.NIC = &NIC{Interfaces: []Interface{{Name: "ens1f1np1", PortName: "p1"}}, VFInterface: "ens1f1v%d",
		SwitchID: "65010ee0f5fe0000"}
	pf.VFs = []VF{
		{Driver: "mlx5_core", Group: "40"}, {Driver: "vfio-pci", Group: "41"}, {Driver: "vfio-pci", Group: "42"},
		{Group: "43"}, {Driver: "igb_uio", Group: "44", NIC: &NIC{UIO: 7}},
		{Driver: "mlx5_core", Group: "45", NIC: &NIC{Interfaces: []Interface{{Name: "ens1f0v5"}}, RDMA: []RDMA{{Name: "mlx5_7", Number: 7}}}},
	}
	accelerator := Function{Vendor: intel, Device: 0x0d5c, SubVendor: intel, Class: classAccelerator, Driver: "vfio-pci",
		NIC: &NIC{ACPIIndex: 101}}.in("50")
	second := accelerator.in("51")
	second.Device, second.NIC = 0x0d5d, nil
	var b board
	b.direct("0000:00", rootPort(), "01", 0, i350)
	b.direct("0000:64", rootPort(), "65", 1, pf, idle)
	b.direct("0000:f6", rootPort(), "f7", 0, accelerator)
	b.add("pci0000:f6/0000:f6:02.0", "0000:f8:00.0", 0, second)
	p := b.platform("adapters", "one of each", 0, 0)
	for i := range p.Functions {
		if f := &p.Functions[i]; f.Device == idle.Device && f.Address().Function == 1 {
			f.NUMA = -1
		}
	}
	p.Shared, p.DefaultRoute = []string{"/dev/infiniband/rdma_cm"}, "eno1"
	return p
}

// onboard is a port of an I350, which the firmware numbers.
func onboard(port int) Function {
	return Function{Vendor: intel, Device: 0x1521, SubVendor: intel, SubDevice: 0x0001, Class: classEthernet,
		Revision: 0x01, Driver: "igb", LinkSpeed: "5.0 GT/s PCIe", LinkWidth: 4,
		NIC: &NIC{Interfaces: []Interface{{Name: fmt.Sprintf("eno%d", port+1)}}, ACPIIndex: uint32(port + 1)}}
}

// e810 is a port of an Intel E810-C.
func e810(port int) Function {
	name := fmt.Sprintf("ens2f%d", port)
	return Function{Vendor: intel, Device: 0x1592, SubVendor: intel, SubDevice: 0x0002, Class: classEthernet,
		Revision: 0x02, Driver: "ice", LinkSpeed: gen4, LinkWidth: 16,
		TotalVFs: 128, VFOffset: 8 + 127*port, VFStride: 1, VFDevice: 0x1889,
		NIC: &NIC{
			Interfaces:  []Interface{{Name: name, PortName: fmt.Sprintf("p%d", port)}},
			RDMA:        []RDMA{{Name: fmt.Sprintf("irdma%d", port), NoMAD: true}},
			SwitchID:    "b49691fffe00000" + fmt.Sprint(port),
			VFInterface: name + "v%d",
		}}
}

// nameAdapters gives the ConnectX of a board their interfaces and RDMA devices: named by
// place, as systemd does (enp225s0f0np0, ibP8p3s0), and numbered in the order of addresses.
func (b *board) nameAdapters() {
	devices := 0
	for i, f := range b.list {
		if f.Vendor != mellanox || f.Driver != "mlx5_core" || f.NIC != nil {
			continue
		}
		a, ib := f.Address(), f.Class == classInfiniBand
		place := ""
		if a.Domain > 0 {
			place = fmt.Sprintf("P%d", a.Domain)
		}
		place += fmt.Sprintf("p%ds%d", a.Bus, a.Device)
		if b.functions(f) > 1 {
			place += fmt.Sprintf("f%d", a.Function)
		}
		nic := &NIC{RDMA: []RDMA{{Name: fmt.Sprintf("mlx5_%d", devices), InfiniBand: ib}}, VFRDMA: "mlx5_%d"}
		if ib {
			nic.Interfaces = []Interface{{Name: "ib" + place, Type: infiniBand}}
			nic.VFInterface = "ib" + place + "v%d"
		} else {
			port := fmt.Sprintf("p%d", a.Function)
			nic.Interfaces = []Interface{{Name: "en" + place + "n" + port, PortName: port}}
			nic.VFInterface = "en" + place + "v%d"
			nic.SwitchID = fmt.Sprintf("%02x%02x%02xe0f5fe0000", a.Bus, a.Device, a.Function)
		}
		b.list[i].NIC = nic
		devices++
	}
}

// functions counts the functions of a function's device.
func (b *board) functions(f Function) int {
	count := 0
	device := f.Path[:strings.LastIndexByte(f.Path, '.')+1]
	for _, other := range b.list {
		if strings.HasPrefix(other.Path, device) {
			count++
		}
	}
	return count
}
