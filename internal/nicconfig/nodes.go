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
