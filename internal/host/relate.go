package host

import (
	"errors"
	"fmt"
	"slices"

	"kata-device-plugin/internal/pci"
)

// relate fills in what a VF has from its PF, once all functions are there.
func (l *look) relate() {
	functions := l.next.Functions
	index := map[pci.Address]int{}
	for i := range functions {
		for k, vf := range functions[i].VFs {
			index[vf] = k
		}
		if functions[i].Network != nil {
			l.profile(&functions[i])
		}
	}
	for i := range functions {
		f := &functions[i]
		if f.Network == nil || f.PhysFn == nil {
			continue
		}
		if k, listed := index[f.Address]; listed {
			f.Network.VFIndex = k
		}
		if pf, ok := l.next.Function(*f.PhysFn); ok && pf.Network != nil {
			f.Network.Profile = pf.Network.Profile
		}
	}
}

// relateTo does that for one function that was read anew. What is not its own is as old as
// the snapshot.
func (l *look) relateTo(f *Function, s *Snapshot) {
	if f.Network == nil {
		return
	}
	if f.PhysFn == nil {
		if before, ok := s.Function(f.Address); ok && before.Network != nil {
			f.Network.Profile = before.Network.Profile // the firmware is not asked for an answer to Allocate
		}
		return
	}
	if pf, ok := s.Function(*f.PhysFn); ok {
		f.Network.VFIndex = slices.Index(pf.VFs, f.Address)
		if pf.Network != nil {
			f.Network.Profile = pf.Network.Profile
		}
	}
}

// profile asks a PF of Intel's for its DDP package; other drivers have none.
func (l *look) profile(f *Function) {
	if l.src.Profile == nil || f.PhysFn != nil || f.Driver != "ice" && f.Driver != "i40e" {
		return
	}
	profile, err := l.src.Profile(f.Address)
	if err == nil {
		f.Network.Profile = profile
		return
	}
	f.Err = errors.Join(f.Err, fmt.Errorf("read DDP package of %s: %w", f.Address, err))
	before, ok := l.prev.Function(f.Address)
	f.Known = ok && before.Known
	if ok && before.Network != nil {
		f.Network.Profile = before.Network.Profile
	}
}

// links reads what netlink shows.
func (l *look) links() {
	if l.src.Links == nil {
		return
	}
	if l.next.Links, l.next.LinksErr = l.src.Links(); l.next.LinksErr != nil {
		l.next.Links = l.prev.Links
	}
}
