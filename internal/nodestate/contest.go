package nodestate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"kata-device-plugin/internal/pci"
)

// contests enters the resources that two have a hand in. A device that has just changed is in one
// source before it is in the next, so that counts only what lasts. That there is none is known only
// once everybody has said what he has.
func (j *join) contests() {
	if !j.fresh[Allocatable] || !j.fresh[Hardware] || !j.fresh[Pods] || !j.fresh[Claims] {
		j.remember("contest")
		return
	}
	count := map[Contest]int{}
	contested := func(resource string, reason ContestReason, device string) {
		c := Contest{Resource: resource, Reason: reason}
		if _, long := j.lasting(strings.Join([]string{"contest", resource, string(reason), device}, " ")); long {
			count[c]++
		}
	}
	whole := map[pci.Address][]string{} // the resources that a function is offered as
	for name, ids := range j.offered {
		for _, id := range ids {
			a, ok := j.address(name, id)
			if _, known := j.units[unitKey{name, id}]; !known && j.named(name) {
				contested(name, ForeignList, id)
			}
			if ok && !strings.Contains(id, "::") {
				whole[a] = append(whole[a], name)
			}
		}
	}
	held := j.claimedFunctions()
	for a, names := range whole {
		slices.Sort(names)
		names = slices.Compact(names)
		for _, name := range names {
			if len(names) > 1 {
				contested(name, TwoResources, a.String())
			}
			if held[a] {
				contested(name, TwoMechanisms, a.String())
			}
		}
	}
	for c := range maps.Keys(count) {
		j.s.Contests = append(j.s.Contests, Contest{Resource: c.Resource, Reason: c.Reason, Devices: count[c]})
	}
	slices.SortFunc(j.s.Contests, func(a, b Contest) int {
		return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(string(a.Reason), string(b.Reason)))
	})
}

// named says whether a resource is one of the rules.
func (j *join) named(resource string) bool {
	for _, rules := range j.facts.Rules {
		for _, name := range rules.Names() {
			if name.Resource == resource {
				return true
			}
		}
	}
	return false
}

// claimedFunctions are those that a claim holds, with all of their IOMMU groups.
func (j *join) claimedFunctions() map[pci.Address]bool {
	held := map[pci.Address]bool{}
	for i := range j.s.Allocations {
		if a := &j.s.Allocations[i]; a.By == ByDRA && a.Admin != Yes {
			held[a.Address] = true
		}
	}
	for _, r := range j.facts.Claims.Value.Records {
		for i := range r.Devices {
			if r.Devices[i].Admin {
				continue // holds nothing
			}
			for _, text := range r.Devices[i].Group {
				if a, err := pci.ParseAddress(text); err == nil {
					held[a] = true
				}
			}
		}
	}
	return held
}
