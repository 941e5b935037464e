//go:build node

package cluster

import (
	"slices"
	"strconv"
)

// pool is a resource of a machine as its rules make it: functions, handed out whole or in shares.
type pool struct {
	name      string
	functions []string
	shares    int // of each function; 0 is whole
	present   func(id string) bool
}

// units are the IDs under which functions are offered.
func (p *pool) units(functions ...string) (all []string) {
	for _, id := range functions {
		if p.shares == 0 {
			all = append(all, id)
		}
		for n := range p.shares {
			all = append(all, id+"::"+strconv.Itoa(n))
		}
	}
	return all
}

// pools are those of which the machine has hardware.
func (w *worker) pools() (all []pool) {
	onVFIO := func(id string) bool { _, ok := w.Machine.Cdev(w.address(id)); return ok }
	always := func(string) bool { return true }
	for _, p := range []pool{
		{gpu, w.installed(nvidia, threeD), 0, onVFIO},
		{nvswitch, w.installed(nvidia, bridge), 0, onVFIO},
		{hca, w.hcas(), sharesOfHCA, always},
	} {
		if len(p.functions) > 0 {
			all = append(all, p)
		}
	}
	return all
}

// Vendors, and classes of their functions.
const (
	nvidia   = 0x10de
	mellanox = 0x15b3
	threeD   = 0x0302
	bridge   = 0x0680
)

// installed are the functions of a vendor's of a class, whatever their driver.
func (w *worker) installed(vendor uint16, class uint32) (all []string) {
	for _, f := range w.Machine.Functions() {
		if uint16(f.Vendor) == vendor && uint32(f.Class)>>8 == class {
			all = append(all, f.Address().String())
		}
	}
	return all
}

// connectXVF is a VF of a ConnectX, as the configuration of the test selects it.
const connectXVF = 0x101e

// hcas are the functions whose RDMA devices are shared.
func (w *worker) hcas() (all []string) {
	for _, f := range w.Machine.Functions() {
		if f.Vendor == mellanox && f.Device == connectXVF && f.Driver == "mlx5_core" {
			all = append(all, f.Address().String())
		}
	}
	return all
}

// unselected are the network functions that no pool of the configuration has.
func (w *worker) unselected() (all []string) {
	const network = 0x02
	selected := w.hcas()
	for _, f := range w.Machine.Functions() {
		if id := f.Address().String(); uint32(f.Class)>>16 == network && !slices.Contains(selected, id) {
			all = append(all, id)
		}
	}
	return all
}
