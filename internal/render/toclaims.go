package render

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// toClaims writes limits of the flavours that go by claims as one claim for each pod. It is one claim
// because constraints are within a claim, and all of it is allocated on one node or none.
func (s *set) toClaims(p *pod) {
	if !s.aligned(p) {
		return
	}
	counts, ok := s.demand(p, DRA)
	if !ok || len(counts) == 0 || !s.schedulable(p, DRA) {
		return
	}
	if what, remedy := s.policy.lacks("DynamicResourceAllocation"); what != "" {
		s.refuse(p.object, nil, "", "is to get a claim, which "+what, remedy+"; or write via: device-plugin")
		return
	}
	pl, what, remedy := s.policy.planOf(p.containers, counts)
	if what != "" {
		s.refuse(p.object, p.spec, p.path, what, remedy)
		return
	}
	if what := pl.tooMuch(); what != "" {
		s.refuse(p.object, p.spec, p.path, "would need "+what,
			"ask for fewer devices in one pod, or write via: device-plugin for a flavour")
		return
	}
	p.doc.changed = true
	if err := s.writeClaims(p, counts, pl); err != nil {
		s.refuse(p.object, p.spec, p.path, err.Error(), "")
	}
}

// writeClaims edits the pod: limits go, claims come.
func (s *set) writeClaims(p *pod, counts asked, pl *plan) error {
	claim := freeClaimName(p)
	r := p.record()
	for i, c := range p.containers {
		var names []string
		for _, f := range s.policy.Flavours {
			if n := counts[f.Resource]; n != nil && n[i] > 0 {
				names = append(names, f.Resource)
			}
		}
		if len(names) == 0 {
			continue
		}
		resources := get(c.node, "resources")
		k, comments := takeOut(resources, names)
		if !k.plain(resources, names) {
			r[c.name] = k
		}
		claims := get(resources, "claims")
		if claims == nil || claims.Kind != yaml.SequenceNode {
			remove(resources, "claims")
			claims = list()
			put(resources, "claims", claims)
		}
		claims.Style &^= yaml.FlowStyle
		for _, use := range pl.uses[i] {
			claims.Content = append(claims.Content, mapping(field{"name", str(claim)}, field{"request", str(use)}))
		}
		pl.comment(claims.Content[len(claims.Content)-len(pl.uses[i]):], names, comments)
	}
	entry := mapping(field{"name", str(claim)}, field{"resourceClaimTemplateName", str(s.template(p, pl))})
	all := get(p.spec, "resourceClaims")
	if all == nil || all.Kind != yaml.SequenceNode {
		remove(p.spec, "resourceClaims")
		all = list()
		insert(p.spec, containersPair(p.spec), str("resourceClaims"), all)
	}
	all.Style &^= yaml.FlowStyle
	all.Content = append(all.Content, entry)
	return p.keep(r)
}

// comment gives the comments of limits to the first claim that took the place of each.
func (pl *plan) comment(claims []*yaml.Node, names []string, comments []*yaml.Node) {
	for i, name := range names {
		for _, c := range claims {
			if r := pl.request(text(get(c, "request"))); r != nil && r.flavour.Resource == name {
				setComments(c, comments[i])
				break
			}
		}
	}
}

// request finds a request by name.
func (pl *plan) request(name string) *request {
	for i := range pl.requests {
		if pl.requests[i].name == name {
			return &pl.requests[i]
		}
	}
	return nil
}

// setComments writes comments to an entry of a list, where a reader of YAML will find them again.
func setComments(n, from *yaml.Node) {
	n.HeadComment = from.HeadComment
	last := len(n.Content) - 2
	n.Content[last+1].LineComment = from.LineComment
	n.Content[last].FootComment = from.FootComment
}

// commentsOf reads them.
func commentsOf(n *yaml.Node) *yaml.Node {
	c := &yaml.Node{HeadComment: n.HeadComment, FootComment: n.FootComment, LineComment: n.LineComment}
	for _, part := range n.Content {
		for _, f := range []struct{ to, from *string }{
			{&c.HeadComment, &part.HeadComment}, {&c.LineComment, &part.LineComment}, {&c.FootComment, &part.FootComment},
		} {
			if *f.to == "" {
				*f.to = *f.from
			}
		}
	}
	return c
}

// freeClaimName is a name for the claim that no other claim of the pod has.
func freeClaimName(p *pod) string {
	taken := map[string]bool{}
	for _, c := range items(get(p.spec, "resourceClaims")) {
		taken[text(get(c, "name"))] = true
	}
	name := "devices"
	for i := 2; taken[name]; i++ {
		name = fmt.Sprintf("devices-%d", i)
	}
	return name
}

// containersPair is where the containers begin: the claims stand before what uses them.
func containersPair(spec *yaml.Node) int {
	n := 0
	for k := range pairs(spec) {
		if k.Value == "containers" || k.Value == "initContainers" {
			break
		}
		n++
	}
	return n
}
