package sim

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/pci"
)

// mtty is the directory of the kernel's sample mdev driver.
const mtty = "devices/virtual/mtty/mtty"

// AddMdev adds a mediated device of the sample driver mtty, with a cdev whose
// parent is no PCI function. Its directory has no identity files, and vendor in it
// is a directory: mtty's own group of attributes (kernel.md 3.6).
func (n *Node) AddMdev(uuid string) (number int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	err = errors.Join(
		n.ensureDir(mtty+"/mdev_supported_types/mtty-1", "bus/mdev/devices", "class/mtty", "class/mdev_bus"),
		n.ensureFiles(mtty, file{name: "uevent", mode: 0o644}),
		n.ensureLink(mtty+"/subsystem", "class/mtty"),
		n.ensureLink("class/mtty/mtty", mtty),
		n.ensureLink("class/mdev_bus/mtty", mtty),
	)
	if err != nil {
		return 0, fmt.Errorf("add mdev %s: %w", uuid, err)
	}
	d := &device{path: mtty + "/" + uuid, bus: "mdev"}
	return n.addOther(d, "mtty", []string{"vendor"}, []file{
		{name: "remove", mode: 0o200},
		{name: "uevent", mode: 0o644},
		{name: "vendor/sample_mdev_dev", mode: 0o444, text: "This is MDEV " + uuid + "\n"},
	}, map[string]string{"mdev_type": mtty + "/mdev_supported_types/mtty-1"})
}

// AddPlatformDevice adds a device of the platform bus on vfio-platform, with a
// cdev whose parent is no PCI function and has no vendor.
func (n *Node) AddPlatformDevice(name string) (number int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.ensureDir("devices/platform", "bus/platform/devices"); err != nil {
		return 0, fmt.Errorf("add platform device %s: %w", name, err)
	}
	d := &device{path: "devices/platform/" + name, bus: "platform"}
	return n.addOther(d, "vfio-platform", nil, []file{
		{name: "driver_override", mode: 0o644, text: "(null)\n"},
		{name: "modalias", mode: 0o444, text: "platform:" + name + "\n"},
		{name: "uevent", mode: 0o644, text: otherUevent(d)},
	}, nil)
}

// addOther adds a device that is no PCI function, in a group of its own, and binds
// it to a driver that registers it with VFIO.
func (n *Node) addOther(d *device, driver string, subdirs []string, files []file,
	links map[string]string) (int, error) {
	name := filepath.Base(d.path)
	if !filepath.IsLocal(name) || n.devices[name] != nil {
		return 0, fmt.Errorf("add %s device %s: %w", d.bus, name, unix.EEXIST)
	}
	d.group = n.newGroup()
	all := map[string]string{"subsystem": "bus/" + d.bus, "iommu_group": "kernel/iommu_groups/" + d.group}
	maps.Copy(all, links)
	if err := n.ensureGroup(d.group, ""); err != nil {
		return 0, fmt.Errorf("add %s device %s: %w", d.bus, name, err)
	}
	if err := n.publish(d.path, subdirs, files, all); err != nil {
		return 0, fmt.Errorf("add %s device %s: %w", d.bus, name, err)
	}
	if err := errors.Join(n.link("bus/"+d.bus+"/devices/"+name, d.path), n.joinGroup(d)); err != nil {
		return 0, fmt.Errorf("add %s device %s: %w", d.bus, name, err)
	}
	n.devices[name] = d
	if err := n.bind(d, driver, mode{vfio: true}); err != nil {
		return 0, err
	}
	return d.cdev.number, nil
}

// RemoveOther removes what AddMdev or AddPlatformDevice added.
func (n *Node) RemoveOther(name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.devices[name]
	if d == nil || d.bus == "pci" {
		return fmt.Errorf("remove %s: %w", name, unix.ENODEV)
	}
	return n.removeFunction(d)
}

// AddNoIOMMU binds a function that has no IOMMU group to vfio-pci as Linux 7.3 does
// with enable_unsafe_noiommu_mode: cdev and class entry are called noiommu-vfioN,
// and VFIO invents a group (kernel.md 3.6). Unbind undoes it.
func (n *Node) AddNoIOMMU(a pci.Address) error {
	return n.bindNoIOMMU(a, mode{vfio: true, prefix: "noiommu-"})
}

// AddNoIOMMUWithoutCdev does the same as Linux 6.12 does: VFIO invents a group too, but the
// class entry has the usual name, and neither a dev file nor a node.
func (n *Node) AddNoIOMMUWithoutCdev(a pci.Address) error {
	return n.bindNoIOMMU(a, mode{vfio: true, noDev: true})
}

func (n *Node) bindNoIOMMU(a pci.Address, m mode) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, err := n.function(a)
	if err != nil {
		return fmt.Errorf("bind without IOMMU: %w", err)
	}
	if d.driver != "" || d.held {
		return fmt.Errorf("bind %s without IOMMU: %w", a, unix.EBUSY)
	}
	if d.group != "" {
		return fmt.Errorf("bind %s without IOMMU: it is in IOMMU group %s: %w", a, d.group, unix.EINVAL)
	}
	group := n.newGroup()
	if err := n.ensureGroup(group, "vfio-noiommu"); err != nil {
		return fmt.Errorf("bind %s without IOMMU: %w", a, err)
	}
	steps, err := n.bindSteps(d, "vfio-pci", m)
	if err != nil {
		return err
	}
	for _, s := range steps {
		if s.Name == StepGroup { // the group comes within the probe, after the driver link
			d.group = group
			err := errors.Join(n.link(d.path+"/iommu_group", "kernel/iommu_groups/"+group), n.joinGroup(d))
			if err != nil {
				return fmt.Errorf("bind %s without IOMMU: %w", a, err)
			}
		}
		if err := s.Do(); err != nil {
			return err
		}
	}
	return nil
}

// ensureLink makes a link that may be there already.
func (n *Node) ensureLink(from, to string) error {
	if err := n.link(from, to); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// otherUevent is the uevent file of a device that is no PCI function.
func otherUevent(d *device) string {
	text := ""
	if d.driver != "" {
		text = "DRIVER=" + d.driver + "\n"
	}
	if d.bus == "platform" {
		text += "MODALIAS=platform:" + filepath.Base(d.path) + "\n"
	}
	return text
}
