package sim

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// MoveToPod moves a device's interfaces into another network namespace, as a CNI plugin
// does, and with rdma its RDMA devices too, which takes RDMA's exclusive mode. The device is
// named by the last element of its directory: a PCI address or the name of a subfunction.
//
// sysfs shows the interfaces and RDMA devices of the namespace that it was mounted in, so
// they vanish: the class link first, then the directory (drivers/base/core.c, device_rename).
// The directory that held them stays, empty. RDMA's nodes are taken away before and made
// anew after that, by the lowest numbers that are free, since the move disables the device
// (drivers/infiniband/core/device.c, rdma_dev_change_netns). Their class has no namespaces
// (uverbs_main.c, user_mad.c), so they are seen everywhere.
func (n *Node) MoveToPod(device string, rdma bool) error {
	return n.run(n.MoveToPodSteps(device, rdma))
}

// MoveToPodSteps is MoveToPod taken apart.
func (n *Node) MoveToPodSteps(device string, rdma bool) ([]Step, error) {
	return n.planMove(device, true, rdma)
}

// MoveToHost undoes MoveToPod. An interface has its index again.
func (n *Node) MoveToHost(device string) error { return n.run(n.MoveToHostSteps(device)) }

// MoveToHostSteps is MoveToHost taken apart.
func (n *Node) MoveToHostSteps(device string) ([]Step, error) {
	return n.planMove(device, false, true)
}

func (n *Node) planMove(name string, away, rdma bool) ([]Step, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.devices[name]
	if d == nil || len(d.nic.interfaces)+len(d.nic.rdma) == 0 {
		return nil, fmt.Errorf("move %s to another namespace: %w", name, unix.ENODEV)
	}
	var steps []Step
	for _, nd := range d.nic.interfaces {
		if nd.away != away {
			steps = append(steps, n.move(&nd.classDevice, &nd.away, away)...)
		}
	}
	for _, r := range d.nic.rdma {
		if rdma && r.away != away {
			steps = append(steps, n.moveRDMA(r, away)...)
		}
	}
	return n.locked(wrap(steps, "move "+name+" to another namespace")), nil
}

// move takes a class device out of the namespace that sysfs shows, or brings it back.
func (n *Node) move(c *classDevice, is *bool, away bool) []Step {
	link, name := "class/"+c.class+"/"+c.name, c.class+"/"+c.name
	here, there := n.sys(c.dir()), n.awayDir(c)
	if away {
		return []Step{
			{link, func() error { return n.unlink(link) }},
			{name, func() error { *is = true; return n.renameDir(here, there) }},
		}
	}
	return []Step{
		{link, func() error { return n.link(link, c.dir()) }},
		{name, func() error { *is = false; return n.renameDir(there, here) }},
	}
}

// renameDir renames a directory, with what is unreadable in it.
func (n *Node) renameDir(from, to string) error {
	for name, aside := range maps.Clone(n.broken) {
		if rest, ok := strings.CutPrefix(name, from+"/"); ok {
			delete(n.broken, name)
			n.broken[to+"/"+rest] = aside
		}
	}
	return os.Rename(from, to)
}

// awayDir is where the directory is that another namespace shows.
func (n *Node) awayDir(c *classDevice) string {
	return filepath.Join(n.dir, scratchDir, "netns."+c.class+"."+c.name)
}

// moveRDMA moves an RDMA device with its nodes. The numbers of the new ones are taken with
// the plan.
func (n *Node) moveRDMA(r *rdmaDevice, away bool) []Step {
	old := r.clients
	var steps []Step
	for _, c := range slices.Backward(old) {
		steps = append(steps, n.dropClassDevice(c)...)
	}
	steps = append(steps, n.dropClassDirs(old)...)
	steps = append(steps, n.move(&r.classDevice, &r.away, away)...)
	n.freeRDMA(r)
	n.takeRDMA(r)
	for _, c := range r.clients {
		steps = append(steps, n.addClassDevice(c)...)
	}
	return steps
}
