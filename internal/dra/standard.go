package dra

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"k8s.io/dynamic-resource-allocation/deviceattribute"

	"kata-device-plugin/internal/host"
)

// standard adds the attributes that all drivers share, by the helpers that define them. They
// refuse a domain of more than four digits: such a device has none of these attributes, and is
// unhealthy for the same reason.
func (a attributes) standard(f *host.Function) {
	address, view := f.Address.String(), deviceattribute.WithFS(sysView{f})
	a.add(deviceattribute.GetPCIBusIDAttribute(address))
	a.add(deviceattribute.GetPCIeRootAttributeByPCIBusID(address, view))
	a.add(deviceattribute.GetNUMANodeAttributeByPCIBusID(address, deviceattribute.ScalarAttribute, view))
}

// sysView shows a function of a snapshot as sysfs shows it, as far as the helpers look. What
// they say is then as old as everything else that is said of the device, and the disk is not
// asked a second time. Whatever is above the host bridge, such as the platform devices of a
// machine with a device tree, is not in the view: the helpers do not expect it.
type sysView struct{ f *host.Function }

const pciDevices = "bus/pci/devices/"

// ReadLink implements fs.ReadLinkFS: the function's entry of the PCI bus. Without a root there
// is no link, as the place is not known.
func (v sysView) ReadLink(name string) (string, error) {
	if name != pciDevices+v.f.Address.String() || v.f.Root == "" {
		return "", v.absent("readlink", name)
	}
	elements := []string{"../../../devices", v.f.Root}
	for _, b := range v.f.Bridges {
		elements = append(elements, b.String())
	}
	return strings.Join(append(elements, v.f.Address.String()), "/"), nil
}

// ReadFile implements fs.ReadFileFS, which fs.ReadFile prefers to Open.
func (v sysView) ReadFile(name string) ([]byte, error) {
	if name != pciDevices+v.f.Address.String()+"/numa_node" {
		return nil, v.absent("open", name)
	}
	return []byte(strconv.Itoa(int(v.f.NUMA)) + "\n"), nil
}

// Open implements fs.FS. There are no files to be opened: ReadFile has their content.
func (v sysView) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

// Lstat implements fs.ReadLinkFS.
func (v sysView) Lstat(name string) (fs.FileInfo, error) {
	return nil, &fs.PathError{Op: "lstat", Path: name, Err: errors.ErrUnsupported}
}

func (v sysView) absent(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}
