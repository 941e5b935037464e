package nicconfig

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/pci"
)

// Selector says which devices a pool takes. Within a list one value needs to match,
// between lists all; a list that is empty does not filter.
type Selector struct {
	// MatchAll says that the selector is meant to filter nothing.
	MatchAll         bool
	Vendors, Devices []pci.ID
	Drivers          []string
	PCIAddresses     []pci.Address
	ACPIIndexes      []uint32
	AuxTypes         []string // of AuxNetDevice; only "sf" is known
	PFNames          []PFName
	RootDevices      []RootDevice
	LinkTypes        []LinkType
	DDPProfiles      []string
	PKeys            []uint16
	// IsRDMA takes only devices with RDMA, and gives their character devices.
	IsRDMA   bool
	VDPAType VDPAType
	// NeedVhostNet gives the vhost-net devices. It filters nothing.
	NeedVhostNet bool
}

// PFName selects VFs or SFs of a PF by the name of its network interface, which is
// compared without case.
type PFName struct {
	Name    string
	Indexes Indexes
}

// RootDevice selects VFs or SFs of a PF by its PCI address.
type RootDevice struct {
	Address pci.Address
	Indexes Indexes
}

// LinkType is the kind of link of a network interface, as netlink calls it.
type LinkType string

// The link types of PCI network controllers.
const (
	Ether      LinkType = "ether"
	InfiniBand LinkType = "infiniband"
)

// VDPAType is the bus driver of a vDPA device.
type VDPAType uint8

// The vDPA types. Without one a device need not be a vDPA device.
const (
	NoVDPA VDPAType = iota
	VhostVDPA
	VirtioVDPA
)

// SharedSelector says which devices a shared pool takes, by the same rules.
type SharedSelector struct {
	MatchAll           bool
	Vendors, DeviceIDs []pci.ID
	Drivers, IfNames   []string
	LinkTypes          []LinkType
}

// selectorRule is a rule for some types of devices.
type selectorRule struct {
	rule
	types []DeviceType
}

// filters counts the fields of a selector that filter, or were meant to: what is wrong
// with them has been reported then.
type filters int

// filter makes a reading function count.
func (f *filters) filter(read func(value)) func(value) {
	return func(v value) {
		f.count(v.kind != list || len(v.items) > 0)
		read(v)
	}
}

// kept are fields of a selector that are judged when all have been read.
type kept struct{ matchAll, vdpaType, auxTypes value }

func (r *reader) selectorRules(s *Selector, f *filters, k *kept) []selectorRule {
	every, network, net := []DeviceType{NetDevice, Accelerator, AuxNetDevice}, []DeviceType{NetDevice, AuxNetDevice}, []DeviceType{NetDevice}
	function := []DeviceType{NetDevice, Accelerator}
	return []selectorRule{
		{rule{key: "vendors", read: f.filter(r.ids(&s.Vendors))}, every},
		{rule{key: "devices", read: f.filter(r.ids(&s.Devices))}, every},
		{rule{key: "drivers", read: f.filter(r.words(&s.Drivers, driverFault))}, every},
		{rule{key: "pciAddresses", read: f.filter(r.addresses(&s.PCIAddresses))}, function},
		{rule{key: "acpiIndexes", read: f.filter(r.acpiIndexes(&s.ACPIIndexes))}, function},
		{rule{key: "auxTypes", read: f.filter(func(v value) { k.auxTypes = v; r.words(&s.AuxTypes, auxFault)(v) })}, []DeviceType{AuxNetDevice}},
		{rule{key: "pfNames", read: f.filter(r.pfNames(&s.PFNames))}, network},
		{rule{key: "rootDevices", read: f.filter(r.rootDevices(&s.RootDevices))}, network},
		{rule{key: "linkTypes", read: f.filter(r.linkTypes(&s.LinkTypes))}, network},
		{rule{key: "ddpProfiles", read: f.filter(r.words(&s.DDPProfiles, blankFault))}, net},
		{rule{key: "pKeys", read: f.filter(r.pKeys(&s.PKeys))}, net},
		{rule{key: "isRdma", read: func(v value) { r.boolean(&s.IsRDMA)(v); f.count(s.IsRDMA || v.kind != boolean) }}, network},
		{rule{key: "vdpaType", read: func(v value) {
			k.vdpaType = v
			choice(r, &s.VDPAType, map[string]VDPAType{"vhost": VhostVDPA, "virtio": VirtioVDPA}, "write vhost or virtio")(v)
			f.count(v.kind != text || v.text != "")
		}}, net},
		{rule{key: "needVhostNet", read: r.boolean(&s.NeedVhostNet)}, network},
		{rule{key: "matchAll", read: func(v value) { k.matchAll = v; r.boolean(&s.MatchAll)(v) }}, function},
	}
}

// count counts a field that filters with some values only.
func (f *filters) count(yes bool) {
	if yes {
		*f++
	}
}

// isSelector says whether a key is a selector of any type.
func isSelector(key string) bool {
	var r reader
	return slices.ContainsFunc(r.selectorRules(&Selector{}, new(filters), &kept{}), func(s selectorRule) bool {
		return strings.EqualFold(s.key, key)
	})
}

// selectors reads one selector or a list of them. Where not all of the pool was
// understood, what is missing in a selector may stand in the wrong place.
func (r *reader) selectors(v value, t DeviceType, understood bool) []Selector {
	if v.kind == object {
		return []Selector{r.selector(v, t, understood)}
	}
	if v.kind != list {
		r.is(v, object, "write {...}, or a list of such")
		return nil
	}
	if len(v.items) == 0 && understood {
		r.fault(v, "has no selector", takeAll)
	}
	var all []Selector
	for i := range v.items {
		all = append(all, r.selector(v.item(i), t, understood))
	}
	return all
}

func (r *reader) selector(v value, t DeviceType, understood bool) Selector {
	var s Selector
	var f filters
	var k kept
	var rules []rule
	all := r.selectorRules(&s, &f, &k)
	for _, known := range all {
		if t == anyDevice || slices.Contains(known.types, t) {
			rules = append(rules, known.rule)
		}
	}
	read, knows := r.object(v, rules, func(key string) (what, remedy string) {
		for _, known := range all {
			if strings.EqualFold(known.key, key) {
				return "is not a selector of " + t.String(), "remove it, or set deviceType to " + known.types[0].String()
			}
		}
		if has(r.poolRules(&Pool{}, &pending{}), key) {
			return "is no selector", "put it beside selectors, not into it"
		}
		return "", ""
	})
	if !read {
		return s
	}
	understood = understood && knows
	switch {
	case t == AuxNetDevice:
		if understood && (k.auxTypes.node == nil || k.auxTypes.kind == list && len(k.auxTypes.items) == 0) {
			r.missing(v, "auxTypes", "is missing or empty", `write ["sf"], the one type of auxiliary device that is known`)
		}
	case s.MatchAll && f > 0:
		r.fault(k.matchAll, "contradicts the selectors beside it", "remove it, or them")
	case understood && f == 0 && !s.MatchAll && (k.matchAll.node == nil || k.matchAll.kind == boolean):
		r.fault(v, "selects nothing, which would take every device of the type", takeAll)
	}
	if s.IsRDMA && s.VDPAType != NoVDPA {
		r.fault(k.vdpaType, "cannot be together with isRdma", "remove one of the two: a vDPA device is not used by RDMA")
	}
	return s
}

func (r *reader) sharedSelectorRules(s *SharedSelector, f *filters, matchAll *value) []rule {
	return []rule{
		{key: "vendors", read: f.filter(r.ids(&s.Vendors))},
		{key: "deviceIDs", read: f.filter(r.ids(&s.DeviceIDs))},
		{key: "drivers", read: f.filter(r.words(&s.Drivers, driverFault))},
		{key: "ifNames", read: f.filter(r.words(&s.IfNames, interfaceFault))},
		{key: "linkTypes", read: f.filter(r.linkTypes(&s.LinkTypes))},
		{key: "matchAll", read: func(v value) { *matchAll = v; r.boolean(&s.MatchAll)(v) }},
	}
}

// sharedSelector reads what an entry of configList selects: an object, or in the old
// form a list of interfaces.
func (r *reader) sharedSelector(pool value, understood bool, selectors, devices value) SharedSelector {
	var s SharedSelector
	var f filters
	var matchAll value
	if selectors.node != nil {
		read, all := r.object(selectors, r.sharedSelectorRules(&s, &f, &matchAll), func(key string) (what, remedy string) {
			switch {
			case isSelector(key):
				return "is a selector of resourceList", "known here are vendors, deviceIDs, drivers, ifNames, linkTypes, matchAll"
			case has(r.sharedRules(&SharedPool{}, &pending{}), key):
				return "is no selector", "put it beside selectors, not into it"
			}
			return "", ""
		})
		understood = understood && read && all
	}
	if devices.node != nil {
		if (devices.kind != list || len(devices.items) > 0) && (f > 0 || s.MatchAll) {
			r.fault(devices, "cannot be together with selectors", "make it ifNames in selectors")
			return s
		}
		f.filter(r.words(&s.IfNames, interfaceFault))(devices)
	}
	switch {
	case s.MatchAll && f > 0:
		r.fault(matchAll, "contradicts the selectors beside it", "remove it, or them")
	case f > 0 || s.MatchAll || !understood || matchAll.node != nil && matchAll.kind != boolean:
	case selectors.node != nil:
		r.fault(selectors, "selects nothing, which would take every RDMA device", takeAll)
	default:
		r.missing(pool, "selectors", "is missing", takeAll)
	}
	return s
}
