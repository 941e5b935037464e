package pci

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Path is the place of a function in the tree of its machine, read from its
// directory below /sys/devices.
type Path struct {
	// Root is the PCIe root complex as the kernel names its host bridge, for
	// example "pci0000:40" (drivers/pci/probe.c, pci_register_host_bridge). It is
	// the value of the standard DRA attribute resource.kubernetes.io/pcieRoot.
	Root string
	// Bridges are the root port and the switch ports above the function, from
	// the root downwards. It is empty for a function on the root bus itself.
	Bridges []Address
	// Address is the function's own.
	Address Address
}

// ParsePath reads a function's directory relative to /sys, for example
// "devices/pci0000:40/0000:40:01.0/0000:41:00.0". It takes a path as sysfs's links
// spell it, without empty, "." or ".." elements. Elements before the host bridge
// are passed over: on device-tree machines it hangs below platform devices. Behind
// an Intel VMD endpoint there is a second host bridge; the first one is the root,
// since that is where all traffic passes, and the VMD endpoint counts as a bridge.
func ParsePath(dir string) (Path, error) {
	rest, more := strings.CutPrefix(dir, "devices/")
	var p Path
	for more {
		var elem string
		elem, rest, more = strings.Cut(rest, "/")
		if a, ok := parseAddress(elem); ok {
			if p.Root == "" {
				break // a function without a host bridge above it
			}
			if !more {
				p.Address = a
				return p, nil
			}
			p.Bridges = append(p.Bridges, a)
			continue
		}
		if isHostBridge(elem) {
			if p.Root != "" && len(p.Bridges) == 0 {
				break // a host bridge without a function above it
			}
			p.Root = cmp.Or(p.Root, elem)
			continue
		}
		if p.Root != "" || elem == "" || elem == "." || elem == ".." {
			break // below a host bridge there is nothing but functions
		}
	}
	return Path{}, fmt.Errorf("%q is not the directory of a PCI function below /sys/devices", dir)
}

// isHostBridge says whether a directory is named "pciDDDD:BB".
func isHostBridge(s string) bool {
	rest, ok := strings.CutPrefix(s, "pci")
	if !ok {
		return false
	}
	domain, bus, ok := strings.Cut(rest, ":")
	if !ok || len(domain) < 4 || len(domain) > 8 || (len(domain) > 4 && domain[0] == '0') || len(bus) != 2 {
		return false
	}
	_, ok1 := hex(domain)
	_, ok2 := hex(bus)
	return ok1 && ok2
}

// ParseDevNumber reads the text of a sysfs attribute dev, "248:3\n": the major and
// minor number of a character or block device.
func ParseDevNumber(s string) (major, minor uint32, err error) {
	a, b, ok := strings.Cut(strings.TrimSuffix(s, "\n"), ":")
	if ok {
		var ok1, ok2 bool
		major, ok1 = decimal(a)
		minor, ok2 = decimal(b)
		ok = ok1 && ok2
	}
	if !ok {
		return 0, 0, fmt.Errorf("%q is not a device number of the form 248:3", s)
	}
	return major, minor, nil
}

// decimal reads a number as the kernel prints it: no sign, no leading zero.
func decimal(s string) (uint32, bool) {
	if len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	v, err := strconv.ParseUint(s, 10, 32)
	return uint32(v), err == nil
}
