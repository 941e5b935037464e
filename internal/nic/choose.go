package nic

import (
	"slices"

	"kata-device-plugin/internal/nicconfig"
)

// resolve turns what cannot be seen into yes or no, where something tells. What was announced
// comes first: identity is sticky, and a device keeps its place while its interface is in a
// pod. After a restart kubelet's record tells whose a device is that a pod holds. Then
// there is the PF. Otherwise it stays open.
//
// s is nil for a selector that has no features.
func (u *unit) resolve(v verdict, resource string, s *nicconfig.Selector, configured func(string) bool) answer {
	if v.answer != unseen {
		return v.answer
	}
	if u.home != "" {
		return is(u.home == resource && (s == nil || !u.was.Present || claimed(u.was.About, s)))
	}
	if i := slices.IndexFunc(u.held, configured); i >= 0 {
		return is(slices.Contains(u.held, resource))
	}
	return v.guess
}

// claimed says whether a device was announced by a selector with such features: what a
// container is told of it shows them. Selectors with equal ones are as good as each other.
func claimed(about map[string]map[string]string, s *nicconfig.Selector) bool {
	has := func(source string) bool { _, ok := about[source]; return ok }
	return has("rdma") == s.IsRDMA && has("vdpa") == (s.VDPAType != nicconfig.NoVDPA) && has("vhost") == s.NeedVhostNet
}

// choice is what a pool says to a unit.
type choice struct {
	answer   answer
	selector *nicconfig.Selector // that says so; nil for no
	why      verdict             // of the last selector that does not say yes
}

// choose tries the selectors of a pool in their order.
func (p *pool) choose(u *unit, configured func(string) bool) choice {
	var c choice
	for i := range p.Selectors {
		s := &p.Selectors[i]
		v := u.match(s)
		if c.answer = u.resolve(v, p.name, s, configured); c.answer != no {
			c.selector, c.why = s, v
			return c
		}
		c.why = v
	}
	return c
}

// types are the kinds of pools that a unit may be in.
func (u *unit) deviceType() nicconfig.DeviceType {
	switch {
	case u.sf != "":
		return nicconfig.AuxNetDevice
	case base(u.f.Identity) == accelerator:
		return nicconfig.Accelerator
	}
	return nicconfig.NetDevice
}
