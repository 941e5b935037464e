package pci_test

import (
	"strings"
	"testing"

	"kata-device-plugin/internal/pci"
)

func TestParsePath(t *testing.T) {
	for _, tt := range []struct{ what, dir, root, bridges, address string }{
		{"on the root bus", "devices/pci0000:00/0000:00:02.0", "pci0000:00", "", "0000:00:02.0"},
		{"below a root port", "devices/pci0000:40/0000:40:01.0/0000:41:00.0", "pci0000:40", "0000:40:01.0", "0000:41:00.0"},
		{"behind a switch", "devices/pci0000:50/0000:50:01.0/0000:51:00.0/0000:52:00.0/0000:53:00.0",
			"pci0000:50", "0000:50:01.0 0000:51:00.0 0000:52:00.0", "0000:53:00.0"},
		{"another domain", "devices/pci0008:00/0008:00:00.0/0008:01:00.0", "pci0008:00", "0008:00:00.0", "0008:01:00.0"},
		{"device tree", "devices/platform/40000000.pcie/pci0000:00/0000:00:01.0/0000:01:00.0",
			"pci0000:00", "0000:00:01.0", "0000:01:00.0"},
		{"ACPI on Hyper-V", "devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/47505500-0001-0000-3130-444532333330/pci0001:00/0001:00:00.0",
			"pci0001:00", "", "0001:00:00.0"},
		{"VMD", "devices/pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0/10000:01:00.0",
			"pci0000:00", "0000:00:0e.0 10000:00:02.0", "10000:01:00.0"},
		{"on the root bus of a VMD", "devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0",
			"pci0000:00", "0000:00:0e.0", "10000:e0:06.0"},
	} {
		p, err := pci.ParsePath(tt.dir)
		if err != nil {
			t.Errorf("%s: %v", tt.what, err)
			continue
		}
		var bridges []string
		for _, b := range p.Bridges {
			bridges = append(bridges, b.String())
		}
		if p.Root != tt.root || strings.Join(bridges, " ") != tt.bridges || p.Address.String() != tt.address {
			t.Errorf("%s: %+v", tt.what, p)
		}
	}
	for _, dir := range []string{
		"", "/", "devices", "devices/", "devices/pci0000:00", "devices/pci0000:00/",
		"pci0000:00/0000:00:02.0", // the directory is relative to /sys
		"/sys/devices/pci0000:00/0000:00:02.0", "../../devices/pci0000:00/0000:00:02.0",
		"devices/0000:00:02.0", "devices/platform/0000:00:02.0/pci0000:00/0000:00:03.0",
		"devices/pci0000:00/0000:00:02.0/", "devices//pci0000:00/0000:00:02.0", "devices/pci0000:00//0000:00:02.0",
		"devices/../pci0000:00/0000:00:02.0", "devices/./pci0000:00/0000:00:02.0", "devices/pci0000:00/../0000:00:02.0",
		"devices/pci0000:00/0000:00:02.0/vfio-dev", "devices/pci0000:00/0000:00:02.0/vfio-dev/vfio0",
		"devices/pci0000:00/0000:00:02.0/83b8f4f2-509f-382f-3c1e-e6bfe0fa1001", // an mdev of a function
		"devices/pci0000:00/0000:00:02.0/nvme/0000:01:00.0",
		"devices/virtual/mtty/mtty/83b8f4f2-509f-382f-3c1e-e6bfe0fa1001", "devices/platform/serial8250",
		"devices/pci0000:00/pci0001:00/0001:00:00.0",                                                           // no VMD endpoint between
		"devices/pci00000:00/0000:00:02.0", "devices/pci000:00/0000:00:02.0", "devices/pci0000:0/0000:00:02.0", // host bridges
		"devices/pci0000:000/0000:00:02.0", "devices/PCI0000:00/0000:00:02.0", "devices/pci0000-00/0000:00:02.0",
		"devices/pci0000:AF/0000:af:02.0", "devices/pci123456789:00/0000:00:02.0",
		"devices/pci0000:00/0000:00:02.8", "devices/pci0000:00/00:02.0", "devices/pci0000:00/0000:00:0A.0",
	} {
		if p, err := pci.ParsePath(dir); err == nil {
			t.Errorf("%q was read as %+v", dir, p)
		}
	}
}

func TestParseDevNumber(t *testing.T) {
	for text, want := range map[string][2]uint32{
		"248:3\n": {248, 3}, "0:0\n": {0, 0}, "511:1048575": {511, 1048575}, "4294967295:4294967295": {1<<32 - 1, 1<<32 - 1},
	} {
		major, minor, err := pci.ParseDevNumber(text)
		if err != nil || major != want[0] || minor != want[1] {
			t.Errorf("%q: %d:%d, %v", text, major, minor, err)
		}
	}
	for _, text := range []string{
		"", "\n", ":", "248", "248:", ":3", "248:3\n\n", "248:3 ", " 248:3", "+248:3", "248:+3", "-1:3", "248:-3", "0248:3", "248:03",
		"00:0", "248:3:1", "248,3", "0xf8:3", "f8:3", "4294967296:0", "0:4294967296", "2_48:3", "248:3\x00",
	} {
		if major, minor, err := pci.ParseDevNumber(text); err == nil {
			t.Errorf("%q was read as %d:%d", text, major, minor)
		}
	}
}
