package dra

import (
	"slices"
	"strconv"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
)

// Inventory is what a snapshot amounts to. It is immutable.
type Inventory struct {
	// Devices are sorted by address.
	Devices []Device
	// Findings are the reasons why candidates are no devices, and what else the look met. The
	// faults of devices are with the devices.
	Findings []finding.Finding
	// Hosts are the same of network controllers that a driver of the host's has: nearly every node
	// has some, and nobody has to be told.
	Hosts []finding.Finding
}

// Device finds a device by its name.
func (i *Inventory) Device(name string) (*Device, bool) {
	for k := range i.Devices {
		if i.Devices[k].Name == name {
			return &i.Devices[k], true
		}
	}
	return nil, false
}

// Why says why a function is no device of its own, by its address.
func (i *Inventory) Why(address string) (finding.Finding, bool) {
	for _, f := range slices.Concat(i.Findings, i.Hosts) {
		if f.Device == address {
			return f, true
		}
	}
	return finding.Finding{}, false
}

// Take makes the inventory of a snapshot. Only functions that are bound to VFIO and have a
// character device that can be relied on are devices; nothing here or elsewhere binds one.
func Take(s *host.Snapshot) *Inventory {
	inv := &Inventory{}
	find := func(f finding.Finding) { inv.Findings = append(inv.Findings, f) }
	owners := map[string]int{} // the device of each IOMMU group
	for i := range s.Functions {
		f := &s.Functions[i]
		t := typeOf(f)
		if t == "" && f.Known {
			continue
		}
		if f.Err != nil {
			find(declare.Unreadable(f))
		}
		if !f.Known {
			continue // it may be anything
		}
		if why, refused := refusal(t, f); refused {
			if (t == NIC || t == VF) && why.ID == finding.NoCdev().ID {
				inv.Hosts = append(inv.Hosts, why)
			} else {
				find(why)
			}
			continue
		}
		if owner, taken := owners[f.Group.Number]; taken {
			find(inv.Devices[owner].join(t, f))
			continue
		}
		owners[f.Group.Number] = len(inv.Devices)
		inv.Devices = append(inv.Devices, device(s, t, f))
	}
	inv.Findings = append(inv.Findings, declare.Entries(s)...)
	finding.Sort(inv.Findings)
	inv.Findings = append(inv.Findings, declare.Stale(s)...) // what the others may come from
	return inv
}

// join adds a function to the device of its IOMMU group, since who has the one has the other: the
// four NVSwitches of an HGX H200 are one group, and a VM wants them all. A function of another type
// is held with the device, and comes with nothing.
func (d *Device) join(t Type, f *host.Function) finding.Finding {
	kind := finding.SharesGroup()
	if t == d.Type {
		kind = finding.ComesWith()
		d.Nodes = append(d.Nodes, node(f))
		d.Faults = append(d.Faults, declare.Faults(f, "")...)
	}
	return finding.New(kind, f.Address.String(), finding.Evidence{
		Path: host.SysPath(f.Address, "iommu_group"), Value: f.Group.Number + ", with " + d.Name,
	})
}

// refusal is the reason why a candidate is no device at all.
func refusal(t Type, f *host.Function) (finding.Finding, bool) {
	whole := *f
	if t == VF {
		whole.PhysFn = nil // the VF of a network controller is as good as a whole device
	}
	if why, refused := declare.Refusal(&whole); refused {
		return why, true
	}
	// Its VFs are devices of their own, or the host's: to hand out the PF would take them along.
	if len(f.VFs) > 0 {
		return finding.New(finding.HasVFs(), f.Address.String(), finding.Evidence{
			Path: host.SysPath(f.Address, "sriov_numvfs"), Value: strconv.Itoa(len(f.VFs)),
		}), true
	}
	return finding.Finding{}, false
}

// device is a function that nothing refuses.
func device(s *host.Snapshot, t Type, f *host.Function) Device {
	d := Device{
		Name: draname.Device(string(t), f.Address), Type: t, Function: *f, Group: group(f),
		Nodes:  []string{node(f)},
		Faults: declare.Faults(f, ""),
	}
	if f.PhysFn != nil {
		if pf, ok := s.Function(*f.PhysFn); ok {
			if k := slices.Index(pf.VFs, f.Address); k >= 0 {
				d.vfIndex = &k
			}
		}
	}
	return d
}

// node is the host's path of a function's character device.
func node(f *host.Function) string { return host.DevicesDir + "/" + f.Cdev.Name }
