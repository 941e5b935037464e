package sim

import (
	"fmt"
	"strings"
)

// presets are all platforms in the order of Platforms.
func presets() []func() Platform {
	return []func() Platform{
		hgxH100, hgxH200, hgxB200, hgxB300, gb200, gb300, veraRubin, rtxPro6000, workstation, cpuOnly, sriovCPU,
	}
}

// Platforms are all presets, always in the same order.
func Platforms() []Platform {
	var list []Platform
	for _, preset := range presets() {
		list = append(list, preset())
	}
	return list
}

// PlatformByName finds a preset.
func PlatformByName(name string) (Platform, error) {
	var names []string
	for _, p := range Platforms() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Platform{}, fmt.Errorf("no platform %q: there are %s", name, strings.Join(names, ", "))
}

// Many is a machine of count GPUs, for benchmarks: eight behind each switch, 16
// switches with root ports of their own in a PCI domain, two NUMA nodes a domain,
// each GPU in its own IOMMU group and on vfio-pci.
func Many(count int) Platform {
	const perSwitch, switchesPerDomain, busesPerSwitch, nodes = 8, 16, 16, 8
	var b board
	for at := 0; at < count; at += perSwitch {
		s := at / perSwitch
		domain, inDomain := s/switchesPerDomain, s%switchesPerDomain
		gpus := make([]Function, min(perSwitch, count-at))
		for i := range gpus {
			gpus[i] = nvidiaGPU(0x2330, 0x16c1, "vfio-pci")
		}
		numa := (2*domain + inDomain*2/switchesPerDomain) % nodes
		b.switched(uint32(domain), uint8(inDomain*busesPerSwitch+3), numa, "", gpus...)
	}
	return b.platform(fmt.Sprintf("many-%d", count), fmt.Sprintf("%d GPUs", count), count, 0)
}
