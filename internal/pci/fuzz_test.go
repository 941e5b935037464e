package pci_test

import (
	"fmt"
	"strings"
	"testing"

	"kata-device-plugin/internal/pci"
)

func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"0000:41:00.0", "10000:e1:1f.7", "ffffffff:ff:1f.7", "00000:41:00.0", "0000:AF:00.0", "41:00.0", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := pci.ParseAddress(s)
		if err != nil {
			if a != (pci.Address{}) {
				t.Errorf("%q is refused, but gives %v", s, a)
			}
			return
		}
		if a.String() != s {
			t.Errorf("%q is accepted, but is spelled %q", s, a)
		}
	})
}

func FuzzAddress(f *testing.F) {
	f.Add(uint32(0), uint8(0x41), uint8(0), uint8(0))
	f.Add(uint32(0x10000), uint8(0xff), uint8(0x1f), uint8(7))
	f.Add(uint32(0xffffffff), uint8(1), uint8(0x10), uint8(3))
	f.Fuzz(func(t *testing.T, domain uint32, bus, device, function uint8) {
		a := pci.Address{Domain: domain, Bus: bus, Device: device & 0x1f, Function: function & 7}
		b, err := pci.ParseAddress(a.String())
		if err != nil || a != b {
			t.Errorf("%+v is spelled %s, which is %+v, %v", a, a, b, err)
		}
		if want := fmt.Sprintf("%04x:%02x:%02x.%d", a.Domain, a.Bus, a.Device, a.Function); a.String() != want {
			t.Errorf("%s, the kernel says %s", a, want)
		}
	})
}

// chomp is the text without the one line feed that attributes end in.
func chomp(s string) string { return strings.TrimSuffix(s, "\n") }

func FuzzParseAttributes(f *testing.F) {
	for _, s := range []string{"0x10de\n", "0x030200\n", "0xa1\n", "10ca\n", "0x10DE", "248:3\n", "+1:2", "01:2", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := pci.ParseID(s); err == nil && id.String() != chomp(s) {
			t.Errorf("ID %q is accepted, but is spelled %s", s, id)
		}
		if c, err := pci.ParseClass(s); err == nil && c.String() != chomp(s) {
			t.Errorf("class %q is accepted, but is spelled %s", s, c)
		}
		if r, err := pci.ParseRevision(s); err == nil && fmt.Sprintf("0x%02x", r) != chomp(s) {
			t.Errorf("revision %q is accepted, but is %#x", s, r)
		}
		if major, minor, err := pci.ParseDevNumber(s); err == nil && fmt.Sprintf("%d:%d", major, minor) != chomp(s) {
			t.Errorf("device number %q is accepted, but is %d:%d", s, major, minor)
		}
	})
}

func FuzzParsePath(f *testing.F) {
	for _, s := range []string{
		"devices/pci0000:40/0000:40:01.0/0000:41:00.0",
		"devices/platform/40000000.pcie/pci0000:00/0000:00:01.0/0000:01:00.0",
		"devices/pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0/10000:01:00.0",
		"devices/pci0000:00/0000:00:02.0/", "devices//pci0000:00/0000:00:02.0", "devices/pci00000:00/0000:00:02.0", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := pci.ParsePath(s)
		if err != nil {
			if p.Root != "" || p.Bridges != nil || p.Address != (pci.Address{}) {
				t.Errorf("%q is refused, but gives %+v", s, p)
			}
			return
		}
		// What was read, put together, is what was there from the root on, but for
		// further host bridges.
		_, rest, ok := strings.Cut(s, "/"+p.Root+"/")
		if !ok || !strings.HasPrefix(s, "devices/") {
			t.Fatalf("%q is accepted, with root %q", s, p.Root)
		}
		var kept []string
		for elem := range strings.SplitSeq(rest, "/") {
			if !strings.HasPrefix(elem, "pci") {
				kept = append(kept, elem)
			}
		}
		var got []string
		for _, b := range p.Bridges {
			got = append(got, b.String())
		}
		if got = append(got, p.Address.String()); strings.Join(got, "/") != strings.Join(kept, "/") {
			t.Errorf("%q has the functions %v, read were %v", s, kept, got)
		}
	})
}
