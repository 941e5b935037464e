package nic

import (
	"slices"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nicconfig"
)

// Again judges a single function, read anew. What only the whole node can tell stays as it
// was: the PF, the host's routes, and the nodes that belong to no device alone, of which the
// caller sees itself whether they are there. What a pod may be using is not excused: the
// device is about to be handed out.
func (r *Rules) Again(f *host.Function, was *declare.Device, resource string) declare.Device {
	if !Wants(f.Identity) {
		return absent(f, was, resource, finding.New(finding.ChangedClass(), was.ID,
			finding.Evidence{Path: host.SysPath(f.Address, "class"), Value: f.Class.String()}))
	}
	if p := r.sharedPool(resource); p != nil {
		return p.again(f, was)
	}
	p := r.pool(resource)
	if p == nil {
		return absent(f, was, resource, finding.New(finding.Deselected(), was.ID, finding.Evidence{Path: "the configuration", Value: "no such pool"}))
	}
	sf := ""
	if p.DeviceType == nicconfig.AuxNetDevice {
		sf = was.ID
	}
	u := newUnit(f, sf)
	switch {
	case sf != "" && subfunction(u.seen, sf) == nil:
		return absent(f, was, resource, finding.New(finding.Gone(), was.ID, finding.Evidence{Path: "/sys/bus/auxiliary/devices/" + sf, Value: "none"}))
	case sf == "" && base(f.Identity) == network && len(f.VFs) > 0:
		return absent(f, was, resource, finding.New(finding.HasVFs(), was.ID, finding.Evidence{Path: host.SysPath(f.Address, "virtfn0"), Value: f.VFs[0].String()}))
	}
	u.remember(&was.Function)
	u.was, u.home = was, resource
	c := p.choose(u, func(string) bool { return false })
	if c.answer != yes || p.DeviceType != u.deviceType() {
		return absent(f, was, resource, finding.New(finding.Deselected(), was.ID, c.why.fact))
	}
	b := &builder{u: u, resource: resource, shared: from(was)}
	d := b.device(p, c.selector)
	if name := was.About[eswitch]; name != nil {
		d.About[eswitch] = name
	}
	return d
}

// from takes the nodes that came with a device for there, and no other.
func from(was *declare.Device) func(string) string {
	return func(path string) string {
		if slices.ContainsFunc(was.With, func(n declare.Node) bool { return n.Path == path }) {
			return ""
		}
		return "none"
	}
}

func absent(f *host.Function, was *declare.Device, resource string, why finding.Finding) declare.Device {
	return declare.Device{ID: was.ID, Function: *f, Faults: []finding.Finding{why.For(resource)}}
}
