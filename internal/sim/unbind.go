package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/pci"
)

// Unbind takes a function that nobody uses from its driver, in the kernel's order.
// A function without a driver gives ENODEV.
func (n *Node) Unbind(a pci.Address) error { return n.run(n.UnbindSteps(a)) }

// UnbindSteps is Unbind taken apart.
func (n *Node) UnbindSteps(a pci.Address) ([]Step, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, err := n.function(a)
	if err != nil {
		return nil, fmt.Errorf("unbind: %w", err)
	}
	steps, err := n.unbindSteps(d)
	return n.locked(steps), err
}

// UnbindBusy starts to unbind a function whose cdev somebody has open. Everything
// in sysfs and the node go at once, but the number stays taken and the group's
// node stays until Release (kernel.md 3.3). A function without a cdev has no
// users; it gives EINVAL.
func (n *Node) UnbindBusy(a pci.Address) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, err := n.function(a)
	if err != nil {
		return fmt.Errorf("unbind: %w", err)
	}
	return n.unbindBusy(d)
}

func (n *Node) unbindBusy(d *device) error {
	if d.driver != "" && d.cdev == nil {
		return fmt.Errorf("unbind %s in use: no VFIO device: %w", filepath.Base(d.path), unix.EINVAL)
	}
	steps, err := n.unbindSteps(d)
	if err != nil {
		return err
	}
	if err := n.run(steps[:len(steps)-1], nil); err != nil {
		return err
	}
	d.held = true
	return nil
}

// Release is the close of the last file of a function that UnbindBusy or
// RemoveBusy left waiting: the number becomes free, the group's node goes with its
// last device, and a removed function vanishes.
func (n *Node) Release(a pci.Address) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, err := n.function(a)
	if err != nil {
		return fmt.Errorf("release: %w", err)
	}
	if !d.held {
		return fmt.Errorf("release %s: nobody waits for it: %w", a, unix.EINVAL)
	}
	if err := n.freeCdev(d, d.cdev); err != nil {
		return fmt.Errorf("release %s: %w", a, err)
	}
	if d.leaving {
		return n.remove(d)
	}
	return nil
}

// unbind does all steps under a lock that is already held.
func (n *Node) unbind(d *device) error { return n.run(n.unbindSteps(d)) }

// unbindSteps plans an unbind: the driver links go before the driver is told
// (drivers/base/dd.c, __device_release_driver), the rest is device_del of
// drivers/base/core.c.
func (n *Node) unbindSteps(d *device) ([]Step, error) {
	name := filepath.Base(d.path)
	if d.held {
		return nil, fmt.Errorf("unbind %s: %w", name, unix.EBUSY)
	}
	if d.driver == "" {
		return nil, fmt.Errorf("unbind %s: %w", name, unix.ENODEV)
	}
	steps := []Step{{StepDriver, func() error { return n.dropDriver(d) }}}
	if c := d.cdev; c != nil {
		dir := d.path + "/vfio-dev"
		steps = append(steps,
			Step{StepNode, func() error { return n.dropNode(c) }},
			Step{StepChar, func() error { return n.unlinkChar(cdevMajor, c.number) }},
			Step{StepDev, func() error { return n.unlink(dir + "/" + c.name + "/dev") }},
			Step{StepClass, func() error { return n.unlink("class/vfio-dev/" + c.name) }},
			Step{StepVFIO, func() error { return n.withdrawIfThere(dir + "/" + c.name) }},
			Step{StepVFIODir, func() error { return n.unlink(dir) }},
			Step{StepGroup, func() error { return n.freeCdev(d, c) }},
		)
	} else {
		more, err := n.dropNIC(d)
		if err != nil {
			return nil, fmt.Errorf("unbind %s: %w", name, err)
		}
		steps = append(steps, more...)
	}
	return wrap(steps, "unbind "+name), nil
}

func (n *Node) dropDriver(d *device) error {
	driver := d.driver
	d.driver = ""
	if err := n.unlink("bus/" + d.bus + "/drivers/" + driver + "/" + filepath.Base(d.path)); err != nil {
		return err
	}
	if err := n.unlink(d.path + "/driver"); err != nil {
		return err
	}
	return n.rewriteState(d, false)
}

func (n *Node) dropNode(c *cdev) error {
	if err := n.rmnod(filepath.Join(n.vfioDevices(), c.name)); err != nil {
		return err
	}
	return n.dropVFIODevices()
}

func (n *Node) withdrawIfThere(dir string) error {
	if err := n.withdraw(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// freeCdev ends a registration with VFIO. A group that VFIO invented goes too.
func (n *Node) freeCdev(d *device, c *cdev) error {
	if err := n.closeGroupNode(d.group); err != nil {
		return err
	}
	if g := n.groups[d.group]; g != nil && g.prefix != "" {
		if err := errors.Join(n.unlink(d.path+"/iommu_group"), n.leaveGroup(d)); err != nil {
			return err
		}
		d.group = ""
	}
	n.cdevs.free(c.number)
	d.cdev, d.held = nil, false
	return nil
}
