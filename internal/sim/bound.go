package sim

import "slices"

// Bound are the NVIDIA functions of some classes (base class and subclass, such as 0x0302)
// that have a cdev, by address and sorted. It is what a plugin has to announce, found
// without any of its rules.
func (n *Node) Bound(classes ...uint16) []string {
	ids := []string{}
	for _, f := range n.Functions() {
		_, bound := n.Cdev(f.Address())
		if bound && f.Vendor == 0x10de && slices.Contains(classes, f.Class.Sub()) {
			ids = append(ids, f.Address().String())
		}
	}
	slices.Sort(ids)
	return ids
}

// GPUs are the bound functions that are to be nvidia.com/gpu.
func (n *Node) GPUs() []string { return n.Bound(0x0300, 0x0302) }

// NVSwitches are the bound functions that are to be nvidia.com/nvswitch.
func (n *Node) NVSwitches() []string { return n.Bound(0x0680) }
