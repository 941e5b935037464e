package nicconfig

import "math"

// MaxShares is how many shares a pool may have. A message that kubelet accepts (4 MiB) has
// room for twice as many: those that were announced stay in the list when a device fails and
// others take its shares over.
const MaxShares = 1 << 15

// root reads the whole file.
func (r *reader) root(v value, c *Config) {
	const between = "write the pools between [ and ]"
	r.object(v, []rule{
		{key: "resourceList", read: func(v value) { r.each(v, between, func(item value) { r.pool(item, c) }) }},
		{key: "configList", read: func(v value) { r.each(v, between, func(item value) { r.sharedPool(item, c) }) }},
		{key: "periodicUpdateInterval", ignored: "changes of the hardware are noticed when they happen",
			read: func(v value) { r.whole(v, 0, math.MaxInt32) }},
		{key: "kubeletRootDir", ignored: "kubelet's directory is where the pod mounts it"},
	}, func(key string) (what, remedy string) {
		switch {
		case has(r.poolRules(&Pool{}, &pending{}), key):
			return "", "put it into an element of resourceList"
		case has(r.sharedRules(&SharedPool{}, &pending{}), key):
			return "", "put it into an element of configList"
		}
		return "", ""
	})
}

// pending are fields that are read after all others of their pool, because what they
// mean depends on those.
type pending struct{ prefix, name, typ, selectors, devices, hcaMax, shares, vfio value }

// keep stores a field for later.
func keep(to *value) func(value) { return func(v value) { *to = v } }

const generated = "the SR-IOV operator writes it, without a meaning"

func (r *reader) poolRules(p *Pool, later *pending) []rule {
	return []rule{
		{key: "resourceName", read: keep(&later.name)},
		{key: "resourcePrefix", read: keep(&later.prefix)},
		{key: "deviceType", read: keep(&later.typ)},
		{key: "selectors", read: keep(&later.selectors)},
		{key: "excludeTopology", read: r.boolean(&p.ExcludeTopology)},
		{key: "allowHostInUse", read: r.boolean(&p.AllowHostInUse)},
		{key: "additionalInfo", read: func(v value) { p.AdditionalInfo = r.additionalInfo(v) }},
		{key: "vfioNodes", read: keep(&later.vfio)},
		{key: "SelectorObj", ignored: generated},
		{key: "SelectorObjs", ignored: generated},
		{key: "sriovMode", ignored: "VFs are found without being told"},
	}
}

const (
	inSelectors = "put it into selectors: here it would select nothing"
	takeAll     = `select something, or write {"matchAll": true} to take every device of the type`
)

// pool reads an entry of resourceList.
func (r *reader) pool(v value, c *Config) {
	var p Pool
	var later pending
	read, understood := r.object(v, r.poolRules(&p, &later), func(key string) (what, remedy string) {
		switch {
		case isSelector(key):
			return "is a selector", inSelectors
		case has(r.sharedRules(&SharedPool{}, &pending{}), key):
			return "is a key of configList", "remove it, or move the pool to configList"
		}
		return "", ""
	})
	if !read {
		return
	}
	if t := later.typ; t.node != nil {
		if t.kind != text || t.text != "" {
			p.DeviceType = anyDevice
		}
		choice(r, &p.DeviceType, map[string]DeviceType{"netDevice": NetDevice, "accelerator": Accelerator, "auxNetDevice": AuxNetDevice},
			"write netDevice, accelerator or auxNetDevice")(t)
	}
	r.vfioNodes(later.vfio, p.DeviceType, &p.VFIO)
	p.Resource = r.resource(v, understood, later.prefix, later.name, sriovPrefix)
	if later.selectors.node != nil {
		p.Selectors = r.selectors(later.selectors, p.DeviceType, understood)
	} else if understood {
		r.missing(v, "selectors", "is missing", takeAll)
	}
	c.Pools = append(c.Pools, p)
}

func (r *reader) sharedRules(p *SharedPool, later *pending) []rule {
	return []rule{
		{key: "resourceName", read: keep(&later.name)},
		{key: "resourcePrefix", read: keep(&later.prefix)},
		{key: "rdmaHcaMax", read: keep(&later.hcaMax)},
		{key: "sharesPerDevice", read: keep(&later.shares)},
		{key: "selectors", read: keep(&later.selectors)},
		{key: "devices", read: keep(&later.devices)},
		{key: "rdmaNodes", read: func(v value) { r.rdmaNodes(v, &p.Nodes) }},
		{key: "excludeTopology", read: r.boolean(&p.ExcludeTopology)},
		{key: "allowHostInUse", read: r.boolean(&p.AllowHostInUse)},
	}
}

// sharedPool reads an entry of configList.
func (r *reader) sharedPool(v value, c *Config) {
	p := SharedPool{Nodes: defaultNodes(), AllowHostInUse: true}
	var later pending
	read, understood := r.object(v, r.sharedRules(&p, &later), func(key string) (what, remedy string) {
		switch {
		case has(r.sharedSelectorRules(&SharedSelector{}, new(filters), new(value)), key):
			return "is a selector", inSelectors
		case has(r.poolRules(&Pool{}, &pending{}), key):
			return "is a key of resourceList", "remove it, or move the pool to resourceList"
		}
		return "", ""
	})
	if !read {
		return
	}
	if later.hcaMax.node != nil {
		p.RDMAHCAMax = r.count(later.hcaMax, 0)
	}
	if later.shares.node != nil {
		p.SharesPerDevice = r.count(later.shares, 1)
	}
	if later.hcaMax.node == nil && later.shares.node == nil && understood {
		r.missing(v, "rdmaHcaMax", "is missing", "say how many shares the pool has, or with sharesPerDevice how many each device has")
	}
	p.Resource = r.resource(v, understood, later.prefix, later.name, rdmaPrefix)
	p.Selector = r.sharedSelector(v, understood, later.selectors, later.devices)
	c.Shared = append(c.Shared, p)
}

// count reads a number of shares, nil when it is wrong.
func (r *reader) count(v value, least int) *int {
	n, ok := r.whole(v, least, MaxShares)
	if !ok {
		return nil
	}
	return &n
}
