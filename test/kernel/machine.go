package kernel

import (
	"fmt"
	"strings"

	"kata-device-plugin/test/kernel/wire"
)

// Machine is one to start: its hardware, what its functions pose as, and what the guest is to do.
type Machine struct {
	Name  string
	SRIOV bool // needs the newer QEMU
	Args  []string
	Poses []string // for pose.c
	Boot  []string // more of the kernel's command line
	// Devices are what functions are to the plugin, Options those of modules.
	Devices []wire.Device
	Options map[string]string
	// Scenarios are those of package guest, in this order.
	Scenarios []string
}

// What functions pose as.
const (
	h100     = "10de/2330/030200/a1/10de/16c1"
	h100PF   = "10de/10c9/030200/a1/10de/16c1" // the device number is the network card's: its driver goes by it
	h100VF   = "10de/10ca/030200/a1/10de/16c1"
	t4       = "10de/1eb8/030200/a1/10de/12a2"
	rtx      = "10de/2204/030000/a1/10de/1454"
	rtxAudio = "10de/1aef/040300/a1/10de/1454"
	nvswitch = "10de/22a3/068000/a1/10de/1796"
)

// Machines are all there are.
func Machines() []Machine {
	return []Machine{
		{
			Name: "small", Args: small(), Poses: smallPoses(), Devices: smallDevices(),
			Scenarios: []string{
				"the plugin starts before VFIO is loaded", "Landlock confines the plugin", "identity and NUMA",
				"a function without a NUMA node", "tables", "bind and unbind are announced", "change to announcement",
				"rebind keeps the ID", "numbers are swapped", "unbind while held", "rebind while held", "the last device leaves and the first returns",
				"hot-unplug and hot-plug", "hot-unplug while held", "remove and rescan", "a companion of the host", "a companion that leaves",
				"a mediated device", "module unload and load", "nothing can be read", "kubelet restarts", "the wall clock steps", "memory",
				"kill and restart", "two plugins", "SIGTERM",
			},
		},
		{
			Name: "small without Landlock", Args: small(), Poses: smallPoses(), Devices: smallDevices(), Boot: []string{"lsm="},
			Scenarios: []string{"the plugin starts before VFIO is loaded", "Landlock is off", "identity and NUMA", "SIGTERM"},
		},
		{
			Name: "small without IOMMU", Args: withoutIOMMU(small()), Poses: smallPoses(), Devices: smallDevices(),
			Options:   map[string]string{"vfio": "enable_unsafe_noiommu_mode=1"},
			Scenarios: []string{"nothing without an IOMMU", "tables without an IOMMU", "SIGTERM"},
		},
		{
			Name: "full", SRIOV: true, Args: full(), Poses: fullPoses(), Devices: fullDevices(),
			Scenarios: []string{
				"the plugin starts before VFIO is loaded", "identity and NUMA", "tables", "a display with its audio",
				"a PF with VFs", "a PF is unbound while held", "VFs are never declared", "the VF removal window", "memory", "SIGTERM",
			},
		},
	}
}

// base is a q35 with two NUMA nodes. One thread emulates all CPUs: with a thread each, a machine of
// four hangs now and then.
func base(cpus, megabytes int) []string {
	half := cpus / 2
	return lines(fmt.Sprintf(`
-machine q35 -accel tcg,thread=single -cpu max -smp %d,sockets=2 -m %d
-object memory-backend-ram,id=m0,size=%dM -object memory-backend-ram,id=m1,size=%dM
-numa node,nodeid=0,cpus=0-%d,memdev=m0 -numa node,nodeid=1,cpus=%d-%d,memdev=m1
-device intel-iommu,caching-mode=on,intremap=on,device-iotlb=on
`, cpus, megabytes, megabytes/2, megabytes/2, half-1, half, cpus-1))
}

// small is for any QEMU: two GPUs on node 0, one GPU and an NVSwitch on node 1; one on the main bus,
// which is on no node and can be unplugged; and one behind a conventional bridge, so in one IOMMU
// group with a device of the host's.
func small() []string {
	return append(base(2, 512), lines(`
-device pxb-pcie,id=x0,bus=pcie.0,addr=10.0,bus_nr=0x20,numa_node=0
-device pcie-root-port,id=p0,bus=x0,addr=1.0,chassis=1,slot=1 -device edu,id=gpu0,bus=p0
-device pcie-root-port,id=p1,bus=x0,addr=2.0,chassis=1,slot=2 -device edu,id=gpu1,bus=p1
-device pcie-root-port,id=p2,bus=x0,addr=3.0,chassis=1,slot=3 -device pcie-pci-bridge,id=b0,bus=p2
-device edu,id=old0,bus=b0,addr=1.0 -device virtio-rng-pci,id=rng0,bus=b0,addr=2.0
-device pxb-pcie,id=x1,bus=pcie.0,addr=11.0,bus_nr=0x80,numa_node=1
-device pcie-root-port,id=p4,bus=x1,addr=1.0,chassis=2,slot=1 -device edu,id=gpu2,bus=p4
-device pcie-root-port,id=p5,bus=x1,addr=2.0,chassis=2,slot=2 -device edu,id=switch0,bus=p5
-device pcie-root-port,id=hot,bus=pcie.0,addr=3.0,chassis=4,slot=1 -device edu,id=hot0,bus=hot
`)...)
}

func smallPoses() []string {
	return []string{"0000:21:00.0/" + h100, "0000:22:00.0/" + h100, "0000:24:01.0/" + t4,
		"0000:81:00.0/" + h100, "0000:82:00.0/" + nvswitch, "0000:01:00.0/" + h100}
}

// withoutIOMMU leaves the IOMMU out.
func withoutIOMMU(args []string) []string {
	for i := 1; i < len(args); i++ {
		if strings.HasPrefix(args[i], "intel-iommu") {
			return append(args[:i-1:i-1], args[i+1:]...)
		}
	}
	return args
}

// full has what small lacks: a PCIe switch, a function with a companion on the same slot, a PCI
// Express endpoint, and a network card with virtual functions, which poses as a GPU that has them.
func full() []string {
	return append(base(4, 768), lines(`
-device pxb-pcie,id=x0,bus=pcie.0,addr=10.0,bus_nr=0x20,numa_node=0
-device pcie-root-port,id=p0,bus=x0,addr=1.0,chassis=1,slot=1 -device nvme,id=gpu0,bus=p0,serial=lab
-device pcie-root-port,id=p1,bus=x0,addr=2.0,chassis=1,slot=2
-device edu,id=display,bus=p1,addr=0.0,multifunction=on -device edu,id=audio,bus=p1,addr=0.1
-device pxb-pcie,id=x1,bus=pcie.0,addr=11.0,bus_nr=0x80,numa_node=1
-device pcie-root-port,id=p4,bus=x1,addr=1.0,chassis=2,slot=1 -device x3130-upstream,id=up,bus=p4
-device xio3130-downstream,id=d0,bus=up,chassis=3,slot=1 -device edu,id=gpu1,bus=d0
-device xio3130-downstream,id=d1,bus=up,chassis=3,slot=2 -device edu,id=gpu2,bus=d1
-device pcie-root-port,id=p5,bus=pcie.0,addr=4.0,chassis=4,slot=1
-netdev user,id=n0,restrict=on -device igb,id=pf0,bus=p5,netdev=n0
`)...)
}

func fullPoses() []string {
	return []string{"0000:21:00.0/" + h100, "0000:22:00.0/" + rtx, "0000:22:00.1/" + rtxAudio,
		"0000:83:00.0/" + h100, "0000:84:00.0/" + h100, "0000:01:00.0/" + h100PF, "0000:01:1*/" + h100VF}
}

// What a function is to the plugin.
const (
	gpu              = "nvidia.com/gpu"
	nvswitchResource = "nvidia.com/nvswitch"
)

func smallDevices() []wire.Device {
	return []wire.Device{
		{ID: "0000:21:00.0", Resource: gpu, NUMA: 0}, {ID: "0000:22:00.0", Resource: gpu, NUMA: 0},
		{ID: "0000:81:00.0", Resource: gpu, NUMA: 1}, {ID: "0000:82:00.0", Resource: nvswitchResource, NUMA: 1},
		{ID: "0000:01:00.0", Resource: gpu, NUMA: -1, Role: wire.Hot},
		{ID: "0000:24:01.0", Resource: gpu, NUMA: 0, Role: wire.Shared}, {ID: "0000:24:02.0", Role: wire.Neighbour},
	}
}

func fullDevices() []wire.Device {
	return []wire.Device{
		{ID: "0000:21:00.0", Resource: gpu, NUMA: 0},
		{ID: "0000:83:00.0", Resource: gpu, NUMA: 1}, {ID: "0000:84:00.0", Resource: gpu, NUMA: 1},
		{ID: "0000:22:00.0", Resource: gpu, NUMA: 0, Role: wire.Display}, {ID: "0000:22:00.1", Role: wire.Audio},
		{ID: "0000:01:00.0", Resource: gpu, NUMA: -1, Role: wire.PF},
	}
}

func (m Machine) orders() wire.Orders {
	return wire.Orders{Scenarios: m.Scenarios, Devices: m.Devices, Options: m.Options}
}

// lines are the words of a text.
func lines(text string) []string { return strings.Fields(text) }
