package sim

import (
	"fmt"
	"path"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/pci"
)

// SF is a subfunction.
type SF struct {
	ID     int    // of the auxiliary device
	Number uint32 // sfnum
	NIC    *NIC
}

// AddSF adds a subfunction to a PF that is on mlx5_core, and returns the name of its
// auxiliary device. Its interfaces and RDMA devices are its own
// (drivers/net/ethernet/mellanox/mlx5/core/sf/dev/dev.c).
func (n *Node) AddSF(pf pci.Address, sf SF) (name string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name = "mlx5_core.sf." + strconv.Itoa(sf.ID)
	d, err := n.parent(pf, name, "mlx5_core")
	if err != nil {
		return "", err
	}
	c := &device{path: d.path + "/" + name, bus: "auxiliary", fn: Function{NIC: sf.NIC}}
	steps, err := n.addChild(c, "mlx5_core.sf", attribute("sfnum", strconv.FormatUint(uint64(sf.Number), 10)))
	return name, n.run(steps, err)
}

// AddVDPA adds a vDPA device to a function that is on mlx5_core, on vhost_vdpa, virtio_vdpa
// or no driver.
func (n *Node) AddVDPA(parent pci.Address, name, driver string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, err := n.parent(parent, name, "mlx5_core")
	if err != nil {
		return err
	}
	return n.run(n.addChild(&device{path: d.path + "/" + name, bus: "vdpa"}, driver))
}

// RemoveChild removes what AddSF or AddVDPA added.
func (n *Node) RemoveChild(name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.devices[name]
	if d == nil || d.bus != "auxiliary" && d.bus != "vdpa" {
		return fmt.Errorf("remove %s: %w", name, unix.ENODEV)
	}
	return n.run(n.dropChild(d))
}

// parent is a function that can have a child of that name.
func (n *Node) parent(a pci.Address, child, driver string) (*device, error) {
	d, err := n.function(a)
	if err != nil {
		return nil, fmt.Errorf("add %s: %w", child, err)
	}
	if d.driver != driver {
		return nil, fmt.Errorf("add %s to %s on driver %q: %w", child, a, d.driver, unix.EOPNOTSUPP)
	}
	if n.devices[child] != nil {
		return nil, fmt.Errorf("add %s to %s: %w", child, a, unix.EEXIST)
	}
	return d, nil
}

// addVirtio plans the virtio device of a function and its driver, whose interfaces are the
// function's (drivers/virtio/virtio.c, register_virtio_device).
func (n *Node) addVirtio(d *device) ([]Step, error) {
	name := "virtio" + strconv.Itoa(n.virtios.take())
	return n.addChild(&device{path: d.path + "/" + name, bus: "virtio", fn: Function{NIC: d.fn.NIC}}, "virtio_net", attribute("device", "0x0001"))
}

// addChild plans a device of another bus in a function's directory: the directory, the entry
// of the bus, the driver.
func (n *Node) addChild(c *device, driver string, files ...file) ([]Step, error) {
	name := path.Base(c.path)
	steps := []Step{
		{name, func() error {
			n.devices[name] = c
			files := append(files, file{name: "uevent", mode: 0o644, text: otherUevent(c)})
			return n.publish(c.path, nil, files, map[string]string{"subsystem": "bus/" + c.bus})
		}},
		{"bus/" + c.bus + "/devices/" + name, func() error { return n.link("bus/"+c.bus+"/devices/"+name, c.path) }},
	}
	if err := n.ensureDir("bus/" + c.bus + "/devices"); err != nil || driver == "" {
		return steps, err
	}
	bind, err := n.bindSteps(c, driver, mode{})
	if err != nil || driver != "vhost_vdpa" {
		return append(steps, bind...), err
	}
	// drivers/vhost/vdpa.c, vhost_vdpa_probe. It has no class.
	k := n.vhosts.take()
	node := "vhost-vdpa-" + strconv.Itoa(k)
	c.vhost = &classDevice{parent: c.path, name: node, char: &charNode{major: vdpaMajor, minor: k, path: node, mode: 0o600}}
	return slices.Concat(steps, bind, n.addClassDevice(c.vhost)), nil
}

// dropChild undoes addChild.
func (n *Node) dropChild(c *device) ([]Step, error) {
	name := path.Base(c.path)
	var steps []Step
	if c.driver != "" {
		unbind, err := n.unbindSteps(c)
		if err != nil {
			return nil, err
		}
		steps = unbind
	}
	if c.vhost != nil {
		steps = append(steps, n.dropClassDevice(c.vhost)...)
	}
	return append(steps,
		Step{"bus/" + c.bus + "/devices/" + name, func() error { return n.unlink("bus/" + c.bus + "/devices/" + name) }},
		Step{name, func() error {
			n.freeChild(c)
			delete(n.devices, name)
			return n.withdrawIfThere(c.path)
		}}), nil
}

// freeChild gives back the numbers in a child's names.
func (n *Node) freeChild(c *device) {
	if c.vhost != nil {
		n.vhosts.free(c.vhost.char.minor)
	}
	if c.bus == "virtio" {
		if k, err := strconv.Atoi(path.Base(c.path)[len("virtio"):]); err == nil {
			n.virtios.free(k)
		}
	}
}

// dropChildren removes the children of a function that are on some buses.
func (n *Node) dropChildren(d *device, buses ...string) ([]Step, error) {
	var steps []Step
	for _, c := range n.within(d, buses...) {
		drop, err := n.dropChild(c)
		if err != nil {
			return nil, err
		}
		steps = append(steps, drop...)
	}
	return steps, nil
}
