package nic

import (
	"fmt"
	"slices"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

func compare(a, b pci.Address) int { return a.Compare(b) }

// use is why the host uses a unit. A subfunction is free while the host uses its parent or
// another one, but not the other way round.
func (l *look) use(u *unit) (host.Use, bool) {
	for _, use := range l.s.Uses(u.f.Address) {
		own := func(i host.Interface) bool { return i.Name == use.Interface }
		if u.sf == "" || slices.ContainsFunc(u.interfaces(), own) {
			return use, true
		}
	}
	return host.Use{}, false
}

// guard says whether the host uses a unit itself, so that no pod may have it. Where that
// cannot be known, what has an interface here is not free.
func (l *look) guard(u *unit, resource string) bool {
	if l.s.Links == nil {
		if l.s.LinksErr == nil || !u.visible() {
			return false
		}
		l.tallies[resource].unknown++
		return true
	}
	use, used := l.use(u)
	if !used {
		return false
	}
	e := []finding.Evidence{{Path: "default route", Value: fmt.Sprintf("%s, table %d, on %s", use.Default.Family, use.Default.Table, use.Via)}}
	if use.Via != use.Interface {
		e = append(e, finding.Evidence{Path: "which is above", Value: use.Interface})
	}
	l.find(finding.New(finding.HostInUse(), u.id, e...).For(resource))
	return true
}
