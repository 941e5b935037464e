// Package cdi keeps this project's CDI specs in a host's CDI directory true: one file
// a resource, whole or not at all, written only when it has to change.
package cdi

import (
	"encoding/json"
	"fmt"
	"slices"
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

// Device is one CDI device: a name and the character devices that it stands for.
type Device struct {
	Name  string // the device ID
	Nodes []Node // at least one
}

// Node is a character device.
type Node struct {
	Path        string // in the container, and on the host unless Host says otherwise
	Host        string // on the host, "" for Path
	Permissions string // of r, w and m
}

// OnHost is the node's place on the host.
func (n Node) OnHost() string {
	if n.Host != "" {
		return n.Host
	}
	return n.Path
}

func (d Device) equal(e Device) bool { return d.Name == e.Name && slices.Equal(d.Nodes, e.Nodes) }

// Kind says what is wrong with a resource's name as a CDI kind, nil when nothing is. kubelet
// accepts more: a CDI class has to begin with a letter.
func Kind(resource string) error {
	vendor, class := parser.ParseQualifier(resource)
	if err := parser.ValidateVendorName(vendor); err != nil {
		return fmt.Errorf("use %s as a CDI kind: %w", resource, err)
	}
	if err := parser.ValidateClassName(class); err != nil {
		return fmt.Errorf("use %s as a CDI kind: %w", resource, err)
	}
	return nil
}

// FileName is the name of a kind's spec file, behind the prefix that is its owner's:
// kata.nvidia.com-gpu.json. It is JSON, since an unquoted PCI address is a number in base 60 to
// some YAML readers.
func FileName(owner, kind string) string {
	return owner + strings.ReplaceAll(kind, "/", "-") + ext
}

// ext ends the names of spec files.
const ext = ".json"

// QualifiedName is how a container runtime is asked for a device.
func QualifiedName(kind, name string) string { return kind + "=" + name }

// mostLegible is how many devices a spec has at most that people may want to read. Larger ones
// are written without white space: every consumer reads them as a whole.
const mostLegible = 256

// encode renders the spec of a kind, and checks it with the CDI library's own rules.
//
// A device has nodes and nothing else. Kata's Rust shim takes every node for a VFIO device
// and wants no other edits; with device numbers in the spec the runtimes would not
// look at the node, and a stale number would open another device; a different path on
// the host breaks the Go shim.
func encode(kind string, devices []Device) ([]byte, error) {
	spec := specs.Spec{Version: Version, Kind: kind, Devices: make([]specs.Device, 0, len(devices))}
	for _, d := range devices {
		dev := specs.Device{Name: d.Name}
		for _, n := range d.Nodes {
			dev.ContainerEdits.DeviceNodes = append(dev.ContainerEdits.DeviceNodes,
				&specs.DeviceNode{Path: n.Path, HostPath: n.Host, Type: "c", Permissions: n.Permissions})
		}
		spec.Devices = append(spec.Devices, dev)
	}
	if err := validate(&spec); err != nil {
		return nil, fmt.Errorf("encode CDI spec of %s: %w", kind, err)
	}
	data, err := json.MarshalIndent(spec, "", "  ")
	if len(devices) > mostLegible {
		data, err = json.Marshal(spec)
	}
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
	if err := Kind(spec.Kind); err != nil {
		return err
	}
	seen := make(map[string]bool, len(spec.Devices))
	for i := range spec.Devices {
		d := &spec.Devices[i]
		if seen[d.Name] {
			return fmt.Errorf("device %s is defined twice", d.Name)
		}
		seen[d.Name] = true
		if len(d.ContainerEdits.DeviceNodes) == 0 {
			return fmt.Errorf("device %s has no node", d.Name) // readers refuse the whole file
		}
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
