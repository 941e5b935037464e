// Package pci holds the identities of PCI functions: address, vendor and device
// numbers, class, and the place in the tree of roots and bridges. It parses the
// texts that the Linux kernel shows in sysfs and nothing else; it reads no file.
package pci

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Address names one PCI function: domain, bus, device and function. The zero
// value is 0000:00:00.0, which is a host bridge on most machines; code that needs
// "no address" says so beside it.
type Address struct {
	// Domain is the PCI segment. It is 16 bits wide in ACPI, but Linux numbers
	// host bridges without a segment (Intel VMD) from 0x10000 upwards.
	Domain   uint32
	Bus      uint8
	Device   uint8 // 0 to 0x1f
	Function uint8 // 0 to 7
}

// ParseAddress reads an address in the kernel's own spelling (pci_setup_device in
// drivers/pci/probe.c, format "%04x:%02x:%02x.%d"): lower-case hexadecimal, never
// without the domain, which has four digits or, above 0xffff, as many as it needs.
func ParseAddress(s string) (Address, error) {
	a, ok := parseAddress(s)
	if !ok {
		return Address{}, fmt.Errorf("%q is not a PCI address of the form 0000:41:00.0", s)
	}
	return a, nil
}

func parseAddress(s string) (Address, bool) {
	// The tail ":bb:dd.f" has a fixed length; what stands before it is the domain.
	const tail = len(":bb:dd.f")
	n := len(s) - tail
	if n < 4 || n > 8 || (n > 4 && s[0] == '0') {
		return Address{}, false
	}
	t := s[n:]
	if t[0] != ':' || t[3] != ':' || t[6] != '.' {
		return Address{}, false
	}
	domain, ok1 := hex(s[:n])
	bus, ok2 := hex(t[1:3])
	dev, ok3 := hex(t[4:6])
	fn, ok4 := hex(t[7:])
	if !ok1 || !ok2 || !ok3 || !ok4 || dev > 0x1f || fn > 7 {
		return Address{}, false
	}
	return Address{Domain: domain, Bus: uint8(bus), Device: uint8(dev), Function: uint8(fn)}, true
}

// hex reads lower-case hexadecimal digits, at most eight of them.
func hex(s string) (uint32, bool) {
	var v uint32
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint32(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint32(c-'a'+10)
		default:
			return 0, false
		}
	}
	return v, len(s) > 0 && len(s) <= 8
}

// String is the kernel's spelling, for example 0000:41:00.0.
func (a Address) String() string {
	b, _ := a.AppendText(make([]byte, 0, 16))
	return string(b)
}

// Label is the address where colons and dots are not allowed, as in DNS labels and the IDs of elements of a
// page: 0000-41-00-0.
func (a Address) Label() string { return strings.NewReplacer(":", "-", ".", "-").Replace(a.String()) }

// ParseLabel reads what Label writes.
func ParseLabel(s string) (Address, error) {
	domain, rest, _ := strings.Cut(s, "-")
	if len(rest) == len("bb-dd-f") && rest[2] == '-' && rest[5] == '-' {
		if a, ok := parseAddress(domain + ":" + rest[:2] + ":" + rest[3:5] + "." + rest[6:]); ok {
			return a, nil
		}
	}
	return Address{}, fmt.Errorf("%q is not a PCI address of the form 0000-41-00-0", s)
}

// AppendText implements encoding.TextAppender.
func (a Address) AppendText(b []byte) ([]byte, error) {
	const digits = "0123456789abcdef"
	if a.Domain > 0xffff {
		b = strconv.AppendUint(b, uint64(a.Domain), 16)
	} else {
		b = append(b, digits[a.Domain>>12], digits[a.Domain>>8&0xf], digits[a.Domain>>4&0xf], digits[a.Domain&0xf])
	}
	return append(b, ':', digits[a.Bus>>4], digits[a.Bus&0xf], ':',
		digits[a.Device>>4&0xf], digits[a.Device&0xf], '.', digits[a.Function&0xf]), nil
}

// MarshalText implements encoding.TextMarshaler.
func (a Address) MarshalText() ([]byte, error) { return a.AppendText(nil) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Address) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAddress(string(text))
	return err
}

// Compare orders addresses by domain, bus, device and function, as lspci does.
func (a Address) Compare(b Address) int {
	return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Bus, b.Bus),
		cmp.Compare(a.Device, b.Device), cmp.Compare(a.Function, b.Function))
}

// ID is a vendor, device, subsystem vendor or subsystem device number.
type ID uint16

// ParseID reads the text of a sysfs identity attribute, "0x10de\n".
func ParseID(s string) (ID, error) {
	v, ok := attribute(s, 4)
	if !ok {
		return 0, fmt.Errorf("%q is not a PCI identity of the form 0x10de", s)
	}
	return ID(v), nil
}

// String is sysfs's spelling without the line feed, for example 0x10de.
func (id ID) String() string { return fmt.Sprintf("0x%04x", uint16(id)) }

// Class is the 24-bit class code: base class, subclass, programming interface.
type Class uint32

// ParseClass reads the text of the sysfs attribute class, "0x030200\n".
func ParseClass(s string) (Class, error) {
	v, ok := attribute(s, 6)
	if !ok {
		return 0, fmt.Errorf("%q is not a PCI class of the form 0x030200", s)
	}
	return Class(v), nil
}

// Sub is base class and subclass without the programming interface: 0x0302 for
// class 0x030200.
func (c Class) Sub() uint16 { return uint16(c >> 8) }

// String is sysfs's spelling without the line feed, for example 0x030200.
func (c Class) String() string { return fmt.Sprintf("0x%06x", uint32(c)) }

// ParseRevision reads the text of the sysfs attribute revision, "0xa1\n".
func ParseRevision(s string) (uint8, error) {
	v, ok := attribute(s, 2)
	if !ok {
		return 0, fmt.Errorf("%q is not a PCI revision of the form 0xa1", s)
	}
	return uint8(v), nil
}

// attribute reads "0x", exactly n lower-case digits and at most one line feed.
func attribute(s string, n int) (uint32, bool) {
	s = strings.TrimSuffix(s, "\n")
	if len(s) != n+2 || s[:2] != "0x" {
		return 0, false
	}
	return hex(s[2:])
}
