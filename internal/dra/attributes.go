package dra

import (
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/deviceattribute"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// attributes are those of one device. What is not known is not among them: a value that stands
// for unknown would match that of the next device of which it is not known either.
type attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute

// text leaves out what the API would refuse, since it would refuse the whole slice for it.
func (a attributes) text(name resourceapi.QualifiedName, value string) {
	if value != "" && len(value) <= resourceapi.DeviceAttributeMaxValueLength {
		a[name] = resourceapi.DeviceAttribute{StringValue: &value}
	}
}

func (a attributes) number(name resourceapi.QualifiedName, value int64) {
	a[name] = resourceapi.DeviceAttribute{IntValue: &value}
}

// positive leaves out 0, which stands for unknown.
func (a attributes) positive(name resourceapi.QualifiedName, value int) {
	if value > 0 {
		a.number(name, int64(value))
	}
}

func (a attributes) flag(name resourceapi.QualifiedName, value bool) {
	a[name] = resourceapi.DeviceAttribute{BoolValue: &value}
}

// add takes what an upstream helper says. Its error means that the value is not known.
func (a attributes) add(attribute deviceattribute.DeviceAttribute, err error) {
	if err == nil {
		a[attribute.Name] = attribute.Value
	}
}

// Attributes are what is published of the device: the standard attributes, and the driver's own
// under names without a domain. The attribute type is always there, so that a selector which
// asks for it first never meets a device on which it cannot be evaluated.
func (d *Device) Attributes() map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	f, a := &d.Function, attributes{}
	a.standard(f)
	a.text("type", string(d.Type))
	a.text("vendorID", digits(f.Vendor.String()))
	a.text("deviceID", digits(f.Device.String()))
	a.text("subsystemVendorID", digits(f.SubVendor.String()))
	a.text("subsystemID", digits(f.SubDevice.String()))
	a.text("classCode", digits(f.Class.String()))
	a.text("productName", productOf(f.Identity).name)
	a.text("driver", f.Driver)
	if f.Group != nil {
		if n, err := strconv.ParseInt(f.Group.Number, 10, 64); err == nil {
			a.number("iommuGroup", n)
		}
	}
	a.number("groupSize", int64(len(d.Group)))
	a.number("functions", int64(len(d.Nodes)))
	a.flag("iommufd", f.Cdev != nil && f.Cdev.State == host.CdevReady)
	if port, behind := pcieSwitch(f.Path); behind {
		a.text("pcieSwitch", port.String())
	}
	// An integer, because that is the one type of an attribute which a selector can compare
	// with < and >; and MT/s, because 2.5 GT/s is no integer otherwise.
	a.positive("pcieLinkMTs", f.PCIeLink.MTs)
	a.positive("pcieLinkWidth", f.PCIeLink.Lanes)
	if f.PhysFn != nil {
		a.text("parentAddress", f.PhysFn.String())
	}
	if d.vfIndex != nil {
		a.number("vfIndex", int64(*d.vfIndex))
	}
	if d.networked() {
		a.text("k8s.cni.cncf.io/deviceID", f.Address.String())
	}
	return a
}

// networked says whether a network plugin may be told of the device. In a wide domain it would
// look for another one.
func (d *Device) networked() bool {
	return (d.Type == NIC || d.Type == VF) && d.Function.Address.Domain <= 0xffff
}

// digits is a number of sysfs without 0x.
func digits(s string) string { return strings.TrimPrefix(s, "0x") }

// pcieSwitch is the upstream port of the PCIe switch that is nearest above a function. Devices
// with the same one reach each other without the root complex; several switches may hang below
// one root port or root.
//
// The bridges above a function are a root port, then for each switch its upstream and a
// downstream port: of a switch there are two. A single bridge more is none, but one to
// conventional PCI, or the switch's upstream port for a function that is inside the switch
// itself; the two look the same, so nothing is said of either. Of a function behind an Intel
// VMD endpoint the bridges before its own domain are not the root port.
func pcieSwitch(p pci.Path) (pci.Address, bool) {
	bridges := p.Bridges
	for len(bridges) > 0 && bridges[0].Domain != p.Address.Domain {
		bridges = bridges[1:]
	}
	ports := (len(bridges) - 1) / 2 * 2 // of switches
	if ports < 2 {
		return pci.Address{}, false
	}
	return bridges[ports-1], true
}
