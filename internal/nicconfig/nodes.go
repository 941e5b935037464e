package nicconfig

// RDMANodes says what becomes of a device that lacks a character device of a kind.
// Every RDMA device needs its uverbs.
type RDMANodes struct{ UMAD, ISSM, UCM, RDMACM NodePolicy }

// NodePolicy is what a pool says about one kind of character device.
type NodePolicy uint8

// The policies.
const (
	Optional NodePolicy = iota // given when it is there
	Required                   // without it the device is not healthy
	Never                      // not given
)

// VFIONodes says which nodes stand for a device that is bound to VFIO. A virtual machine
// opens one of the two.
type VFIONodes uint8

// The choices. GroupNode is the one of a pool that does not say.
const (
	GroupNode VFIONodes = iota // the node of the IOMMU group; without one, the character device
	CdevNode                   // the character device of the device itself
	BothNodes                  // the two of them, for a container that chooses
)

// defaultNodes are what the RDMA shared device plugin insists on.
func defaultNodes() RDMANodes { return RDMANodes{UMAD: Required, RDMACM: Required} }

func (r *reader) rdmaNodes(v value, to *RDMANodes) {
	policy := func(to *NodePolicy) func(value) {
		return choice(r, to, map[string]NodePolicy{"optional": Optional, "required": Required, "never": Never}, "write required, optional or never")
	}
	r.object(v, []rule{
		{key: "umad", read: policy(&to.UMAD)}, {key: "issm", read: policy(&to.ISSM)},
		{key: "ucm", read: policy(&to.UCM)}, {key: "rdmaCM", read: policy(&to.RDMACM)},
	}, nowhere)
}

// vfioNodes reads a pool's choice. Subfunctions are never on VFIO.
func (r *reader) vfioNodes(v value, t DeviceType, to *VFIONodes) {
	if v.node == nil {
		return
	}
	if t == AuxNetDevice {
		r.fault(v, "has no meaning for "+t.String(), "remove it: subfunctions are not bound to VFIO")
		return
	}
	choice(r, to, map[string]VFIONodes{"group": GroupNode, "cdev": CdevNode, "both": BothNodes}, "write group, cdev or both")(v)
}
