package host

import (
	"slices"

	"kata-device-plugin/internal/pci"
)

const pciDevices = "bus/pci/devices"

// functions fills in Functions: what the PCI bus lists and what the class links name.
func (l *look) functions() {
	addresses := l.addresses()
	l.next.Functions = make([]Function, 0, len(l.prev.Functions))
	for _, a := range addresses {
		link := l.cdevs[a]
		before, seen := l.prev.Function(a)
		switch {
		case seen && l.same(before, link):
			l.kept = append(l.kept, len(l.next.Functions))
			l.add(*before)
		case !l.full && link == nil && l.prev.unwanted[a]:
			l.next.unwanted[a] = true
		default:
			l.read(a, link, before)
		}
	}
	l.refreshGroups()
}

// addresses are all functions of the bus, sorted, with those that have a class link:
// while a function comes or goes it may be in one listing only.
func (l *look) addresses() []pci.Address {
	names, err := l.list(pciDevices)
	addresses := make([]pci.Address, 0, len(names)+len(l.cdevs))
	for _, name := range names {
		if a, err := pci.ParseAddress(name); err == nil {
			addresses = append(addresses, a)
		}
	}
	if err != nil {
		for a := range l.prev.index {
			addresses = append(addresses, a)
		}
		for a := range l.prev.unwanted {
			addresses = append(addresses, a)
		}
	}
	slices.SortFunc(addresses, pci.Address.Compare)
	listed := len(addresses)
	for a := range l.cdevs {
		if _, ok := slices.BinarySearchFunc(addresses[:listed], a, pci.Address.Compare); !ok {
			addresses = append(addresses, a)
		}
	}
	slices.SortFunc(addresses, pci.Address.Compare) // quick where nothing was added
	return slices.Compact(addresses)
}

// same says whether a glance may take a function over as it was.
func (l *look) same(before *Function, link *classLink) bool {
	if l.full || before.Err != nil || (before.Cdev == nil) != (link == nil) {
		return false
	}
	return link == nil || before.Cdev.State == CdevReady && before.Cdev.Name == link.name &&
		l.next.prints[link.name] == l.prev.prints[link.name]
}

func (l *look) add(f Function) {
	l.next.index[f.Address] = len(l.next.Functions)
	l.next.Functions = append(l.next.Functions, f)
	if f.Group != nil {
		if _, ok := l.next.groups[f.Group.Number]; !ok {
			l.next.groups[f.Group.Number] = f.Group
		}
	}
}

// read reads one function and files it.
func (l *look) read(a pci.Address, link *classLink, before *Function) {
	l.touch(before)
	f, verdict := l.function(a, link, before)
	switch verdict {
	case unwanted:
		l.next.unwanted[a] = true
	case left:
		l.next.torn = l.next.torn || link != nil
	case found:
		l.touch(&f)
		l.add(f)
	}
}

// touch marks a function's group as one to read again.
func (l *look) touch(f *Function) {
	if f != nil && f.Group != nil {
		l.dirty[f.Group.Number] = true
	}
}

// arrived marks the group of a function that nobody asked for, and that is new on the
// bus: it is a companion of others now.
func (l *look) arrived(r *reader) {
	if number, present := l.groupOf(r, ""); present {
		l.dirty[number] = true
	}
}

// groupOf reads which group a function is in. Where that cannot be read, it may be a member of
// any: whatever a glance took over is read again.
func (l *look) groupOf(r *reader, old string) (string, bool) {
	errs := len(r.errs)
	number, present := r.link("iommu_group", old)
	l.allDirty = l.allDirty || len(r.errs) > errs
	return number, present
}

// departed marks the groups that had a function that nobody asked for, and that has left.
func (l *look) departed() {
	gone := map[pci.Address]bool{}
	for a := range l.prev.unwanted {
		if _, ok := l.next.index[a]; !ok && !l.next.unwanted[a] {
			gone[a] = true
		}
	}
	if len(gone) == 0 {
		return
	}
	for number, g := range l.prev.groups {
		if slices.ContainsFunc(g.Members, func(m Member) bool { return gone[m.Address] }) {
			l.dirty[number] = true
		}
	}
}

// refreshGroups reads again what a glance took over, where a member of the group was
// read: the member may have changed its driver. Functions that have left count too.
func (l *look) refreshGroups() {
	if len(l.kept) == 0 {
		return
	}
	l.departed()
	for i := range l.prev.Functions {
		f := &l.prev.Functions[i]
		if _, ok := l.next.index[f.Address]; !ok {
			l.touch(f)
			l.allDirty = l.allDirty || f.Err != nil // its group may never have been read
		}
	}
	for _, i := range l.kept {
		before := l.next.Functions[i]
		if before.Group == nil || !l.allDirty && !l.dirty[before.Group.Number] {
			continue
		}
		f, verdict := l.function(before.Address, l.cdevs[before.Address], &before)
		if verdict == found {
			l.next.Functions[i] = f
		} else {
			l.next.torn = true // the next look finds it gone from the listings
		}
	}
}
