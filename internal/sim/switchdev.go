package sim

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/pci"
)

// SetSwitchdev puts the switch of a PF into switchdev mode: its interface is the uplink, a
// port of the switch, and each VF has a representor beside it, whose name is the uplink's
// with _K. Without switchdev mode the representors go and the interface is of no switch. The
// order among them is not verified.
func (n *Node) SetSwitchdev(pf pci.Address, on bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, err := n.function(pf)
	if err != nil {
		return fmt.Errorf("set switchdev mode: %w", err)
	}
	if len(d.nic.interfaces) == 0 || d.nic.interfaces[0].away || d.fn.NIC.SwitchID == "" {
		return fmt.Errorf("set switchdev mode of %s: %w", pf, unix.EOPNOTSUPP)
	}
	uplink := d.nic.interfaces[0]
	if on == (uplink.SwitchID != "") {
		return nil
	}
	if !on {
		if err := n.dropRepresentors(d); err != nil {
			return err
		}
		uplink.SwitchID = ""
		return n.unlink(uplink.dir() + "/phys_switch_id")
	}
	uplink.SwitchID = d.fn.NIC.SwitchID
	if err := n.replaceFile(n.sys(uplink.dir()+"/phys_switch_id"), 0o444, uplink.SwitchID+"\n"); err != nil {
		return err
	}
	return n.addRepresentors(d, len(d.vfs))
}

// addRepresentors adds those of a PF's VFs in switchdev mode. They come before the VFs and
// go after them (drivers/net/ethernet/mellanox/mlx5/core/sriov.c).
func (n *Node) addRepresentors(pf *device, count int) error {
	if len(pf.nic.interfaces) == 0 || pf.nic.interfaces[0].SwitchID == "" {
		return nil
	}
	uplink := pf.nic.interfaces[0]
	for k := range count {
		r := Interface{Name: fmt.Sprintf("%s_%d", uplink.Name, k), SwitchID: uplink.SwitchID, PortName: fmt.Sprintf("pf0vf%d", k)}
		if err := n.run(n.addInterface(pf, r), nil); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) dropRepresentors(pf *device) error {
	var kept []*netdev
	for _, nd := range pf.nic.interfaces {
		if !strings.HasPrefix(nd.PortName, "pf0vf") {
			kept = append(kept, nd)
			continue
		}
		if err := n.run(n.dropClassDevice(&nd.classDevice), nil); err != nil {
			return err
		}
	}
	pf.nic.interfaces = kept
	return nil
}
