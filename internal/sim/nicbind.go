package sim

import "slices"

// nicState is what a device has of its NIC now.
type nicState struct {
	interfaces []*netdev
	rdma       []*rdmaDevice
	uio        *classDevice
}

// nicSteps makes what a driver makes of a device. The order of mlx5_core is interfaces, then
// RDMA devices (drivers/net/ethernet/mellanox/mlx5/core/dev.c, mlx5_adev_devices); that of
// other drivers with both is not verified. Numbers are taken with the plan.
func (n *Node) nicSteps(d *device, driver string) ([]Step, error) {
	n.forget(d)
	switch {
	case isUIODriver(driver):
		return n.addUIO(d), nil
	case d.fn.NIC == nil || !isNetDriver(driver):
		return nil, nil
	case driver == "virtio-pci":
		return n.addVirtio(d)
	}
	var steps []Step
	for _, i := range d.fn.NIC.Interfaces {
		steps = append(steps, n.addInterface(d, i)...)
	}
	for _, r := range d.fn.NIC.RDMA {
		steps = append(steps, n.addRDMA(d, r)...)
	}
	return steps, nil
}

// forget gives back the numbers of a plan that was not carried out, or is undone.
func (n *Node) forget(d *device) {
	for _, r := range d.nic.rdma {
		n.freeRDMA(r)
		delete(n.rdmaNames, r.Name)
	}
	if d.nic.uio != nil {
		n.uios.free(d.nic.uio.char.minor)
	}
	d.nic = nicState{}
}

// dropNIC undoes nicSteps, and what was added since. VFs go first, then vDPA devices, then
// what the function has itself, subfunctions last (drivers/net/ethernet/mellanox/mlx5/core,
// remove_one in main.c, mlx5_unregister_device in dev.c).
func (n *Node) dropNIC(d *device) ([]Step, error) {
	var steps []Step
	if d.fn.NIC != nil && isNetDriver(d.driver) && len(d.vfs) > 0 {
		steps = append(steps, Step{"sriov_numvfs", func() error { return n.disableVFs(d) }})
	}
	first, err := n.dropChildren(d, "vdpa", "virtio")
	if err != nil {
		return nil, err
	}
	last, err := n.dropChildren(d, "auxiliary")
	if err != nil {
		return nil, err
	}
	return slices.Concat(steps, first, n.dropOwn(d), last), nil
}

// dropOwn removes the class devices of a device, and the directories that held them.
func (n *Node) dropOwn(d *device) []Step {
	var steps []Step
	var all []*classDevice
	for _, r := range slices.Backward(d.nic.rdma) {
		steps = append(steps, n.dropRDMA(r)...)
		all = slices.Concat(all, r.clients, []*classDevice{&r.classDevice})
	}
	for _, i := range slices.Backward(d.nic.interfaces) {
		steps = append(steps, n.dropClassDevice(&i.classDevice)...)
		all = append(all, &i.classDevice)
	}
	if d.nic.uio != nil {
		steps = append(steps, n.dropClassDevice(d.nic.uio)...)
		all = append(all, d.nic.uio)
	}
	if len(all) == 0 {
		return nil
	}
	return slices.Concat(steps, n.dropClassDirs(all), []Step{{StepNumbers, func() error { n.forget(d); return nil }}})
}
