// Package cdi keeps this project's CDI specs in a host's CDI directory true: one file
// a resource, whole or not at all, written only when it has to change.
package cdi

import (
	"encoding/json"
	"fmt"
	"strings"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/pkg/parser"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

// Version is the only CDI version that every consumer of our specs accepts. Device
// names that begin with a digit need at least 0.5.0, and Kata's Go shim refuses
// everything above 0.6.0: not only the file, but each CDI device on the node.
const Version = "0.5.0"

// Ceiling is the latest CDI version that Kata's Go shim accepts.
const Ceiling = "0.6.0"

// Device is one CDI device: a name and the character device that it stands for.
type Device struct {
	Name string // the device ID, a PCI address
	Node string // its path, the same on the host and in the container
}

// FileName is the name of a kind's spec file: kata.nvidia.com-gpu.json. It is JSON,
// since an unquoted PCI address is a number in base 60 to some YAML readers.
func FileName(kind string) string {
	return "kata." + strings.ReplaceAll(kind, "/", "-") + ".json"
}

// QualifiedName is how a container runtime is asked for a device.
func QualifiedName(kind, name string) string { return kind + "=" + name }

// encode renders the spec of a kind, and checks it with the CDI library's own rules.
//
// A device is exactly one node. Kata's Rust shim takes every node for a VFIO device
// and wants no other edits; with device numbers in the spec the runtimes would not
// look at the node, and a stale number would open another device; a different path on
// the host breaks the Go shim.
func encode(kind string, devices []Device) ([]byte, error) {
	spec := specs.Spec{Version: Version, Kind: kind, Devices: make([]specs.Device, 0, len(devices))}
	for _, d := range devices {
		spec.Devices = append(spec.Devices, specs.Device{
			Name: d.Name,
			ContainerEdits: specs.ContainerEdits{DeviceNodes: []*specs.DeviceNode{
				{Path: d.Node, Type: "c", Permissions: "rw"},
			}},
		})
	}
	if err := validate(&spec); err != nil {
		return nil, fmt.Errorf("encode CDI spec of %s: %w", kind, err)
	}
	data, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode CDI spec of %s: %w", kind, err)
	}
	return append(data, '\n'), nil
}

// validate is what the library does when it reads a spec, a spec that needs a later
// version than it declares included, without the detour through
// its YAML parser, which is the dearest part of a change on a node with many devices.
func validate(spec *specs.Spec) error {
	if err := specs.ValidateVersion(spec); err != nil {
		return err
	}
	vendor, class := parser.ParseQualifier(spec.Kind)
	if err := parser.ValidateVendorName(vendor); err != nil {
		return err
	}
	if err := parser.ValidateClassName(class); err != nil {
		return err
	}
	seen := make(map[string]bool, len(spec.Devices))
	for i := range spec.Devices {
		d := &spec.Devices[i]
		if seen[d.Name] {
			return fmt.Errorf("device %s is defined twice", d.Name)
		}
		seen[d.Name] = true
		if err := parser.ValidateDeviceName(d.Name); err != nil {
			return err
		}
		edits := cdi.ContainerEdits{ContainerEdits: &d.ContainerEdits}
		if err := edits.Validate(); err != nil {
			return fmt.Errorf("device %s: %w", d.Name, err)
		}
	}
	return nil
}
