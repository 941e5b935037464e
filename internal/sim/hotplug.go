package sim

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/pci"
)

// Add makes a function appear as a hot-plug or a rescan does: without driver and
// without driver_override, whatever f.Driver says. Bridges that its Path lacks
// appear first. A function that is there already gives EEXIST.
func (n *Node) Add(f Function) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := f.check(); err != nil {
		return err
	}
	if n.devices[f.Address().String()] != nil {
		return fmt.Errorf("add function %s: %w", f.Address(), unix.EEXIST)
	}
	n.maxNUMA = max(n.maxNUMA, f.NUMA)
	n.reserveGroup(f.Group)
	return n.add(f, nil)
}

// Remove makes a function vanish, as sysfs's remove file or a hot-unplug does: VFs
// and functions below it first, each unbound before. One that an unbind left
// waiting gives EBUSY; RemoveBusy and Release are for those.
func (n *Node) Remove(a pci.Address) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, err := n.removable(a)
	if err != nil {
		return err
	}
	return n.remove(d)
}

// removable finds a function that can be removed by itself.
func (n *Node) removable(a pci.Address) (*device, error) {
	d, err := n.function(a)
	if err != nil {
		return nil, fmt.Errorf("remove: %w", err)
	}
	if d.pf != nil {
		return nil, fmt.Errorf("remove %s: a VF goes by its PF's sriov_numvfs: %w", a, unix.EINVAL)
	}
	return d, nil
}

// RemoveBusy starts to remove a function whose cdev somebody has open: node and
// registration go at once, its directory stays, without driver, until Release
// (kernel.md 3.3).
func (n *Node) RemoveBusy(a pci.Address) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, err := n.removable(a)
	if err != nil {
		return err
	}
	if !d.held {
		if err := n.unbindBusy(d); err != nil {
			return err
		}
	}
	d.leaving = true
	return nil
}

// remove removes a device and all below it.
func (n *Node) remove(d *device) error {
	below := n.below(d)
	for _, b := range append(below, d) {
		if b.held {
			return fmt.Errorf("remove %s: in use: %w", filepath.Base(b.path), unix.EBUSY)
		}
	}
	for _, b := range below {
		if len(b.vfs) > 0 {
			if err := n.disableVFs(b); err != nil {
				return err
			}
		}
		if n.devices[filepath.Base(b.path)] == b { // a VF may have gone with its PF
			if err := n.removeFunction(b); err != nil {
				return err
			}
		}
	}
	if len(d.vfs) > 0 {
		if err := n.disableVFs(d); err != nil {
			return err
		}
	}
	return n.removeFunction(d)
}

// below are the functions in a device's directory, the deepest first. What else is there goes
// with the driver of its parent.
func (n *Node) below(d *device) []*device { return n.within(d, "pci", "mdev", "platform") }

// within are the devices of some buses in a device's directory, the deepest first.
func (n *Node) within(d *device, buses ...string) []*device {
	var list []*device
	for _, b := range n.devices {
		if strings.HasPrefix(b.path, d.path+"/") && slices.Contains(buses, b.bus) {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b *device) int { return strings.Compare(b.path, a.path) })
	return list
}

// removeFunction removes one device: unbound, then in the order of device_del the
// entry of the bus, that of the group, the directory.
func (n *Node) removeFunction(d *device) error {
	name := filepath.Base(d.path)
	if d.driver != "" {
		if err := n.unbind(d); err != nil {
			return err
		}
	}
	err := errors.Join(n.unlink("bus/"+d.bus+"/devices/"+name), n.leaveGroup(d), n.withdraw(d.path))
	if err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	delete(n.devices, name)
	return nil
}
