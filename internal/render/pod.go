package render

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// pod is a pod, or the template of pods in a workload.
type pod struct {
	*object
	// holder has metadata and spec; path leads to it.
	holder, spec *yaml.Node
	path         string
	// containers are the init containers and then the others, in the order in which kubelet gives
	// them devices.
	containers []container
}

// role says how long a container has its devices.
type role uint8

const (
	// starter: an init container, whose devices go to those that come later.
	starter role = iota
	// sidecar: an init container that goes on, and keeps its devices.
	sidecar
	// regular: any other.
	regular
)

// container is one container of a pod.
type container struct {
	node *yaml.Node
	name string
	path string
	role role
}

// templatePath says where the workloads of Kubernetes have the template of their pods.
func templatePath(api, kind string) ([]string, bool) {
	switch api + "/" + kind {
	case "v1/Pod":
		return nil, true
	case "v1/PodTemplate":
		return []string{"template"}, true
	case "v1/ReplicationController", "batch/v1/Job",
		"apps/v1/Deployment", "apps/v1/StatefulSet", "apps/v1/DaemonSet", "apps/v1/ReplicaSet":
		return []string{"spec", "template"}, true
	case "batch/v1/CronJob":
		return []string{"spec", "jobTemplate", "spec", "template"}, true
	}
	return nil, false
}

// pod finds the pods of an object, if it has any.
func (s *set) pod(o *object) (*pod, bool) {
	keys, ok := templatePath(o.api, o.kind)
	if !ok {
		return nil, false
	}
	p := &pod{object: o, holder: get(o.node, keys...)}
	for _, key := range keys {
		p.path = below(p.path, key)
	}
	p.path = below(p.path, "spec")
	if p.spec = get(p.holder, "spec"); p.spec == nil || p.spec.Kind != yaml.MappingNode {
		return nil, false
	}
	if o.doc.aliased {
		if word := s.concerned(o); word != "" {
			s.refuse(o, nil, "", "has anchors or aliases of YAML, and "+word,
				"write out what they stand for: an edit in one place would be one in the other")
		}
		return nil, false
	}
	if n := doubled(o.node); n != nil && s.concerned(o) != "" {
		s.refuse(o, n, "", "stands twice in one object", "remove one of the two: which of them counts is not said")
		return nil, false
	}
	for _, l := range []string{"initContainers", "containers"} {
		for i, n := range items(get(p.spec, l)) {
			c := container{node: n, name: text(get(n, "name")), path: fmt.Sprintf("%s.%s[%d]", p.path, l, i), role: regular}
			if l == "initContainers" {
				c.role = starter
				if text(get(n, "restartPolicy")) == "Always" {
					c.role = sidecar
				}
			}
			p.containers = append(p.containers, c)
		}
	}
	return p, true
}

// concerned returns what of the policy a document speaks of, or nothing.
func (s *set) concerned(o *object) string {
	for _, f := range s.policy.Flavours {
		if o.mentions(f.Resource) {
			return f.Resource
		}
	}
	if o.mentions("resourceClaims") {
		return "resourceClaims"
	}
	return ""
}

// noteUnknown says of an object whose pods are not known here that it asks for devices all the same.
func (s *set) noteUnknown(o *object) {
	if _, known := templatePath(o.api, o.kind); known || o.kind == "" {
		return
	}
	for _, f := range s.policy.Flavours {
		if n := asks(o.node, f.Resource); n != nil && f.Via != DevicePlugin {
			s.note(o, n, "asks for %s, but where a %s has its pods is not known here: it was left as it is", f.Resource, o.kind)
		}
	}
}

// asks finds the limit of a resource, or the device of a virtual machine that is one, anywhere below a node.
func asks(n *yaml.Node, resource string) *yaml.Node {
	if limit := get(n, "limits", resource); limit != nil {
		return limit
	}
	if device := get(n, "deviceName"); device != nil && text(device) == resource {
		return device
	}
	for _, c := range n.Content {
		if at := asks(c, resource); at != nil {
			return at
		}
	}
	return nil
}
