package inventory

import (
	"slices"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// facts are what a look found of a function. Of one that could never be read there is
// little more than the address.
func facts(f *host.Function, name func(vendor, device pci.ID) string) Function {
	to := Function{Address: f.Address, Type: UnknownType, PCIeRoot: f.Root, Bridges: slices.Clone(f.Bridges), Driver: f.Driver}
	if f.NUMA != host.NoNode {
		to.NUMANode = new(int(f.NUMA))
	}
	if f.Known {
		identity(&to, f.Identity, name)
	}
	if f.Group != nil {
		to.IOMMUGroup = f.Group.Number
		for _, m := range f.Companions() {
			to.Companions = append(to.Companions, Companion{m.Address, m.Class.String(), m.Driver, declare.YieldsDMA(m)})
		}
	}
	if c := f.Cdev; c != nil {
		to.Cdev = &Cdev{Path: host.DevicesDir + "/" + c.Name, State: cdevState(c.State), Detail: c.Detail}
	}
	if f.PhysFn != nil {
		to.PhysicalFunction = new(*f.PhysFn)
	}
	to.VirtualFunctions = slices.Clone(f.VFs)
	if f.Network != nil {
		network(&to, f.Network)
	}
	return to
}

func identity(to *Function, id host.Identity, name func(vendor, device pci.ID) string) {
	to.Type, to.Class, to.ClassName = typeOf(id), id.Class.String(), className(id.Class)
	to.Vendor, to.Device = id.Vendor.String(), id.Device.String()
	to.SubVendor, to.SubDevice = id.SubVendor.String(), id.SubDevice.String()
	if name != nil {
		to.Name = name(id.Vendor, id.Device)
	}
}

func network(to *Function, n *host.Network) {
	for _, i := range n.Interfaces {
		to.Interfaces = append(to.Interfaces, i.Name)
	}
	for _, d := range n.RDMA {
		to.RDMADevices = append(to.RDMADevices, d.Name)
	}
	if n.VFIndex >= 0 {
		to.VFNumber = new(n.VFIndex)
	}
}
