package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// demand reads what the containers of a pod have in their limits of the flavours that go one way. It is
// not ok when something is wrong, which has been reported.
func (s *set) demand(p *pod, via Via) (counts asked, ok bool) {
	counts, ok = asked{}, true
	for i, c := range p.containers {
		for j := range s.policy.Flavours {
			f := &s.policy.Flavours[j]
			if f.Via != via {
				continue
			}
			n, good := s.limit(p, c, f)
			if ok = ok && good; n == 0 {
				continue
			}
			if counts[f.Resource] == nil {
				counts[f.Resource] = make([]int, len(p.containers))
			}
			counts[f.Resource][i] = n
		}
	}
	return counts, ok
}

// limit reads the limit of one container.
func (s *set) limit(p *pod, c container, f *Flavour) (n int, ok bool) {
	limit := get(c.node, "resources", "limits", f.Resource)
	asks := get(c.node, "resources", "requests", f.Resource)
	if limit == nil && asks == nil {
		return 0, true
	}
	path := c.path + ".resources.limits[" + f.Resource + "]"
	if limit == nil {
		s.refuse(p.object, asks, c.path+".resources.requests["+f.Resource+"]", "is requested without a limit",
			"write the same number in limits: devices cannot be overcommitted")
		return 0, false
	}
	for _, q := range []*yaml.Node{limit, asks} {
		if q == nil {
			continue
		}
		count, err := whole(text(q))
		if err != nil {
			s.refuse(p.object, q, path, "is not a whole number of devices in decimal digits", "write a number, such as 1")
			return 0, false
		}
		if q == limit {
			n = count
		} else if n != count {
			s.refuse(p.object, q, c.path+".resources.requests["+f.Resource+"]", fmt.Sprintf("is not the limit, which is %d", n),
				"write the same number: devices cannot be overcommitted")
			return 0, false
		}
	}
	return n, true
}

// whole reads a number as a person writes one: the API server also takes 1e0 or 1000m, which
// nobody would get back in a round trip.
func whole(s string) (int, error) {
	if s == "" || strings.Trim(s, "0123456789") != "" || len(s) > 1 && s[0] == '0' {
		return 0, fmt.Errorf("%s is not a whole number", quoted(s))
	}
	n, err := strconv.ParseInt(s, 10, 32)
	return int(n), err
}

// schedulable refuses pods that the scheduler never sees: it is what allocates claims, and what makes those
// of extended resources. Such a pod would wait for ever, or start without its devices.
func (s *set) schedulable(p *pod, via Via) bool {
	n := get(p.spec, "nodeName")
	if text(n) == "" {
		return true
	}
	s.refuse(p.object, n, p.path+".nodeName", "passes the scheduler by, which gives out the devices with via: "+string(via),
		"use a nodeSelector for kubernetes.io/hostname")
	return false
}

// aligned refuses pods that the policy wants aligned, where the flavours do not all go a way that
// can do so. A device plugin leaves it to the topology manager of the node.
func (s *set) aligned(p *pod) bool {
	for _, a := range s.policy.Alignments {
		for _, c := range p.containers {
			var vias []Via
			var names []string
			for _, resource := range a.Resources {
				f := s.policy.flavour(resource)
				if limit := get(c.node, "resources", "limits", resource); limit != nil && text(limit) != "0" {
					vias, names = append(vias, f.Via), append(names, resource+" via "+string(f.Via))
				}
			}
			slices.Sort(vias)
			vias = slices.Compact(vias)
			if len(names) < 2 || len(vias) == 1 && vias[0] != ExtendedResource {
				continue
			}
			s.refuse(p.object, c.node, c.path, "has "+strings.Join(names, " and ")+", which are to share "+a.Attribute+
				": only requests of one claim can", "write via: dra for all of them, or take them out of the policy's alignment")
			return false
		}
	}
	return true
}
