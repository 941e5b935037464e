package nic

import (
	"slices"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nicconfig"
	"kata-device-plugin/internal/pci"
)

// Declare applies the pools to a snapshot.
func (r *Rules) Declare(s *host.Snapshot, before declare.Past) declare.Declaration {
	l := &look{
		rules: r, s: s, past: newPast(before), d: declare.Declaration{Others: map[string]finding.Evidence{}, Snapshot: s},
		devices: map[string][]declare.Device{}, whole: map[pci.Address]string{}, shared: map[pci.Address][]string{},
		spare: map[pci.Address]finding.Finding{}, tallies: map[string]*tally{}, rdmaTaken: rdmaNodesOf(s),
	}
	for _, name := range r.Names() {
		l.tallies[name.Resource] = newTally()
	}
	for i := range s.Functions {
		l.function(&s.Functions[i])
	}
	for i := range r.shared {
		l.share(&r.shared[i])
	}
	l.pools()
	l.gone(before.Announced)
	for _, name := range r.Names() {
		if devices := l.devices[name.Resource]; len(devices) > 0 {
			slices.SortFunc(devices, declare.Order)
			l.d.Resources = append(l.d.Resources, declare.Resource{Name: name.Resource, Devices: devices})
		}
	}
	for _, err := range s.Unread {
		l.find(finding.New(finding.Unlisted(), "", finding.Evidence{Path: err.Error()}))
	}
	finding.Sort(l.d.Findings)
	return l.d
}

// look is one application of the rules.
type look struct {
	rules   *Rules
	s       *host.Snapshot
	past    *past
	d       declare.Declaration
	devices map[string][]declare.Device // by resource

	rdmaTaken map[string]bool // the nodes of the RDMA devices that are to be seen

	whole   map[pci.Address]string          // the pool that hands out a function whole
	shared  map[pci.Address][]string        // the pools that share it
	spare   map[pci.Address]finding.Finding // why a function is in no pool of whole devices
	tallies map[string]*tally               // by resource
}

func (l *look) find(f finding.Finding) { l.d.Findings = append(l.d.Findings, f) }

// node says what is wrong with a node that belongs to no device alone, "" for nothing.
func (l *look) node(path string) string {
	if n, ok := l.s.Shared[path]; ok {
		return n.Fault
	}
	return "none"
}

// configured says whether a resource is one of the pools of whole devices.
func (l *look) configured(resource string) bool { return l.rules.pool(resource) != nil }

// function declares a function and its subfunctions.
func (l *look) function(f *host.Function) {
	switch {
	case !f.Known:
		l.find(declare.Unreadable(f))
		return
	case !Wants(f.Identity):
		l.d.Others[f.Address.String()] = finding.Evidence{Path: host.SysPath(f.Address, "class"), Value: f.Class.String()}
		return
	case f.Err != nil:
		l.find(declare.Unreadable(f))
	}
	u := l.unit(f, "")
	if base(f.Identity) == network && len(f.VFs) > 0 {
		l.replaced(u)
	} else {
		l.assign(u)
	}
	if f.Network != nil && base(f.Identity) == network {
		for _, s := range f.Network.Subfunctions {
			l.assign(l.unit(f, s.Name))
		}
	}
}

// unit is a function or subfunction with its past and its PF.
func (l *look) unit(f *host.Function, sf string) *unit {
	u := newUnit(f, sf)
	switch {
	case sf != "":
		u.pf = f
	case f.PhysFn != nil:
		u.pf = find(l.s.Functions, *f.PhysFn)
	}
	l.past.recall(u)
	return u
}

// replaced is for a PF with VFs: it is no device any more, but its VFs may be.
func (l *look) replaced(u *unit) {
	e := finding.Evidence{Path: host.SysPath(u.f.Address, "virtfn0"), Value: u.f.VFs[0].String()}
	var refusals []refusal
	for i := range l.rules.pools {
		p := &l.rules.pools[i]
		if p.DeviceType != nicconfig.NetDevice {
			continue
		}
		c := p.choose(u, l.configured)
		if c.answer == yes {
			l.spare[u.f.Address] = finding.New(finding.ReplacedByVFs(), u.id, e).For(p.name)
			break
		}
		if c.answer == unseen {
			l.spare[u.f.Address] = finding.New(finding.Unseen(), u.id, c.why.fact).For(p.name)
			break
		}
		refusals = append(refusals, refusal{p.name, c.why.fact})
	}
	if _, replaced := l.spare[u.f.Address]; !replaced {
		l.unselected(u, refusals)
	}
	for _, a := range l.past.at[u.id] {
		l.find(finding.New(finding.HasVFs(), u.id, e).For(a.resource))
	}
}

// assign gives a unit to the first pool that takes it.
func (l *look) assign(u *unit) {
	taken, guarded := "", false
	var refusals []refusal
	for i := range l.rules.pools {
		p := &l.rules.pools[i]
		if p.DeviceType != u.deviceType() {
			continue
		}
		c, t := p.choose(u, l.configured), l.tallies[p.name]
		switch {
		case c.answer == no:
			t.refused[c.why.key]++
			refusals = append(refusals, refusal{p.name, c.why.fact})
		case taken != "":
			if c.answer == yes {
				t.lose(taken, u.id)
			}
		case c.answer == unseen:
			// It may be this pool's, so that no later one can have it.
			t.kept++
			l.find(finding.New(finding.Unseen(), u.id, c.why.fact).For(p.name))
			return
		case !p.AllowHostInUse && l.guard(u, p.name):
			t.kept++
			guarded = true
		default:
			taken = p.name
			t.got++
			l.declare(u, p, c.selector)
		}
	}
	if taken == "" && !guarded {
		l.unselected(u, refusals)
	}
	l.deselected(u, taken, refusals)
}

// refusal is why a pool does not take a unit.
type refusal struct {
	resource string
	fact     finding.Evidence
}

// unselected says why a unit is in no pool. A function may be shared all the same.
func (l *look) unselected(u *unit, refusals []refusal) {
	why := finding.New(finding.NotSelected(), u.id)
	if len(refusals) == 0 {
		if len(l.rules.pools)+len(l.rules.shared) == 0 {
			return // a configuration that declares nothing needs no reason for each function
		}
		why.Evidence = []finding.Evidence{{Path: "the configuration", Value: "no pool of deviceType " + u.deviceType().String()}}
	}
	for _, r := range refusals {
		why.Evidence = append(why.Evidence, finding.Evidence{Path: r.resource + " " + r.fact.Path, Value: r.fact.Value})
	}
	if u.sf != "" {
		l.find(why)
		return
	}
	l.spare[u.f.Address] = why
}

// deselected says why a device that was announced as a resource is none of it any more.
func (l *look) deselected(u *unit, now string, refusals []refusal) {
	for _, a := range l.past.at[u.id] {
		i := slices.IndexFunc(refusals, func(r refusal) bool { return r.resource == a.resource })
		switch {
		case a.resource == now:
		case i >= 0:
			l.find(finding.New(finding.Deselected(), u.id, refusals[i].fact).For(a.resource))
		case !l.configured(a.resource):
			l.find(finding.New(finding.Deselected(), u.id, finding.Evidence{Path: "the configuration", Value: "no such pool"}).For(a.resource))
		}
	}
}

// gone names the subfunctions that were announced and are no more: their parent is there,
// and would not be a reason.
func (l *look) gone(before []declare.Resource) {
	for _, r := range before {
		for i := range r.Devices {
			d := &r.Devices[i]
			f := find(l.s.Functions, d.Function.Address)
			if f == nil || f.Network == nil || d.ID == f.Address.String() || (shares{}).add(d.ID) || subfunction(f.Network, d.ID) != nil {
				continue
			}
			l.find(finding.New(finding.Gone(), d.ID, finding.Evidence{Path: "/sys/bus/auxiliary/devices/" + d.ID, Value: "none"}).For(r.Name))
		}
	}
}

// declare makes a unit a device of a pool.
func (l *look) declare(u *unit, p *pool, s *nicconfig.Selector) {
	b := &builder{u: u, resource: p.name, shared: l.node, inUse: l.lenient(u, p.name), rdmaTaken: l.rdmaTaken}
	d := b.device(p, s)
	for _, other := range u.held {
		if other != p.name {
			d.Faults = append(d.Faults, finding.New(finding.HeldAs(), u.id, finding.Evidence{Path: "held as", Value: other}).For(p.name))
		}
	}
	if !l.past.known && u.home != "" && u.home != p.name {
		d.Faults = append(d.Faults, finding.New(finding.HeldAs(), u.id,
			finding.Evidence{Path: "announced as", Value: u.home}, finding.Evidence{Path: "kubelet's record", Value: "unreadable"}).For(p.name))
	}
	l.devices[p.name] = append(l.devices[p.name], d)
	if u.sf == "" {
		l.whole[u.f.Address] = p.name
	}
}

// lenient says whether a device that cannot be seen in full is in use, and not broken. A
// pod that holds it has its RDMA device in its own namespace. Were it unhealthy then, kubelet
// would count one device less while the pod's request still counts, and would refuse the
// running pod when it starts anew (kubelet's cm/devicemanager, devicesToAllocate). Where
// kubelet's record cannot be read, the device stays what it was.
func (l *look) lenient(u *unit, resource string) bool {
	if l.past.known {
		return slices.Contains(u.held, resource)
	}
	return u.was != nil && u.home == resource && u.was.Healthy()
}
