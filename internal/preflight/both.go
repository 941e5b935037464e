package preflight

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// driverImage is what the image of this project's driver is called.
const driverImage = "kata-dra-driver"

// typesOf are the types of devices that agents offer.
func typesOf(a check.DeviceAgent) []string {
	switch a.Image {
	case "kata-device-plugin":
		return []string{"gpu", "nvswitch"}
	case "nic-device-plugin":
		return []string{"nic", "vf"}
	case driverImage:
		if types, at := a.Flag("types"); at.Exists() {
			return strings.Split(types, ",")
		}
		return []string{"gpu", "nvswitch", "nic", "vf"}
	}
	return nil
}

// apart looks for a node that a plugin and the driver both choose, and of whose devices both are. A
// driver that is told by --types to leave some out does not get into the way of their plugin.
func apart(s *survey, _ Way, v *verdict) {
	var plugins, drivers []check.DeviceAgent
	for _, a := range s.agents {
		switch {
		case a.Image == driverImage:
			drivers = append(drivers, a)
		case len(typesOf(a)) > 0:
			plugins = append(plugins, a)
		}
	}
	others := s.others()
	for _, d := range drivers {
		for _, p := range plugins {
			s.beside(p, d, v)
		}
		for _, p := range others {
			s.besideOther(p, d, v)
		}
	}
	switch {
	case len(drivers) > 0 && len(plugins)+len(others) > 0:
	case len(s.agents) > 0 && s.View.Complete("DaemonSet"):
		v.yes("the cluster has no plugin and driver of the same devices")
	default:
		v.open("DaemonSets of the device plugin and of the DRA driver")
	}
}

// beside judges a plugin of this project and the driver.
func (s *survey) beside(p, d check.DeviceAgent, v *verdict) {
	shared := both(typesOf(p), typesOf(d))
	if len(shared) == 0 {
		v.yes(fmt.Sprintf("%s leaves the devices of %s to it", d.Ref, p.Ref))
		return
	}
	if node := s.meeting(p, d, v); node != "" {
		v.no(found(finding.BothOnNode(), d.Ref, d.Spec.Get("nodeSelector"),
			"%s and %s may both run on %s, and both are for devices of the type %s", p.Ref, d.Ref, node,
			strings.Join(shared, ", ")))
	}
}

// besideOther judges a plugin of another project, whose devices may be those of the driver or others.
func (s *survey) besideOther(p, d check.DeviceAgent, v *verdict) {
	if node := s.meeting(p, d, v); node != "" {
		v.open(fmt.Sprintf("which devices %s offers, a plugin of another project: it may run on %s, beside %s",
			p.Ref, node, d.Ref))
	}
}

// meeting is a node that two agents choose, "" where there is none or that is not known.
func (s *survey) meeting(p, d check.DeviceAgent, v *verdict) string {
	node, known := s.meet(p, d)
	switch {
	case !known:
		v.open(fmt.Sprintf("a look at the selectors of %s and %s, which speak of too many labels for this command",
			p.Ref, d.Ref))
	case node == "":
		v.yes(fmt.Sprintf("%s and %s choose different nodes", p.Ref, d.Ref))
	}
	return node
}

// others are the device plugins of other projects: by what their images are called, or because they
// can make a socket where plugins register.
func (s *survey) others() []check.DeviceAgent {
	var all []check.DeviceAgent
	for _, p := range s.View.Workloads() {
		own := slices.ContainsFunc(s.agents, func(a check.DeviceAgent) bool {
			_, plugin := ours(DevicePlugin)[a.Image]
			return a.Ref == p.Ref() && (plugin || a.Image == driverImage)
		})
		if !p.Template || own {
			continue
		}
		named := slices.ContainsFunc(p.Containers, func(c check.Container) bool {
			image := path.Base(c.Get("image").Text())
			return strings.Contains(image, "device-plugin") || strings.Contains(image, "dev-plugin")
		})
		if named || p.ServesPlugins() {
			all = append(all, check.DeviceAgent{Ref: p.Ref(), Object: p.Object, Spec: p.Spec})
		}
	}
	return all
}

func both(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

// meet is a node that two workloads choose, "" for none: one of the input, or one that might be.
func (s *survey) meet(a, b check.DeviceAgent) (node string, known bool) {
	for _, n := range s.linux() {
		if n.RefusesDaemon(a.Spec) == "" && n.RefusesDaemon(b.Spec) == "" {
			return "node " + n.Name, true
		}
	}
	might, known := imagined(a.Spec, b.Spec)
	for _, n := range might {
		if n.RefusesDaemon(a.Spec) == "" && n.RefusesDaemon(b.Spec) == "" {
			var labels []string
			for l := range n.Labels.Entries() {
				labels = append(labels, l.Key()+"="+l.Text())
			}
			if len(labels) == 0 {
				return "a node without labels", true
			}
			return "a node with " + strings.Join(labels, ", "), true
		}
	}
	return "", known
}

// mostImagined bounds the nodes that are tried.
const mostImagined = 1 << 12

// imagined are nodes with all combinations of the labels that specs speak of: each with every value
// that is named, another one, or absent. They are judged as real nodes are. It is false where there
// would be too many.
func imagined(specs ...manifest.Value) ([]*check.Node, bool) {
	values, ok := labelsOf(specs)
	if !ok {
		return nil, false
	}
	combinations := []map[string]string{{}}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if len(combinations)*(len(values[key])+1) > mostImagined {
			return nil, false
		}
		var more []map[string]string
		for _, have := range combinations {
			more = append(more, have)
			for _, value := range values[key] {
				with := maps.Clone(have)
				with[key] = value
				more = append(more, with)
			}
		}
		combinations = more
	}
	return nodesWith(combinations)
}

// labelsOf are the labels that selectors speak of, with their values. It is false for an operator
// that compares numbers.
func labelsOf(specs []manifest.Value) (values map[string][]string, ok bool) {
	values, ok = map[string][]string{}, true
	note := func(key string, some ...string) {
		for _, value := range some {
			if !slices.Contains(values[key], value) {
				values[key] = append(values[key], value)
			}
		}
	}
	for _, spec := range specs {
		for want := range spec.Get("nodeSelector").Entries() {
			note(want.Key(), want.Text())
		}
		terms := spec.Get("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
		for term := range terms.Each() {
			for e := range term.Get("matchExpressions").Each() {
				note(e.Get("key").Text(), append(e.Get("values").Texts(), "any")...)
				ok = ok && e.Get("operator").Text() != "Gt" && e.Get("operator").Text() != "Lt"
			}
		}
	}
	return values, ok
}

// nodesWith makes nodes of labels, and says whether it could.
func nodesWith(all []map[string]string) ([]*check.Node, bool) {
	items := []map[string]any{}
	for i, labels := range all {
		items = append(items, map[string]any{"apiVersion": "v1", "kind": "Node",
			"metadata": map[string]any{"name": fmt.Sprintf("imagined-%d", i), "labels": labels}})
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		return nil, false
	}
	set, err := manifest.Load(nil, manifest.Options{Texts: []manifest.Source{{Name: "imagined", Data: text}}})
	if err != nil {
		return nil, false
	}
	return check.Look(set, check.Options{}).Nodes(), true
}
