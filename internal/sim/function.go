package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"kata-device-plugin/internal/pci"
)

// cpusPerNode is how many CPUs a NUMA node has in local_cpulist. Real numbers vary
// and decide nothing.
const cpusPerNode = 16

// add makes a function appear, without driver, after the bridges above it. Bridges
// in the list have the identity given there, others that of the platform.
func (n *Node) add(f Function, list []Function) error {
	if n.devices[f.Address().String()] != nil {
		return nil // came as the bridge above an earlier one
	}
	if err := n.addBridges(f, list); err != nil {
		return err
	}
	return n.addFunction(f, nil)
}

// addBridges makes the host bridge and the bridges above a function.
func (n *Node) addBridges(f Function, list []Function) error {
	if n.devices[path.Base(path.Dir(f.Path))] != nil {
		return nil
	}
	p, err := pci.ParsePath("devices/" + f.Path)
	if err != nil {
		return err
	}
	root := f.Path[:strings.Index(f.Path, p.Root)+len(p.Root)]
	if err := n.ensureDir("devices/" + root); err != nil {
		return err
	}
	if err := n.ensureFiles("devices/"+root, file{name: "uevent", mode: 0o644}); err != nil {
		return err
	}
	for dir := path.Dir(f.Path); len(dir) > len(root); dir = path.Dir(dir) {
		name := path.Base(dir)
		if n.devices[name] != nil {
			return nil
		}
		if _, err := pci.ParseAddress(name); err != nil {
			continue // a second host bridge, behind an Intel VMD endpoint
		}
		// The nearest bridge missing; adding it adds those above.
		b, listed := find(list, name)
		if !listed {
			b = n.bridgeAt(dir, f)
		}
		if err := n.add(b, list); err != nil || listed {
			return err
		}
		return n.bind(n.devices[name], b.Driver, mode{})
	}
	return nil
}

// find looks for a function by the text of its address.
func find(list []Function, address string) (Function, bool) {
	for _, f := range list {
		if path.Base(f.Path) == address {
			return f, true
		}
	}
	return Function{}, false
}

// bridgeAt is a bridge that a path implies.
func (n *Node) bridgeAt(dir string, below Function) Function {
	b := n.bridge
	if b.Vendor == 0 {
		b = Function{Vendor: 0x8086, Device: 0x352a, SubVendor: 0x8086, Revision: 0x04, LinkSpeed: gen5, LinkWidth: 16}
	}
	b.Path, b.NUMA, b.NoNUMAFile = dir, below.NUMA, below.NoNUMAFile
	if b.Class == 0 {
		b.Class = classBridge
	}
	if b.Driver == "" {
		b.Driver = "pcieport"
	}
	if below.Group != "" {
		b.Group = n.newGroup()
	}
	return b
}

// addFunction makes a function appear. The order is that of device_add in
// drivers/base/core.c: directory, entry of the bus, then, on the bus's notice, the
// entry of the IOMMU group.
func (n *Node) addFunction(f Function, pf *device) error {
	a := f.Address()
	d := &device{path: "devices/" + f.Path, bus: "pci", fn: f, group: f.Group, pf: pf}
	links := map[string]string{"subsystem": "bus/pci"}
	if parent := path.Dir(d.path); n.devices[path.Base(parent)] == nil {
		// A host bridge: that of the root, or a second one behind an Intel VMD endpoint.
		if err := n.ensureDir(parent); err != nil {
			return fmt.Errorf("add function %s: %w", a, err)
		}
	}
	if d.group != "" {
		if err := n.ensureGroup(d.group, ""); err != nil {
			return err
		}
		links["iommu_group"] = "kernel/iommu_groups/" + d.group
	}
	if err := n.publish(d.path, nil, n.attributes(d), links); err != nil {
		return fmt.Errorf("add function %s: %w", a, err)
	}
	err := errors.Join(
		n.link("bus/pci/devices/"+a.String(), d.path),
		n.joinGroup(d),
	)
	if err != nil {
		return fmt.Errorf("add function %s: %w", a, err)
	}
	n.devices[a.String()] = d
	return nil
}

// attributes are the files of a function's directory.
func (n *Node) attributes(d *device) []file {
	f := d.fn
	ro := func(name, text string) file { return file{name: name, mode: 0o444, text: text + "\n"} }
	files := []file{
		ro("vendor", f.Vendor.String()),
		ro("device", f.Device.String()),
		ro("subsystem_vendor", f.SubVendor.String()),
		ro("subsystem_device", f.SubDevice.String()),
		ro("class", f.Class.String()),
		ro("revision", fmt.Sprintf("0x%02x", f.Revision)),
		ro("modalias", modalias(f)),
		ro("irq", irq(d)),
		ro("local_cpulist", n.cpuList(f.NUMA)),
		{name: "config", mode: 0o644, text: configHeader(f), size: configSize(f)},
		{name: "resource", mode: 0o444, text: noResources()},
		{name: "driver_override", mode: 0o644, text: overrideText(d)},
		{name: "enable", mode: 0o644, text: "0\n"},
		{name: "uevent", mode: 0o644, text: pciUevent(d)},
	}
	if !f.NoNUMAFile {
		files = append(files, file{name: "numa_node", mode: 0o644, text: strconv.Itoa(f.NUMA) + "\n"})
	}
	if f.Class.Sub() != classBridge.Sub() {
		files = append(files, file{name: "reset", mode: 0o200})
	}
	if d.pf == nil { // a VF goes by its PF's sriov_numvfs only (kernel.md 3.7)
		files = append(files, file{name: "remove", mode: 0o220}, file{name: "rescan", mode: 0o200})
	}
	if f.LinkSpeed != "" {
		width := strconv.Itoa(f.LinkWidth)
		files = append(files, ro("max_link_speed", f.LinkSpeed), ro("current_link_speed", f.LinkSpeed),
			ro("max_link_width", width), ro("current_link_width", width))
	}
	if f.TotalVFs > 0 {
		files = append(files, sriovFiles(f)...)
	}
	if f.NIC != nil && f.NIC.ACPIIndex > 0 {
		files = append(files, ro("acpi_index", strconv.FormatUint(uint64(f.NIC.ACPIIndex), 10)))
	}
	return files
}

// irq is the line that INTx uses; VFs have none.
func irq(d *device) string {
	if d.pf != nil {
		return "0"
	}
	return "10"
}

// cpuList is local_cpulist: all CPUs for a function of no node.
func (n *Node) cpuList(node int) string {
	first, last := node*cpusPerNode, (node+1)*cpusPerNode-1
	if node < 0 {
		first, last = 0, (n.maxNUMA+1)*cpusPerNode-1
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// modalias is what module loading matches (drivers/pci/pci-sysfs.c).
func modalias(f Function) string {
	return fmt.Sprintf("pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X", uint16(f.Vendor), uint16(f.Device),
		uint16(f.SubVendor), uint16(f.SubDevice), uint8(f.Class>>16), uint8(f.Class>>8), uint8(f.Class))
}

// pciUevent is the function's uevent. Its class has no leading zero and its IDs are
// in capitals, unlike those of the other files.
func pciUevent(d *device) string {
	f, driver := d.fn, ""
	if d.driver != "" {
		driver = "DRIVER=" + d.driver + "\n"
	}
	return fmt.Sprintf("%sPCI_CLASS=%04X\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:%04X\nPCI_SLOT_NAME=%s\nMODALIAS=%s\n",
		driver, uint32(f.Class), uint16(f.Vendor), uint16(f.Device), uint16(f.SubVendor), uint16(f.SubDevice),
		f.Address(), modalias(f))
}

// overrideText is the content of driver_override.
func overrideText(d *device) string {
	if d.override == "" {
		return "(null)\n"
	}
	return d.override + "\n"
}

// noResources is the resource file of a function without BARs: where a function
// lies in the address space is of no use to those who do not map it.
func noResources() string {
	return strings.Repeat("0x0000000000000000 0x0000000000000000 0x0000000000000000\n", 13)
}

// configSize is 256 bytes, or 4096 with PCI Express.
func configSize(f Function) int64 {
	if f.LinkSpeed == "" {
		return 256
	}
	return 4096
}

// configHeader is the start of configuration space: what is of a function's
// identity, little endian, and no capabilities.
func configHeader(f Function) string {
	b := make([]byte, 64)
	put := func(at int, v uint16) { b[at], b[at+1] = byte(v), byte(v>>8) }
	put(0x00, uint16(f.Vendor))
	put(0x02, uint16(f.Device))
	b[0x08], b[0x09], b[0x0a], b[0x0b] = f.Revision, byte(f.Class), byte(f.Class>>8), byte(f.Class>>16)
	if f.Class.Sub() == classBridge.Sub() {
		b[0x0e] = 1 // header type; its layout has no subsystem here
		return string(b)
	}
	put(0x2c, uint16(f.SubVendor))
	put(0x2e, uint16(f.SubDevice))
	return string(b)
}

// ensureDriver makes the directory of a driver, as loading its module does.
func (n *Node) ensureDriver(bus, driver string) error {
	dir := "bus/" + bus + "/drivers/" + driver
	if _, err := os.Lstat(n.sys(dir)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := n.ensureDir("bus/" + bus + "/drivers"); err != nil {
		return err
	}
	files := []file{{name: "bind", mode: 0o200}, {name: "unbind", mode: 0o200}, {name: "uevent", mode: 0o200}}
	if bus == "pci" {
		files = append(files, file{name: "new_id", mode: 0o200}, file{name: "remove_id", mode: 0o200})
	}
	return n.publish(dir, nil, files, nil)
}
