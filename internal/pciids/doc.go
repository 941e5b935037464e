// Package pciids knows what PCI hardware is called: the names of vendors, devices, subsystems
// and classes by their numbers. They are for people to read. Nothing is decided by a name: a
// list is always older than the newest hardware, and names in it are mended from time to time.
//
// The list is that of the PCI ID Project, whole and as it is (pci.ids.gz), under the 3-clause BSD
// license (LICENSE.pci.ids, which is part of the program too: see [License]). It is renewed from
// a file of this machine, which Debian's package pci.ids has as /usr/share/misc/pci.ids:
//
//	go test ./internal/pciids -update=/usr/share/misc/pci.ids
//
// A list that is older or has an odd line is refused. A person whose hardware is newer than
// the embedded list may have a newer one on disk: see [Parse] and [IDs.Version].
package pciids
