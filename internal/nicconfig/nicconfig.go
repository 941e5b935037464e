// Package nicconfig reads the configuration file of the NIC plugin: the pools that
// people wrote for the SR-IOV network device plugin (resourceList) and for the RDMA
// shared device plugin (configList). It turns text into checked, typed values and
// knows nothing of hardware; every problem of a file is reported with its place.
package nicconfig

// Options are what the command line adds to the file.
type Options struct {
	// Prefix is the value of --resource-prefix, "" when it was not given. It stands for
	// the prefix of every pool that names none.
	Prefix string
}

// Config is what a file says. It holds no positions: two files that say the same are
// equal values, so that a file that was only laid out anew is no change.
type Config struct {
	// Pools are the entries of resourceList, in their order: a device belongs to the
	// first pool that takes it.
	Pools []Pool
	// Shared are the entries of configList, in their order.
	Shared []SharedPool
	// Ignored are the keys that are accepted because old files have them.
	Ignored []Ignored
}

// Defaulted lists the resources whose prefix neither the file nor the command line
// names: the historical default is in effect, and pods ask for the full name it makes.
func (c *Config) Defaulted() []Resource {
	var all []Resource
	for _, p := range c.Pools {
		if p.Resource.Origin == Historical {
			all = append(all, p.Resource)
		}
	}
	for _, p := range c.Shared {
		if p.Resource.Origin == Historical {
			all = append(all, p.Resource)
		}
	}
	return all
}

// Ignored is a key that has no effect.
type Ignored struct {
	Path string // the field path, for example resourceList[0].SelectorObj
	Why  string
}

// Pool is one entry of resourceList: devices that are handed out whole.
type Pool struct {
	Resource   Resource
	DeviceType DeviceType
	// Selectors are tried in order; a device needs to match one. There is at least one.
	Selectors []Selector
	// ExcludeTopology keeps NUMA nodes from kubelet.
	ExcludeTopology bool
	// AllowHostInUse declares also the NIC that carries the host's default route.
	AllowHostInUse bool
	// AdditionalInfo is nil when the pool has none: an empty one shows in the variable.
	AdditionalInfo *AdditionalInfo
	// VFIO says which nodes of a device on VFIO a container is given.
	VFIO VFIONodes
}

// SharedPool is one entry of configList: RDMA devices that many pods use at once.
type SharedPool struct {
	Resource Resource
	Selector SharedSelector
	// RDMAHCAMax is how many shares the pool has at most, however many devices it has.
	// It is nil when the file does not say, which it may where SharesPerDevice is given.
	RDMAHCAMax *int
	// SharesPerDevice is how many shares each healthy device adds, nil when RDMAHCAMax
	// alone decides.
	SharesPerDevice *int
	// Nodes says which character devices a device must have.
	Nodes RDMANodes
	// ExcludeTopology keeps NUMA nodes from kubelet.
	ExcludeTopology bool
	// AllowHostInUse declares also the NIC that carries the host's default route. It is so
	// unless the file says false: to share a device takes nothing from the host.
	AllowHostInUse bool
}

// DeviceType says which kind of device a pool holds.
type DeviceType uint8

// The device types. NetDevice is the one of a pool that does not say.
const (
	NetDevice DeviceType = iota
	Accelerator
	AuxNetDevice

	// anyDevice stands for a type that is wrong in the file, which is a problem of its
	// own. No Config has it.
	anyDevice
)

// String is the type as the file spells it.
func (t DeviceType) String() string {
	switch t {
	case NetDevice:
		return "netDevice"
	case Accelerator:
		return "accelerator"
	case AuxNetDevice:
		return "auxNetDevice"
	}
	return "unknown"
}

// File is a file that was read.
type File struct {
	Name string // what its problems are reported with
	Data []byte
}

// Parse reads a file, as ParseFiles does.
func Parse(name string, data []byte, o Options) (*Config, error) {
	return ParseFiles([]File{{name, data}}, o)
}

// ParseFiles reads files as one configuration, the pools of earlier ones first. An error is of
// type Problems and has all of them. Files without any pool are a Config without pools.
func ParseFiles(files []File, o Options) (*Config, error) {
	r := &reader{flag: o.Prefix, flagOK: true, names: map[string]claim{}, files: map[string]claim{}, variables: map[string]claim{}}
	if o.Prefix != "" {
		if what, remedy := prefixFault(o.Prefix); what != "" {
			r.flagOK = false
			r.add(Problem{Path: "--resource-prefix", Value: quoted(o.Prefix), What: what, Remedy: remedy})
		}
	}
	var c Config
	var problems Problems
	for _, f := range files {
		r.file, r.values = f.Name, 0
		if root := r.tree(f.Data); root != nil {
			r.root(value{node: root}, &c)
		}
		problems = append(problems, r.problems.all(f.Name)...)
		r.problems = problemList{}
	}
	c.Ignored = r.ignored
	if len(problems) > 0 {
		return nil, problems
	}
	return &c, nil
}
