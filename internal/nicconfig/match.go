package nicconfig

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"kata-device-plugin/internal/pci"
)

// words reads a list of strings that are compared as they are.
func (r *reader) words(to *[]string, fault func(string) (what, remedy string)) func(value) {
	return func(v value) {
		add := unique(to)
		r.strings(v, func(s string) (what, remedy string) {
			if what, remedy = fault(s); what == "" {
				add(s)
			}
			return what, remedy
		})
	}
}

// ids reads vendor or device numbers. Upper case, which the old plugins never matched,
// is what lspci prints elsewhere.
func (r *reader) ids(to *[]pci.ID) func(value) {
	return func(v value) {
		add := unique(to)
		r.strings(v, func(s string) (what, remedy string) {
			id, err := pci.ParseID("0x" + strings.ToLower(s))
			if err != nil || len(s) != len("15b3") { // ParseID takes a line feed
				return "is not a number of four hexadecimal digits", `write it as lspci -n does, such as "15b3"`
			}
			add(id)
			return "", ""
		})
	}
}

// address reads a PCI address as people write it.
func address(s string) (a pci.Address, what, remedy string) {
	kernel := strings.ToLower(s)
	if strings.Count(s, ":") == 1 {
		kernel = "0000:" + kernel
	}
	a, err := pci.ParseAddress(kernel)
	if err != nil {
		return a, "is not a PCI address", "write it like 0000:65:00.2"
	}
	return a, "", ""
}

func (r *reader) addresses(to *[]pci.Address) func(value) {
	return func(v value) {
		add := unique(to)
		r.strings(v, func(s string) (what, remedy string) {
			a, what, remedy := address(s)
			if what == "" {
				add(a)
			}
			return what, remedy
		})
	}
}

// acpiIndexes reads the texts of acpi_index, which the kernel prints in decimal.
func (r *reader) acpiIndexes(to *[]uint32) func(value) {
	return func(v value) {
		add := unique(to)
		r.strings(v, func(s string) (what, remedy string) {
			n, err := strconv.ParseUint(s, 10, 32)
			if err != nil || strconv.FormatUint(n, 10) != s {
				return "is not an ACPI index", `write it as acpi_index of the device in sysfs does, such as "101"`
			}
			add(uint32(n))
			return "", ""
		})
	}
}

// pKeys reads partition keys. The kernel prints four digits; the documentation of the
// SR-IOV plugin has "0x1", which never matched.
func (r *reader) pKeys(to *[]uint16) func(value) {
	return func(v value) {
		add := unique(to)
		r.strings(v, func(s string) (what, remedy string) {
			digits, ok := strings.CutPrefix(strings.ToLower(s), "0x")
			n, err := strconv.ParseUint(digits, 16, 16)
			if !ok || err != nil || len(digits) > 4 {
				return "is not a partition key of up to four hexadecimal digits", `write it like "0x8001"`
			}
			add(uint16(n))
			return "", ""
		})
	}
}

func (r *reader) linkTypes(to *[]LinkType) func(value) {
	return func(v value) {
		add := unique(to)
		r.strings(v, func(s string) (what, remedy string) {
			if t := LinkType(s); t == Ether || t == InfiniBand {
				add(t)
				return "", ""
			}
			return "is not a link type", "write ether or infiniband"
		})
	}
}

// pfNames reads names of PFs with numbers of VFs or SFs.
func (r *reader) pfNames(to *[]PFName) func(value) {
	return func(v value) {
		p, spelling := newParts[string](), map[string]string{}
		r.strings(v, func(s string) (what, remedy string) {
			name, list, what, remedy := split(s)
			if what == "" {
				what, remedy = interfaceFault(name)
			}
			if what == "" {
				folded := strings.ToLower(name)
				if _, ok := spelling[folded]; !ok {
					spelling[folded] = name
				}
				p.add(folded, list)
			}
			return what, remedy
		})
		for _, folded := range p.order {
			*to = append(*to, PFName{spelling[folded], p.indexes(folded)})
		}
	}
}

// rootDevices reads addresses of PFs with numbers of VFs or SFs.
func (r *reader) rootDevices(to *[]RootDevice) func(value) {
	return func(v value) {
		p := newParts[pci.Address]()
		r.strings(v, func(s string) (what, remedy string) {
			name, list, what, remedy := split(s)
			if what != "" {
				return what, remedy
			}
			a, what, remedy := address(name)
			if what == "" {
				p.add(a, list)
			}
			return what, remedy
		})
		for _, a := range p.order {
			*to = append(*to, RootDevice{a, p.indexes(a)})
		}
	}
}

// split parts an entry into what names the PF and the numbers behind #. Without # there
// are none.
func split(s string) (name string, list []Range, what, remedy string) {
	name, numbers, ok := strings.Cut(s, "#")
	if ok {
		list, what, remedy = ranges(numbers)
	}
	return name, list, what, remedy
}

// interfaceFault says why a text cannot be the name of a network interface. The kernel's
// rule is dev_valid_name in net/core/dev.c.
func interfaceFault(s string) (what, remedy string) {
	const most = 15 // IFNAMSIZ, less the terminating zero
	switch {
	case s == "":
		return "names no network interface", "write its name as ip link shows it"
	case len(s) > most:
		return fmt.Sprintf("is longer than the %d bytes of an interface name", most), "write the name as ip link shows it, not an alternative name"
	case s == "." || s == ".." || strings.ContainsAny(s, "/:") || strings.ContainsFunc(s, unicode.IsSpace):
		return "is not the name of a network interface", "write the name as ip link shows it, without blanks"
	}
	return "", ""
}

// driverFault says why a text cannot be the name of a driver's directory in sysfs.
func driverFault(s string) (what, remedy string) {
	if s == "" || s == "." || s == ".." || strings.Contains(s, "/") || strings.ContainsFunc(s, unicode.IsSpace) {
		return "is not the name of a driver", "write it as lspci -k does, such as vfio-pci"
	}
	return "", ""
}

func auxFault(s string) (what, remedy string) {
	if s != "sf" {
		return "is not a type of auxiliary device that is known here", "write sf"
	}
	return "", ""
}

func blankFault(s string) (what, remedy string) {
	if strings.TrimSpace(s) != s || s == "" {
		return "is empty, or has blanks around it", "write the name as the package does"
	}
	return "", ""
}
