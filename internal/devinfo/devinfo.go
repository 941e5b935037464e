// Package devinfo keeps the device-info files by which a network plugin learns what a
// device is: one for each device that was handed out, as the Device Information
// Specification 1.1.0 of the Network Plumbing Working Group says. Multus reads them when
// it sets up a pod's network, also when a sandbox is made anew, long after Allocate.
package devinfo

import (
	"encoding/json"
	"fmt"
	"strings"

	"kata-device-plugin/internal/pci"
)

// Directory is where the specification has the files of device plugins.
const Directory = "/var/run/k8s.cni.cncf.io/devinfo/dp"

// Version is that of the specification.
const Version = "1.1.0"

// Info is what is said of a device. One of the two is set.
type Info struct {
	PCI  *PCI
	VDPA *VDPA
}

// PCI is a device that its user sees as a PCI function or a network interface.
type PCI struct {
	Address string `json:"pci-address"`
	// VhostNet is the path of the vhost-net node.
	VhostNet string `json:"vhost-net,omitempty"`
	// RDMADevice has the names of all RDMA devices, with commas between them.
	RDMADevice string `json:"rdma-device,omitempty"`
	// PFAddress is the PF of a VF, and RepresentorDevice the interface that stands for the
	// VF at the PF's switch.
	PFAddress         string `json:"pf-pci-address,omitempty"`
	RepresentorDevice string `json:"representor-device,omitempty"`
}

// VDPA is a vDPA device.
type VDPA struct {
	ParentDevice string `json:"parent-device"` // its name on the vdpa bus
	Driver       string `json:"driver"`        // vhost or virtio
	// Path is the vhost node. A virtio device has none; the specification's path of its
	// directory in sysfs was never written by anybody.
	Path              string `json:"path,omitempty"`
	Address           string `json:"pci-address,omitempty"`
	PFAddress         string `json:"pf-pci-address,omitempty"`
	RepresentorDevice string `json:"representor-device,omitempty"`
}

// MarshalJSON writes the map that the specification calls device-info.
func (i Info) MarshalJSON() ([]byte, error) {
	file := struct {
		Type    string `json:"type"`
		Version string `json:"version"`
		PCI     *PCI   `json:"pci,omitempty"`
		VDPA    *VDPA  `json:"vdpa,omitempty"`
	}{"pci", Version, i.PCI, i.VDPA}
	if i.VDPA != nil {
		file.Type = "vdpa"
	}
	return json.Marshal(file)
}

const suffix = "-device.json"

// FileName is the name of a device's file.
func FileName(resource, device string) string {
	return begin(resource) + device + suffix
}

func begin(resource string) string { return strings.ReplaceAll(resource, "/", "-") + "-" }

// device is the ID that a file of a resource is about. Only PCI functions have files, so
// that the file of a.b/c-d is never taken for one of a.b/c.
func device(resource, name string) (string, bool) {
	middle, ok := strings.CutPrefix(name, begin(resource))
	id, ok2 := strings.CutSuffix(middle, suffix)
	_, err := pci.ParseAddress(id)
	return id, ok && ok2 && err == nil
}

// check refuses what would be a file that Sync does not find again.
func check(resource, id string, info Info) error {
	if _, ok := device(resource, FileName(resource, id)); !ok {
		return fmt.Errorf("%q of %s is no PCI function", id, resource)
	}
	if (info.PCI == nil) == (info.VDPA == nil) {
		return fmt.Errorf("the information of %s is of no type, or of two", id)
	}
	return nil
}
