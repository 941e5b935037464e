package sim

import (
	"cmp"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// netdev is a network interface that is there.
type netdev struct {
	Interface
	classDevice
	index int
	away  bool // in another network namespace
}

// addInterface plans an interface of a device.
func (n *Node) addInterface(d *device, i Interface) []Step {
	n.ifindex++
	nd := &netdev{Interface: i, index: n.ifindex}
	nd.classDevice = classDevice{parent: d.path, class: "net", name: i.Name, files: nd.attributes(len(d.nic.interfaces))}
	d.nic.interfaces = append(d.nic.interfaces, nd)
	return n.addClassDevice(&nd.classDevice)
}

// attributes are those of net-sysfs.c that somebody reads.
func (nd *netdev) attributes(port int) []file {
	files := []file{
		number("ifindex", nd.index), number("iflink", nd.index),
		number("type", cmp.Or(nd.Type, 1)),
		number("dev_port", port), attribute("dev_id", "0x0"),
		attribute("address", fmt.Sprintf("02:00:00:00:%02x:%02x", nd.index>>8&0xff, nd.index&0xff)),
		attribute("operstate", "up"),
		{name: "uevent", mode: 0o644, text: fmt.Sprintf("INTERFACE=%s\nIFINDEX=%d\n", nd.Name, nd.index)},
	}
	if nd.SwitchID != "" {
		files = append(files, attribute("phys_switch_id", nd.SwitchID))
	}
	if nd.PortName != "" {
		files = append(files, attribute("phys_port_name", nd.PortName))
	}
	return files
}

// RenameInterface renames an interface, as udev and CNI plugins do. The class link goes
// before the directory (drivers/base/core.c, device_rename).
func (n *Node) RenameInterface(from, to string) error { return n.run(n.RenameInterfaceSteps(from, to)) }

// RenameInterfaceSteps is RenameInterface taken apart.
func (n *Node) RenameInterfaceSteps(from, to string) ([]Step, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, err := n.netdev(to); err == nil {
		return nil, fmt.Errorf("rename interface %s to %s: %w", from, to, unix.EEXIST)
	}
	nd, err := n.netdev(from)
	if err != nil {
		return nil, fmt.Errorf("rename interface: %w", err)
	}
	old := nd.classDevice
	return n.locked(wrap([]Step{
		{"class/net/" + to, func() error {
			nd.name, nd.Name = to, to
			nd.files = nd.attributes(0)
			// One rename in the kernel: the link is never missing.
			tmp := n.scratch()
			if err := os.Symlink(linkText("class/net/"+to, nd.dir()), tmp); err != nil {
				return err
			}
			if err := os.Rename(tmp, n.sys("class/net/"+to)); err != nil {
				return err
			}
			return n.unlink("class/net/" + from)
		}},
		{"net/" + to, func() error {
			if err := n.renameDir(n.sys(old.dir()), n.sys(nd.dir())); err != nil {
				return err
			}
			return n.replaceFile(n.sys(nd.dir()+"/uevent"), 0o644, fmt.Sprintf("INTERFACE=%s\nIFINDEX=%d\n", to, nd.index))
		}},
	}, "rename "+from)), nil
}

// netdev finds an interface of the host's namespace.
func (n *Node) netdev(name string) (*netdev, error) {
	for _, d := range n.devices {
		for _, nd := range d.nic.interfaces {
			if nd.Name == name && !nd.away {
				return nd, nil
			}
		}
	}
	return nil, fmt.Errorf("interface %s: %w", name, unix.ENODEV)
}
