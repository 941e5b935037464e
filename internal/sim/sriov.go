package sim

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/pci"
)

// sriovFiles are the controls of a physical function.
func sriovFiles(f Function) []file {
	vfDevice := fmt.Sprintf("%04x\n", uint16(cmp.Or(f.VFDevice, f.Device))) // no 0x, unlike device
	return []file{
		{name: "sriov_drivers_autoprobe", mode: 0o644, text: "1\n"},
		{name: "sriov_numvfs", mode: 0o644, text: "0\n"},
		{name: "sriov_offset", mode: 0o444, text: strconv.Itoa(cmp.Or(f.VFOffset, 1)) + "\n"},
		{name: "sriov_stride", mode: 0o444, text: strconv.Itoa(cmp.Or(f.VFStride, 1)) + "\n"},
		{name: "sriov_totalvfs", mode: 0o444, text: strconv.Itoa(f.TotalVFs) + "\n"},
		{name: "sriov_vf_device", mode: 0o444, text: vfDevice},
		{name: "sriov_vf_total_msix", mode: 0o444, text: "0\n"},
	}
}

// SetVFs writes sriov_numvfs of a physical function. VFs come with the class of
// the PF, each in an IOMMU group of its own, and are bound to driver unless it is
// empty. As in the kernel a number can only be changed to 0 and from 0 (EBUSY), not
// above the total (ERANGE), and only while the PF has a driver (ENOENT).
func (n *Node) SetVFs(pf pci.Address, count int, driver string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, err := n.function(pf)
	if err != nil {
		return fmt.Errorf("set number of VFs: %w", err)
	}
	switch {
	case d.fn.TotalVFs == 0 || d.driver == "":
		err = unix.ENOENT
	case count < 0 || count > d.fn.TotalVFs:
		err = unix.ERANGE
	case count > 0 && len(d.vfs) > 0 && count != len(d.vfs):
		err = unix.EBUSY
	case count == len(d.vfs):
	case count == 0:
		err = n.disableVFs(d)
	default:
		vfs := make([]VF, count)
		for k := range vfs {
			vfs[k].Driver = driver
		}
		err = n.enableVFs(d, vfs)
	}
	if err != nil {
		return fmt.Errorf("set number of VFs of %s to %d: %w", pf, count, err)
	}
	return nil
}

// VFs are the addresses of the VFs that a physical function has enabled, by number.
func (n *Node) VFs(pf pci.Address) []pci.Address {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.devices[pf.String()]
	if d == nil {
		return nil
	}
	var all []pci.Address
	for _, v := range d.vfs {
		all = append(all, v.fn.Address())
	}
	return all
}

// enableVFs adds VFs in the order of sriov_enable (drivers/pci/iov.c): for each the
// function, virtfnK, physfn, driver; sriov_numvfs last. So a VF is for a moment
// without physfn, and VFs are there while sriov_numvfs still says 0.
func (n *Node) enableVFs(pf *device, vfs []VF) error {
	if err := n.addRepresentors(pf, len(vfs)); err != nil {
		return err
	}
	for k, v := range vfs {
		f, err := vf(pf.fn, k)
		if err != nil {
			return err
		}
		f.Group, f.NIC = v.Group, cmp.Or(v.NIC, pf.fn.NIC.vf(k))
		if pf.group != "" && f.Group == "" {
			f.Group = n.newGroup()
		}
		if err := n.addFunction(f, pf); err != nil {
			return err
		}
		d := n.devices[f.Address().String()]
		pf.vfs = append(pf.vfs, d)
		if err := n.link(pf.path+"/virtfn"+strconv.Itoa(k), d.path); err != nil {
			return err
		}
		if err := n.link(d.path+"/physfn", pf.path); err != nil {
			return err
		}
		if v.Driver == "" {
			continue
		}
		if err := n.bind(d, v.Driver, mode{vfio: isVFIODriver(v.Driver)}); err != nil {
			return err
		}
	}
	return n.replaceFile(n.sys(pf.path+"/sriov_numvfs"), 0o644, strconv.Itoa(len(vfs))+"\n")
}

// disableVFs removes VFs in the order of sriov_disable: virtfnK and physfn go
// before the driver is unbound, so a VF with a cdev is for a moment without physfn.
func (n *Node) disableVFs(pf *device) error {
	for _, d := range pf.vfs {
		if d.held {
			return fmt.Errorf("%s is in use: %w", filepath.Base(d.path), unix.EBUSY)
		}
	}
	vfs := pf.vfs
	pf.vfs = nil
	for k, d := range vfs {
		if err := n.unlink(pf.path + "/virtfn" + strconv.Itoa(k)); err != nil {
			return err
		}
		if err := n.unlink(d.path + "/physfn"); err != nil {
			return err
		}
		if err := n.removeFunction(d); err != nil {
			return err
		}
	}
	if err := n.dropRepresentors(pf); err != nil {
		return err
	}
	return n.replaceFile(n.sys(pf.path+"/sriov_numvfs"), 0o644, "0\n")
}

// vf is the K-th VF of a physical function: its routing ID (bus, device, function
// as one number) lies offset and K strides behind the PF's.
func vf(pf Function, k int) (Function, error) {
	a := pf.Address()
	rid := int(a.Bus)<<8 | int(a.Device)<<3 | int(a.Function)
	rid += cmp.Or(pf.VFOffset, 1) + k*cmp.Or(pf.VFStride, 1)
	if rid > 0xffff {
		return Function{}, fmt.Errorf("no bus number is left for VF %d: %w", k, unix.ENOMEM)
	}
	a.Bus, a.Device, a.Function = uint8(rid>>8), uint8(rid>>3&0x1f), uint8(rid&7)
	f := pf
	// The parent in sysfs is the PF's bridge, also when the VF's bus is another.
	f.Path = path.Join(path.Dir(pf.Path), a.String())
	f.Device = cmp.Or(pf.VFDevice, pf.Device)
	f.Driver, f.Group, f.VFIO, f.TotalVFs, f.VFs = "", "", false, 0, nil
	return f, nil
}
