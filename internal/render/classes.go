package render

import (
	"fmt"
	"slices"
	"strings"
)

const extendedField = "extendedResourceName"

// toClasses sees to it that the names in a pod's limits are mapped by a DeviceClass, for the flavours that
// go that way. The pod itself stays as it is.
func (s *set) toClasses(p *pod) {
	counts, ok := s.demand(p, ExtendedResource)
	if !ok || len(counts) == 0 || !s.schedulable(p, ExtendedResource) {
		return
	}
	if what, remedy := s.policy.lacks("DRAExtendedResource"); what != "" {
		s.refuse(p.object, nil, "", "is to get its devices by an extended resource of a DeviceClass, which "+what,
			remedy+"; or write via: dra")
		return
	}
	total := 0
	for _, n := range counts {
		_, t := spans(p.containers, n)
		total += t
	}
	if total > mostDevices {
		// The scheduler makes one claim for each pod, of all its extended resources.
		s.refuse(p.object, p.spec, p.path,
			fmt.Sprintf("asks for %d devices, and the claim that the scheduler makes for a pod may have %d", total, mostDevices),
			"ask for fewer devices in one pod, or write via: device-plugin for a flavour")
		return
	}
	for i := range s.policy.Flavours {
		if f := &s.policy.Flavours[i]; counts[f.Resource] != nil {
			s.class(p, f)
		}
	}
}

// class finds the class that has a flavour's name, gives it the name, or writes it. There must never be a
// second one with the name, so one that is there is edited.
func (s *set) class(p *pod, f *Flavour) {
	if len(f.Selectors) > 0 {
		s.refuse(p.object, p.spec, p.path,
			"asks for "+f.Resource+", whose selectors narrow a claim, and an extended resource is all of its class",
			"make a class of its own with them in classSelectors, or write via: dra")
		return
	}
	if o := s.mapped[f.Resource]; o != nil {
		if o.name != f.Class {
			s.refuse(o, get(o.node, "spec", extendedField), "spec."+extendedField,
				"is that of another class than the policy's, "+f.Class,
				"write deviceClass: "+o.name+" in the policy, or take the name from this class")
		}
		return
	}
	if o := s.classes[f.Class]; o != nil {
		s.extend(o, f)
		return
	}
	if len(f.ClassSelectors) == 0 {
		s.refuse(p.object, p.spec, p.path, "asks for "+f.Resource+", and the class "+f.Class+" would have to be written with that name",
			"say in the policy's classSelectors which devices are of the class, or add the class to the documents")
		return
	}
	n := mapping(
		field{"apiVersion", str(s.policy.Kubernetes.resourceAPI())},
		field{"kind", str("DeviceClass")},
		field{"metadata", metadata(f.Class, "")},
		field{"spec", mapping(field{extendedField, str(f.Resource)}, field{"selectors", selectors(f.ClassSelectors)})},
	)
	s.before(p.object, n)
	o := &object{doc: p.doc, node: n, kind: "DeviceClass", name: f.Class}
	s.classes[f.Class], s.mapped[f.Resource] = o, o
}

// extend gives a class of the documents the name.
func (s *set) extend(o *object, f *Flavour) {
	spec := get(o.node, "spec")
	other := get(spec, extendedField)
	switch {
	case o.doc.aliased:
		s.refuse(o, nil, "", "has anchors or aliases of YAML, and is to get the name "+f.Resource, "write out what they stand for")
	case other != nil:
		s.refuse(o, other, "spec."+extendedField, "is another name than that of the flavour, "+f.Resource,
			"give the flavour a class of its own")
	case spec == nil || len(spec.Content) == 0:
		s.refuse(o, spec, "spec", "selects nothing, and is to get the name "+f.Resource, "say which devices are of the class")
	default:
		o.doc.changed = true
		put(spec, extendedField, str(f.Resource))
		annotate(o.node, renderedKey, extendedField)
		s.mapped[f.Resource] = o
	}
}

// sweep removes what was rendered earlier and serves nobody any more.
func (s *set) sweep(pods []*pod) {
	used := map[string]bool{}
	for _, p := range pods {
		for _, c := range items(get(p.spec, "resourceClaims")) {
			used[p.namespace+"/"+text(get(c, "resourceClaimTemplateName"))] = true
		}
	}
	for _, o := range s.objects {
		if !strings.HasPrefix(o.api, "resource.k8s.io/") {
			continue
		}
		unused := o.kind == "ResourceClaimTemplate" && !used[o.namespace+"/"+o.name]
		switch {
		case unused && o.rendered() == wholeObject:
			s.drop(o)
		case unused && s.left[o]:
			s.note(o, nil, "has no pod among the documents any more: remove it if there is none elsewhere")
		case o.kind == "DeviceClass" && o.rendered() != "" && !s.mappedNow(o):
			s.unclass(o)
		}
	}
}

// mappedNow says whether the policy maps the name that a class has.
func (s *set) mappedNow(o *object) bool {
	name := text(get(o.node, "spec", extendedField))
	return slices.ContainsFunc(s.policy.Flavours, func(f Flavour) bool { return f.Resource == name && f.Via == ExtendedResource })
}

// unclass takes back what was done to a class.
func (s *set) unclass(o *object) {
	switch {
	case o.rendered() == wholeObject:
		s.drop(o)
	case o.doc.aliased:
		s.refuse(o, nil, "", "has anchors or aliases of YAML, and is to lose the name that it was given",
			"write out what they stand for")
	default:
		o.doc.changed = true
		remove(get(o.node, "spec"), extendedField)
		unannotate(o.node, renderedKey)
	}
}
