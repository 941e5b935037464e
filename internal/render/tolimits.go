package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// toLimits writes claims as limits, where they ask for flavours that go another way than by claims.
func (s *set) toLimits(p *pod) {
	if !s.policy.uses(DevicePlugin) && !s.policy.uses(ExtendedResource) {
		return
	}
	var claims []claimed
	for _, entry := range items(get(p.spec, "resourceClaims")) {
		template := s.templateOf(p, entry)
		if template == nil || !s.wanted(p, template) {
			continue
		}
		if template.doc.aliased {
			s.refuse(template, nil, "", "has anchors or aliases of YAML, and "+p.String()+" uses it",
				"write out what they stand for")
			return
		}
		if n := doubled(template.node); n != nil {
			s.refuse(template, n, "", "stands twice in one object", "remove one of the two: which of them counts is not said")
			return
		}
		c, ok := s.readClaim(entry, template)
		if !ok || !s.findUsers(p, &c) {
			return
		}
		claims = append(claims, c)
	}
	if len(claims) == 0 {
		return
	}
	counts := asked{}
	for _, c := range claims {
		for _, r := range c.requests {
			if counts[r.flavour.Resource] == nil {
				counts[r.flavour.Resource] = make([]int, len(p.containers))
			}
			for _, user := range r.users {
				counts[r.flavour.Resource][user] += r.count
			}
		}
	}
	if !s.same(p, claims, counts) || !s.free(p, counts) {
		return
	}
	p.doc.changed = true
	if err := s.writeLimits(p, claims, counts); err != nil {
		s.refuse(p.object, p.spec, p.path, err.Error(), "")
	}
}

// templateOf finds the template of a claim. What a claim asks that is not among the documents is not
// known: the pod keeps it, and a note says so.
func (s *set) templateOf(p *pod, entry *yaml.Node) *object {
	name := text(get(entry, "resourceClaimTemplateName"))
	if name == "" {
		s.note(p.object, entry, "has the claim %s, which is made by somebody else and may have several pods: it was left as it is",
			text(get(entry, "resourceClaimName")))
		return nil
	}
	template := s.templates[p.namespace+"/"+name]
	if template == nil {
		s.note(p.object, entry, "has a claim of the template %s, which is not among the documents: it was left as it is", name)
	}
	return template
}

// findUsers finds the containers of each request of a claim. Every request must have one, and only an
// init container may share with those after it.
func (s *set) findUsers(p *pod, c *claimed) bool {
	for i := range c.requests {
		r := &c.requests[i]
		for j, con := range p.containers {
			for _, use := range items(get(con.node, "resources", "claims")) {
				if name := text(get(use, "request")); text(get(use, "name")) == c.name && (name == "" || name == r.name) {
					r.users = append(r.users, j)
					break
				}
			}
		}
		path := p.path + ".resourceClaims[" + c.name + "]"
		if len(r.users) == 0 {
			s.refuse(p.object, c.entry, path, "has the request "+quoted(r.name)+", whose devices no container has",
				"name it in the claims of a container")
			return false
		}
		var keepers []string
		for _, j := range r.users {
			if p.containers[j].role != starter {
				keepers = append(keepers, p.containers[j].name)
			}
		}
		if len(keepers) > 1 {
			s.refuse(p.object, c.entry, path, "has the request "+quoted(r.name)+", whose devices "+strings.Join(keepers, " and ")+
				" share, and a device plugin gives each container its own", "ask for them in one container, or leave the pod as it is")
			return false
		}
	}
	return true
}

// same says whether the limits would give what the claims give: the same devices to the same containers,
// with the constraints that the policy makes of them.
func (s *set) same(p *pod, claims []claimed, counts asked) bool {
	pl, what, remedy := s.policy.planOf(p.containers, counts)
	if what != "" {
		s.refuse(p.object, claims[0].entry, p.path, what, remedy)
		return false
	}
	back := claimed{constraints: pl.constraints}
	for _, r := range pl.requests {
		c := claimedRequest{request: r}
		for i, uses := range pl.uses {
			if slices.Contains(uses, r.name) {
				c.users = append(c.users, i)
			}
		}
		back.requests = append(back.requests, c)
	}
	if !maps.Equal(shape([]claimed{back}, false), shape(claims, false)) {
		s.refuse(p.object, claims[0].entry, p.path+".resourceClaims",
			"gives an init container other devices than a device plugin would, which has those that containers after it get",
			"name the same requests in both")
		return false
	}
	if !maps.Equal(shape([]claimed{back}, true), shape(claims, true)) {
		s.refuse(p.object, claims[0].entry, p.path+".resourceClaims",
			"has constraints that limits cannot have, and that the alignment of the policy does not make",
			"write an alignment that makes them, or leave the pod as it is")
		return false
	}
	return true
}

// shape counts devices by what they are, who has them and, if asked, what binds them to others: two
// claims of one shape give the same, whatever their requests are called and however they are cut.
func shape(claims []claimed, constraints bool) map[string]int {
	of := map[string]int{}
	for _, c := range claims {
		plain := map[string]string{}
		for _, r := range c.requests {
			plain[r.name] = fmt.Sprint(r.flavour.Resource, r.users)
		}
		bound := map[string][]string{}
		for _, con := range c.constraints {
			members := map[string]int{}
			for _, r := range c.requests {
				if slices.Contains(con.requests, r.name) {
					members[plain[r.name]] += r.count
				}
			}
			for _, name := range con.requests {
				bound[name] = append(bound[name], fmt.Sprint(con.attribute, members))
			}
		}
		for _, r := range c.requests {
			key := plain[r.name]
			if constraints {
				slices.Sort(bound[r.name])
				key += fmt.Sprint(bound[r.name])
			}
			of[key] += r.count
		}
	}
	return of
}

// free says whether the limits are not there already: then a container would have both.
func (s *set) free(p *pod, counts asked) bool {
	for _, resource := range slices.Sorted(maps.Keys(counts)) {
		for i, c := range p.containers {
			limit := get(c.node, "resources", "limits", resource)
			if limit == nil {
				limit = get(c.node, "resources", "requests", resource)
			}
			if counts[resource][i] > 0 && limit != nil {
				s.refuse(p.object, limit, c.path+".resources.limits["+resource+"]", "stands beside a claim for the same devices",
					"remove the limit, or the claim")
				return false
			}
		}
	}
	return true
}

// writeLimits edits the pod: claims go, limits come.
func (s *set) writeLimits(p *pod, claims []claimed, counts asked) error {
	r := p.record()
	for i, c := range p.containers {
		resources := get(c.node, "resources")
		comments := takeUses(resources, claims)
		var names []string
		numbers := map[string]int{}
		for _, f := range s.policy.Flavours {
			if n := counts[f.Resource]; n != nil && n[i] > 0 {
				names, numbers[f.Resource] = append(names, f.Resource), n[i]
			}
		}
		if len(names) > 0 {
			putBack(resources, names, numbers, comments, r[c.name])
			delete(r, c.name)
		}
	}
	all := get(p.spec, "resourceClaims")
	for _, c := range claims {
		all.Content = slices.DeleteFunc(all.Content, func(n *yaml.Node) bool { return n == c.entry })
	}
	if empty(all) {
		remove(p.spec, "resourceClaims")
	}
	for _, c := range claims {
		s.left[c.template] = true
	}
	return p.keep(r)
}

// takeUses removes a container's uses of claims, and returns their comments by resource.
func takeUses(resources *yaml.Node, claims []claimed) map[string]*yaml.Node {
	comments := map[string]*yaml.Node{}
	uses := get(resources, "claims")
	if uses == nil {
		return comments
	}
	uses.Content = slices.DeleteFunc(uses.Content, func(use *yaml.Node) bool {
		for _, c := range claims {
			if text(get(use, "name")) != c.name {
				continue
			}
			for _, r := range c.requests {
				if name := text(get(use, "request")); (name == "" || name == r.name) && comments[r.flavour.Resource] == nil {
					comments[r.flavour.Resource] = commentsOf(use)
					break
				}
			}
			return true
		}
		return false
	})
	if empty(uses) {
		remove(resources, "claims")
	}
	return comments
}
