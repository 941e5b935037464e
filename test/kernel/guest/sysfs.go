package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"kata-device-plugin/test/kernel/wire"
)

const functions = "/sys/bus/pci/devices/"

// text is a file's content without the end of line, "" when it cannot be read.
func text(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(b), "\n")
}

// put writes to a file of the kernel's, in one call.
func put(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// driver is the name of a function's driver, "" for none.
func driver(address string) string {
	link, err := os.Readlink(functions + address + "/driver")
	if err != nil {
		return ""
	}
	return filepath.Base(link)
}

// cdev is the name of a function's character device, "" for none.
func cdev(address string) string {
	entries, err := os.ReadDir(functions + address + "/vfio-dev")
	if err != nil || len(entries) == 0 {
		return ""
	}
	return entries[0].Name()
}

// owner is the function that a node belongs to, as the kernel has it now.
func owner(node string) string {
	link, err := os.Readlink("/sys/class/vfio-dev/" + filepath.Base(node))
	if err != nil {
		return ""
	}
	return filepath.Base(filepath.Dir(filepath.Dir(link)))
}

// bind gives a function to a driver as tools for virtualization do it.
func (l *lab) bind(address, name string) error {
	if driver(address) != "" {
		if err := l.unbind(address); err != nil {
			return err
		}
	}
	if err := put(functions+address+"/driver_override", name+"\n"); err != nil {
		return fmt.Errorf("override the driver of %s: %w", address, err)
	}
	// drivers_probe says nothing of a driver that refused, nor of a function that has just come and
	// that the kernel offers to no driver yet.
	for tries := 0; driver(address) != name; tries++ {
		if tries == 50 {
			return fmt.Errorf("bind %s to %s: its driver is %q", address, name, driver(address))
		}
		if tries > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		if err := put("/sys/bus/pci/drivers_probe", address); err != nil {
			return fmt.Errorf("bind %s to %s: %w", address, name, err)
		}
	}
	l.did(wire.Step{Do: wire.Bind, Address: address, Driver: name})
	return nil
}

func (l *lab) unbind(address string) error {
	if err := put(functions+address+"/driver/unbind", address); err != nil {
		return fmt.Errorf("unbind %s: %w", address, err)
	}
	l.did(wire.Step{Do: wire.Unbind, Address: address})
	return nil
}

// setVFs writes the number of virtual functions.
func (l *lab) setVFs(pf string, count int, driver string) error {
	if err := put(functions+pf+"/sriov_numvfs", fmt.Sprint(count)); err != nil {
		return fmt.Errorf("set the number of VFs of %s to %d: %w", pf, count, err)
	}
	l.did(wire.Step{Do: wire.VFs, Address: pf, Count: count, Driver: driver})
	return nil
}

// remove takes a function off the bus, and rescan finds it again.
func (l *lab) remove(address string) error {
	if err := put(functions+address+"/remove", "1"); err != nil {
		return fmt.Errorf("remove %s: %w", address, err)
	}
	l.did(wire.Step{Do: wire.Remove, Address: address})
	return nil
}

func (l *lab) rescan(address string) error {
	if err := put("/sys/bus/pci/rescan", "1"); err != nil {
		return fmt.Errorf("rescan the bus for %s: %w", address, err)
	}
	l.did(wire.Step{Do: wire.Add, Address: address})
	return nil
}

// hold opens a function's character device, as a VM does.
func hold(address string) (*os.File, error) {
	f, err := os.OpenFile("/dev/vfio/devices/"+cdev(address), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("hold %s: %w", address, err)
	}
	return f, nil
}

// claim does what a VM does first: it takes the function's IOMMU group for itself. The kernel
// refuses that where a companion's driver has the group.
func claim(address string) error {
	device, err := hold(address)
	if err != nil {
		return err
	}
	defer device.Close()
	iommu, err := os.OpenFile("/dev/iommu", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer iommu.Close()
	const bindIOMMUFD = 0x3b64 + 18 // VFIO_DEVICE_BIND_IOMMUFD, _IO(';', 100 + 18)
	arg := struct{ size, flags, iommu, id uint32 }{size: 16, iommu: uint32(iommu.Fd())}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, device.Fd(), bindIOMMUFD, uintptr(unsafe.Pointer(&arg))); errno != 0 {
		return fmt.Errorf("claim %s: %w", address, errno)
	}
	return nil
}

// loadModules loads the kernel modules that are named.
func (l *lab) loadModules(names ...string) error {
	for _, name := range names {
		f, err := os.Open("/modules/" + name + ".ko")
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), l.orders.Options[name], 0)
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("load the module %s: %w", name, err)
		}
	}
	return nil
}

// unloadModules unloads modules, the last first.
func unloadModules(names ...string) error {
	for _, name := range slices.Backward(names) {
		name = strings.ReplaceAll(name, "-", "_")
		if err := unix.DeleteModule(name, unix.O_NONBLOCK); err != nil {
			return fmt.Errorf("unload the module %s: %w", name, err)
		}
	}
	return nil
}

// vfioModules is what VFIO consists of, in the order of loading.
func vfioModules() []string {
	return []string{"irqbypass", "iommufd", "vfio", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci"}
}
