package nic

import (
	"slices"
	"strconv"
	"strings"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nicconfig"
)

// uplinks are the interfaces that stand for a function itself, out of all that sysfs lists
// below it. Of a PF in switchdev mode the representors of its VFs are there too, and of an
// InfiniBand function the IPoIB children, which are called like ib0.8001; either may sort
// before the one that people mean.
func uplinks(all []host.Interface) []host.Interface {
	if slices.ContainsFunc(all, func(i host.Interface) bool { return i.SwitchID != "" }) {
		return filter(all, func(i host.Interface) bool { return i.SwitchID != "" && isPort(i.PortName) })
	}
	if parents := filter(all, func(i host.Interface) bool { return !strings.Contains(i.Name, ".") }); len(parents) > 0 {
		return parents
	}
	return all
}

func filter(all []host.Interface, keep func(host.Interface) bool) []host.Interface {
	return slices.DeleteFunc(slices.Clone(all), func(i host.Interface) bool { return !keep(i) })
}

// isPort says whether a phys_port_name is a port's own: p and a number, or none
// (devlink_port in the kernel's net/devlink/port.c; representors are pf0vf3 and the like).
func isPort(name string) bool {
	digits, ok := strings.CutPrefix(name, "p")
	return name == "" || ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// representor is the interface that stands for a VF at its PF's switch, "" when there is
// none, or two. Controllers of other hosts, as on a DPU, number VFs of their own; the names
// of their ports begin with c and a number.
func representor(pf *host.Function, vf int) string {
	if pf == nil || pf.Network == nil || vf < 0 {
		return ""
	}
	port := "vf" + strconv.Itoa(vf)
	all := filter(pf.Network.Interfaces, func(i host.Interface) bool {
		number, ok := strings.CutPrefix(strings.TrimPrefix(i.PortName, "c0"), "pf")
		number, ok2 := strings.CutSuffix(number, port)
		return ok && ok2 && i.SwitchID != "" && number != "" && strings.Trim(number, "0123456789") == ""
	})
	if len(all) > 1 { // one switch for both PFs of a board
		own := "pf" + strconv.Itoa(int(pf.Address.Function)) + port
		all = filter(all, func(i host.Interface) bool { return strings.TrimPrefix(i.PortName, "c0") == own })
	}
	if len(all) != 1 {
		return ""
	}
	return all[0].Name
}

// linkTypes are those of a function's ports. An interface says it, and where there is none,
// as without ib_ipoib, the RDMA device.
func linkTypes(interfaces []host.Interface, rdma []host.RDMADevice) []nicconfig.LinkType {
	var types []nicconfig.LinkType
	for _, i := range uplinks(interfaces) {
		switch i.Type {
		case host.TypeEther:
			types = append(types, nicconfig.Ether)
		case host.TypeInfiniBand:
			types = append(types, nicconfig.InfiniBand)
		default: // of which no selector knows the name
			types = append(types, nicconfig.LinkType("type "+strconv.Itoa(i.Type)))
		}
	}
	if len(types) > 0 {
		return types
	}
	for _, d := range rdma {
		switch d.LinkLayer {
		case "Ethernet":
			types = append(types, nicconfig.Ether)
		case "InfiniBand":
			types = append(types, nicconfig.InfiniBand)
		}
	}
	return types
}
