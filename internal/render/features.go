package render

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// checkFeatures refuses what an object of resource.k8s.io has and the API server of the target version would
// drop without a word, and versions of that API which it does not serve.
func (s *set) checkFeatures(o *object) {
	if !strings.HasPrefix(o.api, "resource.k8s.io/") {
		return
	}
	var devices *yaml.Node
	var path string
	switch o.kind {
	case "ResourceClaimTemplate":
		devices, path = get(o.node, "spec", "spec", "devices"), "spec.spec.devices"
	case "ResourceClaim":
		devices, path = get(o.node, "spec", "devices"), "spec.devices"
	case "DeviceClass":
		if n := get(o.node, "spec", extendedField); n != nil {
			s.feature(o, n, "spec."+extendedField, "DRAExtendedResource")
		}
	default:
		return
	}
	what, remedy := s.policy.serves(o.api)
	if what == "" {
		what, remedy = s.policy.lacks("DynamicResourceAllocation")
	}
	if what != "" {
		s.refuse(o, get(o.node, "apiVersion"), "apiVersion", what, remedy)
		return
	}
	for _, r := range items(get(devices, "requests")) {
		s.requestFeatures(o, r, path+".requests["+text(get(r, "name"))+"]")
	}
	for _, c := range items(get(devices, "constraints")) {
		if n := get(c, "distinctAttribute"); n != nil {
			s.feature(o, n, path+".constraints.distinctAttribute", "DRAConsumableCapacity")
		}
	}
}

func (s *set) requestFeatures(o *object, r *yaml.Node, path string) {
	all := []*yaml.Node{body(r)}
	if n := get(r, "firstAvailable"); n != nil {
		s.feature(o, n, path+".firstAvailable", "DRAPrioritizedList")
		all = append(all, items(n)...)
	}
	for _, b := range all {
		for _, f := range []struct{ key, gate string }{
			{"adminAccess", "DRAAdminAccess"}, {"tolerations", "DRADeviceTaints"}, {"capacity", "DRAConsumableCapacity"},
		} {
			if n := get(b, f.key); n != nil && text(n) != "false" {
				s.feature(o, n, path+"."+f.key, f.gate)
			}
		}
	}
}

// feature refuses a field whose gate is off.
func (s *set) feature(o *object, n *yaml.Node, path, gate string) {
	if what, remedy := s.policy.lacks(gate); what != "" {
		s.refuse(o, n, path, what+": the API server drops the field", remedy)
	}
}

// serves says why a version of the API is not served, or nothing. The older ones are, by clusters of
// 1.32 and later, only where an administrator has turned them on.
func (p *Policy) serves(api string) (what, remedy string) {
	known := map[string]Version{"resource.k8s.io/v1": 34, "resource.k8s.io/v1beta2": 33, "resource.k8s.io/v1beta1": 32}
	first, ok := known[api]
	switch {
	case !ok:
		return "is no version of the API that is served since Kubernetes 1.32", "write " + p.Kubernetes.resourceAPI()
	case p.Kubernetes < first:
		return fmt.Sprintf("is served since Kubernetes %s, and the policy is for %s", first, p.Kubernetes),
			"write " + p.Kubernetes.resourceAPI()
	}
	return "", ""
}
