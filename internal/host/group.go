package host

import (
	"fmt"
	"io/fs"
	"path"

	"kata-device-plugin/internal/pci"
)

// join reads the function's IOMMU group: the link, and once a look the group itself.
func (l *look) join(r *reader, old *IOMMUGroup) *IOMMUGroup {
	was := ""
	if old != nil {
		was = old.Number
	}
	number, present := l.groupOf(r, was)
	if !present {
		return nil
	}
	if l.fresh[number] {
		return l.next.groups[number]
	}
	g, err := l.group(number)
	if err != nil {
		r.fail("iommu_group", err)
		if g = l.prev.groups[number]; g == nil {
			g = &IOMMUGroup{Number: number}
		}
		return g
	}
	l.next.groups[number] = g
	l.fresh[number] = true
	return g
}

// group lists a group's members, and reads what a companion is bound to.
func (l *look) group(number string) (*IOMMUGroup, error) {
	entries, err := fs.ReadDir(l.src.Sys, "kernel/iommu_groups/"+number+"/devices")
	if err != nil {
		return nil, fmt.Errorf("list IOMMU group %s: %w", number, err)
	}
	addresses := make([]pci.Address, 0, len(entries))
	for _, e := range entries {
		if a, err := pci.ParseAddress(e.Name()); err == nil {
			addresses = append(addresses, a) // anything else has no driver that we could judge
		}
	}
	g := &IOMMUGroup{Number: number, Members: make([]Member, 0, len(addresses))}
	for _, a := range addresses {
		m := Member{Address: a}
		if len(addresses) > 1 {
			err = l.member(&m)
		}
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read member %s of IOMMU group %s: %w", a, number, err)
		}
		g.Members = append(g.Members, m)
	}
	return g, nil
}

// member reads what decides whether a companion leaves DMA ownership to VFIO.
func (l *look) member(m *Member) error {
	dir := pciDevices + "/" + m.Address.String()
	class, err := fs.ReadFile(l.src.Sys, dir+"/class")
	if err != nil {
		return err
	}
	if m.Class, err = pci.ParseClass(string(class)); err != nil {
		return err
	}
	// The VFIO device first: while a driver is unbound the driver's link goes before
	// it, and a member without a driver is harmless, whatever is left of its VFIO device.
	names, err := fs.ReadDir(l.src.Sys, dir+"/vfio-dev")
	if err != nil && !gone(err) {
		return err
	}
	driver, err := fs.ReadLink(l.src.Sys, dir+"/driver")
	switch {
	case err == nil:
		m.Driver, m.VFIO = path.Base(driver), len(names) > 0
	case !gone(err):
		return err
	}
	return nil
}

// cdev reads the state of a function's character device.
func (l *look) cdev(r *reader, link *classLink, driver string, old *Cdev) *Cdev {
	c := &Cdev{Name: link.name}
	if _, noIOMMU := cdevName(link.name); noIOMMU {
		c.State, c.Detail = CdevNoIOMMU, "/sys/class/vfio-dev/"+link.name
		return c
	}
	text, err := fs.ReadFile(r.sys, link.dir+"/vfio-dev/"+link.name+"/dev")
	if gone(err) {
		c.State, c.Detail = CdevNoNumber, "no /sys/class/vfio-dev/"+link.name+"/dev"
		return c
	}
	if err == nil {
		c.Major, c.Minor, err = pci.ParseDevNumber(string(text))
	}
	if err != nil {
		r.fail("vfio-dev/"+link.name+"/dev", err)
		if old == nil || old.Name != link.name {
			c.State, c.Detail = CdevPending, err.Error()
			return c
		}
		if old.State != CdevReady {
			return old
		}
		c.Major, c.Minor = old.Major, old.Minor // the node could be examined all the same
	}
	c.examine(l.nodes, r.bound, driver)
	return c
}

// examine holds the node against what sysfs states.
func (c *Cdev) examine(nodes map[string]DevFile, bound bool, driver string) {
	path := DevicesDir + "/" + c.Name
	n, present := nodes[c.Name]
	switch {
	case !present && !bound:
		c.State, c.Detail = CdevPending, "no node "+path+", and no driver any more"
	case !present:
		c.State, c.Detail = CdevPending, "no node "+path+", but driver "+driver
	case !n.isChar():
		c.State, c.Detail = CdevNotChar, path+" is a "+n.kind()
	case n.Major != c.Major || n.Minor != c.Minor:
		c.State = CdevOtherNumber
		c.Detail = fmt.Sprintf("%s is %d:%d, /sys/class/vfio-dev/%s/dev says %d:%d",
			path, n.Major, n.Minor, c.Name, c.Major, c.Minor)
	case !bound:
		// The driver's link is the first thing to go, and the node the next.
		c.State, c.Detail = CdevPending, "node "+path+", but no driver any more"
	}
}
