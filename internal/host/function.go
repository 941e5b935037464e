package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"kata-device-plugin/internal/pci"
)

// verdict is what became of the attempt to read one function.
type verdict uint8

const (
	found    verdict = iota // it belongs into the snapshot
	unwanted                // it is there, and nobody asked for such a function
	left                    // it went away while it was read
)

// function reads one function. link is nil when it has no VFIO device, before when
// no earlier look knew it.
func (l *look) function(a pci.Address, link *classLink, before *Function) (Function, verdict) {
	old := Function{NUMA: NoNode}
	if before != nil {
		old = *before
	}
	f := Function{Known: old.Known}
	r := &reader{sys: l.src.Sys}
	if err := r.place(&f, a, link); gone(err) {
		return f, left
	} else if err != nil {
		if l.prev.unwanted[a] {
			return f, unwanted
		}
		// That the class does not list it was read: it has no VFIO device now.
		old.Address, old.Cdev, old.Err = a, nil, err
		if old.Network != nil {
			n := *old.Network // relate fills in what is not the function's own
			old.Network = &n
		}
		return old, found
	}
	r.identity(&f, &old)
	if link == nil && !r.left && l.passOver(a, f.Identity, r.errs) {
		if !l.full && !l.prev.unwanted[a] {
			l.arrived(r)
		}
		return f, unwanted
	}
	r.facts(&f, &old, link)
	if l.src.PCIeLink != nil && l.src.PCIeLink(f.Identity) {
		f.PCIeLink = r.pcieLink(f.Identity, &old)
	}
	f.Group = l.join(r, old.Group)
	if link != nil {
		f.Cdev = l.cdev(r, link, f.Driver, old.Cdev)
	}
	if l.src.Network != nil && l.src.Network(f.Identity) {
		f.Network = l.network(r, &f, &old, link)
	}
	if r.left {
		return f, left
	}
	l.next.torn = l.next.torn || r.torn
	if f.Err = errors.Join(r.errs...); f.Err == nil {
		f.Known = true
	}
	return f, found
}

// passOver says whether nobody asked for a function without a VFIO device. Where its
// identity could not be read, it stays what it was.
func (l *look) passOver(a pci.Address, id Identity, errs []error) bool {
	if len(errs) > 0 {
		return l.prev.unwanted[a]
	}
	return l.src.Wanted != nil && !l.src.Wanted(id)
}

// reader reads the attributes of one function. What cannot be read keeps the value
// that the look before gave it, and is remembered as an error.
type reader struct {
	sys   fs.FS
	dir   string // relative to /sys
	errs  []error
	left  bool // a file that every function has was not there
	torn  bool // something else is on its way in or out
	bound bool // there is a link to a driver, though it may be unreadable
}

// place finds the function's directory, through the class link or the bus's list.
func (r *reader) place(f *Function, a pci.Address, link *classLink) error {
	if link != nil {
		f.Path, r.dir = link.path, link.dir
		return nil
	}
	target, err := fs.ReadLink(r.sys, pciDevices+"/"+a.String())
	if err != nil {
		return fmt.Errorf("find %s: %w", a, err)
	}
	r.dir = strings.TrimPrefix(target, "../../../")
	if f.Path, err = pci.ParsePath(r.dir); err != nil {
		return fmt.Errorf("find %s: %w", a, err)
	}
	return nil
}

func (r *reader) identity(f, old *Function) {
	f.Vendor = required(r, "vendor", pci.ParseID, old.Vendor)
	f.Device = required(r, "device", pci.ParseID, old.Device)
	f.Class = required(r, "class", pci.ParseClass, old.Class)
	f.Revision = required(r, "revision", pci.ParseRevision, old.Revision)
	f.SubVendor = required(r, "subsystem_vendor", pci.ParseID, old.SubVendor)
	f.SubDevice = required(r, "subsystem_device", pci.ParseID, old.SubDevice)
}

func (r *reader) facts(f, old *Function, link *classLink) {
	f.NUMA = optional(r, "numa_node", parseNode, old.NUMA, NoNode)
	f.VFs = r.vfs(old.VFs)
	f.Driver, r.bound = r.link("driver", old.Driver)
	physfn, present := r.link("physfn", "")
	f.PhysFn = old.PhysFn
	if !present {
		// Of a VF that is on its way out the kernel removes physfn before it unbinds the
		// driver (drivers/pci/iov.c, pci_iov_remove_virtfn). It is not a whole device then.
		if link == nil || old.Cdev == nil || old.Cdev.Name != link.name {
			f.PhysFn = nil
		}
	} else if a, err := pci.ParseAddress(physfn); err == nil {
		f.PhysFn = &a
	} else if physfn != "" {
		r.fail("physfn", err)
	}
}

// required reads an attribute that every function has.
func required[T any](r *reader, name string, parse func(string) (T, error), old T) T {
	v, err := read(r, name, parse)
	switch {
	case gone(err):
		r.left = true
	case err != nil:
		r.fail(name, err)
		return old
	}
	return v
}

// optional reads an attribute whose absence is an answer.
func optional[T any](r *reader, name string, parse func(string) (T, error), old, absent T) T {
	v, err := read(r, name, parse)
	switch {
	case gone(err):
		return absent
	case err != nil:
		r.fail(name, err)
		return old
	}
	return v
}

func read[T any](r *reader, name string, parse func(string) (T, error)) (T, error) {
	text, err := fs.ReadFile(r.sys, r.dir+"/"+name)
	if err != nil {
		var none T
		return none, err
	}
	return parse(string(text))
}

// link reads the base name of a link's target, and whether there is a link.
func (r *reader) link(name, old string) (string, bool) {
	target, err := fs.ReadLink(r.sys, r.dir+"/"+name)
	switch {
	case gone(err):
		return "", false
	case err != nil:
		r.fail(name, err)
		return old, true
	}
	return path.Base(target), true
}

func (r *reader) fail(name string, err error) {
	r.errs = append(r.errs, fmt.Errorf("read /sys/%s/%s: %w", r.dir, name, err))
}

// vfs lists the VFs of a PF by its links to them. The file sriov_numvfs says how many they
// are, but to read it takes the function's device lock (drivers/pci/iov.c,
// sriov_numvfs_show), and an unbind holds that for as long as a VM keeps the device open: the
// reader would hang with it, and could not even be killed.
func (r *reader) vfs(old []pci.Address) []pci.Address {
	var all []pci.Address
	for n := 0; ; n++ {
		name := "virtfn" + strconv.Itoa(n)
		target, err := fs.ReadLink(r.sys, r.dir+"/"+name)
		if gone(err) {
			return all
		}
		var a pci.Address
		if err == nil {
			a, err = pci.ParseAddress(path.Base(target))
		}
		if err != nil {
			r.fail(name, err)
			return old
		}
		all = append(all, a)
	}
}

// parseNode reads numa_node. Every negative number means unknown.
func parseNode(s string) (Node, error) {
	text := strings.TrimSuffix(s, "\n")
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || strconv.FormatInt(n, 10) != text {
		return NoNode, fmt.Errorf("%q is not a NUMA node", s)
	}
	return max(Node(n), NoNode), nil
}
