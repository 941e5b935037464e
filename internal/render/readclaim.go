package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// claimed is a claim of a pod as far as limits could say the same.
type claimed struct {
	entry    *yaml.Node // in spec.resourceClaims
	name     string
	template *object
	requests []claimedRequest
	// constraints name requests of this claim.
	constraints []constraint
}

// claimedRequest is one request, with the containers that use it.
type claimedRequest struct {
	request
	node  *yaml.Node
	users []int
}

// wanted says whether a template asks for devices that pods are to get in another way. Who asks for some
// of those, and for others beside them, is refused.
func (s *set) wanted(p *pod, template *object) bool {
	var wanted, other *yaml.Node
	for _, r := range items(get(template.node, "spec", "spec", "devices", "requests")) {
		is := false
		for _, f := range s.policy.Flavours {
			is = is || f.Via != DRA && f.Class == classOf(r) && s.mayBe(&f, r)
		}
		if is {
			wanted = r
		} else {
			other = r
		}
	}
	if wanted != nil && other != nil {
		s.refuse(template, other, "spec.spec.devices.requests",
			fmt.Sprintf("has the request %q, which stays, beside %q, which is to become a limit of %s",
				text(get(other, "name")), text(get(wanted, "name")), p), "make a template of its own of each, or write the same via for both")
		return false
	}
	return wanted != nil
}

// mayBe says whether a request can be of a flavour. One with selectors that no flavour has may be of any
// of its class, and is refused later.
func (s *set) mayBe(f *Flavour, r *yaml.Node) bool {
	if known := s.flavourOf(r); known != nil {
		return known.Resource == f.Resource
	}
	return true
}

// body is what a request asks: below exactly, or, up to v1beta1, in the request itself.
func body(r *yaml.Node) *yaml.Node {
	if e := get(r, "exactly"); e != nil {
		return e
	}
	return r
}

// classOf is the class of a request, or of its first alternative.
func classOf(r *yaml.Node) string {
	if all := items(get(r, "firstAvailable")); len(all) > 0 {
		return text(get(all[0], "deviceClassName"))
	}
	return text(get(body(r), "deviceClassName"))
}

// flavourOf finds the flavour with the class and the selectors of a request.
func (s *set) flavourOf(r *yaml.Node) *Flavour {
	var expressions []string
	for _, sel := range items(get(body(r), "selectors")) {
		expressions = append(expressions, strings.TrimSpace(text(get(sel, "cel", "expression"))))
	}
	for i := range s.policy.Flavours {
		f := &s.policy.Flavours[i]
		if f.Class == classOf(r) && slices.EqualFunc(f.Selectors, expressions, func(a, b string) bool { return strings.TrimSpace(a) == b }) {
			return f
		}
	}
	return nil
}

// readClaim reads a template. It is not ok when it says what limits cannot, which has been reported.
func (s *set) readClaim(entry *yaml.Node, template *object) (c claimed, ok bool) {
	c = claimed{entry: entry, name: text(get(entry, "name")), template: template}
	devices := get(template.node, "spec", "spec", "devices")
	if n := get(devices, "config"); !empty(n) {
		s.refuse(template, n, "spec.spec.devices.config", "tells the driver something of the devices, which limits cannot",
			"put it into the DeviceClass, or leave the pod as it is")
		return c, false
	}
	for _, r := range items(get(devices, "requests")) {
		req, good := s.readRequest(template, r)
		if !good {
			return c, false
		}
		c.requests = append(c.requests, req)
	}
	for _, n := range items(get(devices, "constraints")) {
		attribute := text(get(n, "matchAttribute"))
		if attribute == "" {
			s.refuse(template, n, "spec.spec.devices.constraints", "is no matchAttribute, and limits have no constraints",
				"remove the constraint, or leave the pod as it is")
			return c, false
		}
		names := texts(get(n, "requests"))
		if len(names) == 0 { // all of them
			for _, r := range c.requests {
				names = append(names, r.name)
			}
		}
		c.constraints = append(c.constraints, constraint{names, attribute})
	}
	return c, true
}

// unsayable is what a request may have and limits cannot say.
func unsayable() map[string]string {
	return map[string]string{
		"adminAccess": "asks for devices that others have (adminAccess), which no limit can",
		"capacity":    "asks for a part of a device (capacity), and a limit is of whole ones",
		"tolerations": "tolerates taints of devices, and a device plugin has none",
	}
}

// readRequest reads one request.
func (s *set) readRequest(template *object, r *yaml.Node) (c claimedRequest, ok bool) {
	name, b := text(get(r, "name")), body(r)
	path := "spec.spec.devices.requests[" + name + "]"
	if n := get(r, "firstAvailable"); n != nil {
		s.refuse(template, n, path+".firstAvailable", "is a choice (firstAvailable), and a limit is of one kind of device",
			"make a pod for each alternative, or leave the pod as it is")
		return c, false
	}
	reasons := unsayable()
	for _, key := range slices.Sorted(maps.Keys(reasons)) {
		if n := get(b, key); n != nil && text(n) != "false" {
			s.refuse(template, n, path+"."+key, reasons[key], "remove it, or leave the pod as it is")
			return c, false
		}
	}
	for k := range pairs(b) {
		if !slices.Contains([]string{"name", "deviceClassName", "selectors", "allocationMode", "count", "adminAccess"}, k.Value) {
			s.refuse(template, k, path, "is a field that is not known here, so whether a limit can say it is not known either",
				"remove it, or leave the pod as it is")
			return c, false
		}
	}
	if mode := get(b, "allocationMode"); mode != nil && text(mode) != "ExactCount" {
		s.refuse(template, mode, path+".allocationMode", "is as many as a node has, and a limit is a number", "write how many in count")
		return c, false
	}
	f := s.flavourOf(r)
	if f == nil {
		s.refuse(template, r, path, "is of class "+classOf(r)+" with selectors that no flavour of the policy has",
			"add a flavour with the same selectors and a resource name of its own")
		return c, false
	}
	count := 1
	if n := get(b, "count"); n != nil {
		var err error
		if count, err = whole(text(n)); err != nil || count == 0 {
			s.refuse(template, n, path+".count", "is no number of devices", "write a whole number from 1")
			return c, false
		}
	}
	return claimedRequest{request: request{flavour: f, name: name, count: count}, node: r}, true
}
