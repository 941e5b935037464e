package host

import (
	"strconv"
	"strings"
)

// PCIeLink is what a function's link can do, whatever it does at the moment.
type PCIeLink struct {
	// MTs is the rate of a lane in millions of transfers a second (sysfs: max_link_speed):
	// 32000 for 32.0 GT/s. The oldest rate is 2.5 GT/s, so gigatransfers are no whole numbers.
	MTs int
	// Lanes is how wide the link can be (sysfs: max_link_width).
	Lanes int
}

// pcieLink reads what a link can do, until it is known: it is a property of the hardware. A
// function that sleeps (D3cold) cannot be asked and would seem to have lost its link, so what
// was told once stays for as long as the function is there.
//
// Until Linux 6.13 the speed is read from the hardware each time, and of a sleeping function
// all bits are set, which looks like 64 GT/s (drivers/pci/pci.c, pcie_get_speed_cap). The width
// is 63 then, and there is no such width: where one of the two makes no sense, nothing is known.
// The width comes first, because since 6.18 it wakes the function.
func (r *reader) pcieLink(now Identity, old *Function) PCIeLink {
	if old.PCIeLink != (PCIeLink{}) && old.Identity == now {
		return old.PCIeLink
	}
	lanes := optional(r, "max_link_width", parseLanes, 0, 0)
	mts := optional(r, "max_link_speed", parseLinkSpeed, 0, 0)
	if lanes == 0 || mts == 0 {
		return PCIeLink{}
	}
	return PCIeLink{MTs: mts, Lanes: lanes}
}

// parseLanes reads max_link_width. 0 stands for what is no width of a PCIe link: the kernel
// says 255 where it does not know, and 0 where there is no link.
func parseLanes(s string) (int, error) {
	switch text := strings.TrimSuffix(s, "\n"); text {
	case "1", "2", "4", "8", "12", "16", "32":
		return strconv.Atoi(text)
	}
	return 0, nil
}

// parseLinkSpeed reads max_link_speed, "32.0 GT/s PCIe\n". 0 stands for everything else: the
// kernel says Unknown, and has worded it in several ways (drivers/pci/probe.c,
// pci_speed_string). A text that nobody here knows is no reason to doubt the function.
func parseLinkSpeed(s string) (int, error) {
	rate, ok := strings.CutSuffix(strings.TrimSuffix(s, "\n"), " GT/s PCIe")
	whole, tenths, point := strings.Cut(rate, ".")
	if !point {
		tenths = "0"
	}
	if !ok || len(tenths) != 1 || !isNumber(whole) || !isNumber(tenths) {
		return 0, nil
	}
	n, err := strconv.Atoi(whole + tenths)
	return n * 100, err
}
