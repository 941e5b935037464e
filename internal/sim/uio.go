package sim

import "strconv"

// addUIO plans the UIO device of a device (drivers/uio/uio.c, __uio_register_device).
func (n *Node) addUIO(d *device) []Step {
	wanted := 0
	if d.fn.NIC != nil {
		wanted = d.fn.NIC.UIO
	}
	k := takeNumber(&n.uios, wanted)
	name := "uio" + strconv.Itoa(k)
	d.nic.uio = &classDevice{
		parent: d.path, class: "uio", name: name,
		files: []file{attribute("name", "uio"), attribute("version", "0.1"), number("event", 0)},
		char:  &charNode{major: uioMajor, minor: k, path: name, mode: 0o600},
	}
	return n.addClassDevice(d.nic.uio)
}
