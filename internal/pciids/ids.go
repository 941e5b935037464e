package pciids

import (
	"compress/gzip"
	_ "embed" // the list and its license
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"kata-device-plugin/internal/pci"
)

// maxSize bounds what is read of a list, which people may name on a command line. The list has
// less than 2 MiB after 25 years.
const maxSize = 16 << 20

//go:embed pci.ids.gz
var compressed string

//go:embed LICENSE.pci.ids
var license string

// License is the notice that comes with the embedded list. Whoever passes on a program with the
// list in it has to pass on the notice as well.
func License() string { return license }

// IDs is a list of names. It does not change, and any number of goroutines may read it.
type IDs struct {
	text    string
	version string
	// Each index has the places of names in the text, by number.
	vendors, devices, bases, classes index
}

// Open reads the embedded list. It takes some milliseconds and 2 MB of memory, so whoever needs
// no names does without it, and whoever does keeps it.
func Open() (*IDs, error) {
	r, err := gzip.NewReader(strings.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("decompress the embedded list of PCI IDs: %w", err)
	}
	// A gzip file ends in the size of what is in it.
	size := binary.LittleEndian.Uint32([]byte(compressed[len(compressed)-4:]))
	text, err := read(r, int(min(size, maxSize)))
	if err != nil {
		return nil, fmt.Errorf("decompress the embedded list of PCI IDs: %w", err)
	}
	return parse(text)
}

// Parse reads a list in the form of the file pci.ids. Lines that are not of the form are left
// out, with all that hangs below them, and counted in an [OddLinesError]: the list is then
// there beside the error, and good for the other names. With any other error there is no list.
func Parse(r io.Reader) (*IDs, error) {
	text, err := read(r, 0)
	if err != nil {
		return nil, fmt.Errorf("read a list of PCI IDs: %w", err)
	}
	return parse(text)
}

// read takes in a whole text, whose size may be known.
func read(r io.Reader, size int) (string, error) {
	var b strings.Builder
	b.Grow(size)
	n, err := io.Copy(&b, io.LimitReader(r, maxSize+1))
	if err == nil && n > maxSize {
		err = errors.New("it has more than 16 MiB: name a file pci.ids, which has less than 2")
	}
	return b.String(), err
}

// Version is the date of the list as it states it, such as 2023.04.10, or "" if it states none.
// Of two versions the later one is the greater string.
func (ids *IDs) Version() string { return ids.version }

// Vendor is the name of a vendor, or "" if the list does not have it.
func (ids *IDs) Vendor(vendor pci.ID) string { return ids.name(ids.vendors, uint32(vendor)) }

// Device is the name of a vendor's device, or "" if the list does not have it.
func (ids *IDs) Device(vendor, device pci.ID) string {
	return ids.name(ids.devices, pair(uint32(vendor), uint32(device)))
}

// Subsystem is the name of the board or system that a device is built into, or "" if the list
// does not have it.
func (ids *IDs) Subsystem(vendor, device, subVendor, subDevice pci.ID) string {
	at, ok := ids.devices.find(pair(uint32(vendor), uint32(device)))
	if !ok {
		return ""
	}
	// There are few below one device, so the text itself is their index.
	_, rest, more := strings.Cut(ids.text[at:], "\n")
	for more {
		var line string
		line, rest, more = strings.Cut(rest, "\n")
		below, ok := strings.CutPrefix(line, "\t\t")
		if !ok && !skipped(line) {
			break
		}
		if key, name, ok := subsystem(below); ok && key == pair(uint32(subVendor), uint32(subDevice)) {
			return strings.Clone(name)
		}
	}
	return ""
}

// Class is the name of a class without its programming interface, such as "3D controller" for
// 0x030200. Where the list does not have the subclass it is the name of the base class, such as
// "Display controller", and "" if it does not have that either.
func (ids *IDs) Class(class pci.Class) string {
	if name := ids.name(ids.classes, uint32(class.Sub())); name != "" {
		return name
	}
	return ids.name(ids.bases, uint32(class.Sub()>>8))
}

// name copies a name out of the text: who keeps a name should not keep the whole list with it.
func (ids *IDs) name(x index, key uint32) string {
	at, ok := x.find(key)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(ids.text[at:], "\n")
	return strings.Clone(name)
}
