package sim

import (
	"path/filepath"
	"strconv"
)

// group is an IOMMU group.
type group struct {
	members int
	users   int // members registered with VFIO, those waiting for release too
	minor   int // of the node, while there are users
	prefix  string
}

// reserveGroup keeps a number from being given to another group.
func (n *Node) reserveGroup(number string) {
	if g, err := strconv.Atoi(number); err == nil {
		n.groupIDs.reserve(g)
	}
}

// newGroup is the lowest number that no group has.
func (n *Node) newGroup() string { return strconv.Itoa(n.groupIDs.take()) }

// ensureGroup makes the directory of a group. With name set it is the kind that
// VFIO invents for a device without an IOMMU.
func (n *Node) ensureGroup(number, name string) error {
	if n.groups[number] != nil {
		return nil
	}
	n.reserveGroup(number)
	files := []file{
		{name: "reserved_regions", mode: 0o444, text: "0x00000000fee00000 0x00000000feefffff msi\n"},
		{name: "type", mode: 0o644, text: "DMA\n"},
	}
	g := &group{}
	if name != "" {
		files = []file{
			{name: "name", mode: 0o444, text: name + "\n"},
			{name: "reserved_regions", mode: 0o444},
			{name: "type", mode: 0o644, text: "unknown\n"},
		}
		g.prefix = "noiommu-"
	}
	if err := n.publish("kernel/iommu_groups/"+number, []string{"devices"}, files, nil); err != nil {
		return err
	}
	n.groups[number] = g
	return nil
}

// joinGroup enters a device in its group's directory.
func (n *Node) joinGroup(d *device) error {
	if d.group == "" {
		return nil
	}
	n.groups[d.group].members++
	return n.link("kernel/iommu_groups/"+d.group+"/devices/"+filepath.Base(d.path), d.path)
}

// leaveGroup undoes joinGroup; the last member takes the group with it.
func (n *Node) leaveGroup(d *device) error {
	g := n.groups[d.group]
	if g == nil {
		return nil
	}
	dir := "kernel/iommu_groups/" + d.group
	if err := n.unlink(dir + "/devices/" + filepath.Base(d.path)); err != nil {
		return err
	}
	if g.members--; g.members > 0 {
		return nil
	}
	number, err := strconv.Atoi(d.group)
	if err != nil {
		return err
	}
	delete(n.groups, d.group)
	n.groupIDs.free(number)
	return n.withdraw(dir)
}

// openGroupNode counts a VFIO device of a group. The first makes the legacy node
// /dev/vfio/G and its class device.
func (n *Node) openGroupNode(number string) error {
	g := n.groups[number]
	if g == nil {
		return nil
	}
	if g.users++; g.users > 1 {
		return nil
	}
	// The minor is an index of its own, not the group's number (kernel.md 3.1).
	g.minor = n.minors.take()
	name := g.prefix + number
	dir := "devices/virtual/vfio/" + name
	err := n.publish(dir, nil, []file{
		{name: "uevent", mode: 0o644, text: n.ueventText(groupMajor, g.minor, "vfio/"+name)},
		{name: "dev", mode: 0o444, text: n.devText(groupMajor, g.minor)},
	}, map[string]string{"subsystem": "class/vfio"})
	if err != nil {
		return err
	}
	if err := n.link("class/vfio/"+name, dir); err != nil {
		return err
	}
	if err := n.linkChar(groupMajor, g.minor, dir); err != nil {
		return err
	}
	return n.mknod(filepath.Join(n.roots.VFIO(), name), 0o600, groupMajor, g.minor)
}

// closeGroupNode undoes openGroupNode.
func (n *Node) closeGroupNode(number string) error {
	g := n.groups[number]
	if g == nil {
		return nil
	}
	if g.users--; g.users > 0 {
		return nil
	}
	name := g.prefix + number
	if err := n.rmnod(filepath.Join(n.roots.VFIO(), name)); err != nil {
		return err
	}
	if err := n.unlinkChar(groupMajor, g.minor); err != nil {
		return err
	}
	if err := n.unlink("class/vfio/" + name); err != nil {
		return err
	}
	n.minors.free(g.minor)
	return n.withdraw("devices/virtual/vfio/" + name)
}
