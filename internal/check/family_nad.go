package check

import (
	"errors"
	"slices"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// The family NAD: networks, and the annotations that name them.
func networkChecks() []Check {
	return []Check{
		{finding.NetworkConfigUnusable(), []Need{needNetworks}, networkConfig},
		{finding.NetworkWithoutResource(), []Need{needNetworks}, networkWithoutResource},
		{finding.ResourceUnused(), []Need{needNetworks}, resourceUnused},
		{finding.AnnotationMisplaced(), []Need{needMeta}, annotationMisplaced},
		{finding.AnnotationUnclean(), []Need{needNetworks}, annotationUnclean},
		{finding.NetworkMissing(), []Need{needAttached, needNetworks}, networkMissing},
		{finding.NetworksMalformed(), []Need{needAttached}, networksMalformed},
	}
}

// written goes through the networks that people wrote.
func (w *World) written(do func(*Network)) {
	for _, n := range w.ordered {
		if !n.Generated {
			do(n)
		}
	}
}

func networkConfig(w *World) []Finding {
	var all []Finding
	w.written(func(n *Network) {
		if n.ConfigErr != nil {
			p, _ := errors.AsType[manifest.Problem](n.ConfigErr)
			all = append(all, placed(n.ref(), p.Place, "", "the CNI configuration of %s %s", n.ref(), p.What))
			return
		}
		if n.Config.Kind() == manifest.Missing {
			return // Multus then looks for a file of that name on the node
		}
		for _, plugin := range n.plugins() {
			if plugin.Get("type").Text() == "" {
				all = append(all, found(n.ref(), plugin, "the CNI configuration of %s names no plugin: type is missing",
					n.ref()))
			}
		}
		if len(n.plugins()) == 0 {
			all = append(all, found(n.ref(), n.Config, "the CNI configuration of %s has no plugin", n.ref()))
		}
	})
	return w.unattached(finding.NetworkConfigUnusable(), all)
}

// needsDevice says whether a CNI plugin cannot work without a device that kubelet chose, or
// perhaps cannot.
func needsDevice(plugin manifest.Value) (needs, surely bool) {
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return plugin.Get(k).Text() != "" })
	}
	switch plugin.Get("type").Text() {
	case "sriov", "ib-sriov":
		return !has("deviceID"), true
	case "host-device":
		return !has("device", "hwaddr", "kernelpath", "pciBusID", "deviceID"), false
	}
	return false, false
}

func networkWithoutResource(w *World) []Finding {
	var all []Finding
	w.written(func(n *Network) {
		if n.Resource != "" {
			return
		}
		for _, plugin := range n.plugins() {
			needs, surely := needsDevice(plugin)
			if !needs {
				continue
			}
			f := found(n.ref(), n.Object.Value, "%s is of the CNI type %q, which needs a device, and names no resource",
				n.ref(), plugin.Get("type").Text())
			if !surely {
				f = f.as(finding.Warning).because("the configuration fixes no device either")
			}
			all = append(all, f.with(plugin.Get("type").Place(), "the type is here"))
			break
		}
	})
	return all
}

// resourceUnused is about types that make their interfaces from others.
func resourceUnused(w *World) []Finding {
	ignoring := []string{"macvlan", "ipvlan", "bridge", "ptp", "dummy", "vlan", "tap", "ipoib", "loopback"}
	var all []Finding
	w.written(func(n *Network) {
		plugins := n.plugins()
		if n.Resource == "" || len(plugins) == 0 || !slices.Contains(ignoring, plugins[0].Get("type").Text()) {
			return
		}
		for _, p := range plugins {
			if t := p.Get("type").Text(); needsAny(t) {
				return
			}
		}
		all = append(all, foundKey(n.ref(), n.At, "%s names the resource %q, and the CNI type %q makes no use of a device",
			n.ref(), n.Resource, plugins[0].Get("type").Text()).about(n.Resource))
	})
	return all
}

func needsAny(t string) bool {
	return slices.Contains([]string{"sriov", "ib-sriov", "host-device", "rdma", "ovs", "accelerated-bridge"}, t)
}

// annotationMisplaced: Kubernetes takes any key, so that a wrong one is no error to anybody.
func annotationMisplaced(w *World) []Finding {
	var all []Finding
	near := func(key, want string) bool {
		return key != want && distance(strings.ToLower(key), strings.ToLower(want), 2) <= 2
	}
	w.written(func(n *Network) {
		if at := n.Object.Get("metadata", "labels", resourceNameKey); at.Exists() {
			all = append(all, foundKey(n.ref(), at, "%s has %s among its labels: the key belongs under annotations", n.ref(),
				resourceNameKey))
		}
		for e := range n.Object.Get("metadata", "annotations").Entries() {
			if near(e.Key(), resourceNameKey) && !slices.Contains(w.nameKeys(), e.Key()) {
				all = append(all, foundKey(n.ref(), e, "%s has the annotation %q, which nobody reads: it is spelled %s",
					n.ref(), e.Key(), resourceNameKey))
			}
		}
	})
	for _, p := range w.workloads {
		for e := range p.Meta.Get("annotations").Entries() {
			switch {
			case e.Key() == resourceNameKey || near(e.Key(), resourceNameKey):
				all = append(all, foundKey(p.ref(), e, "%s has the annotation %s, which is one of networks, not of pods",
					p.ref(), e.Key()))
			case near(e.Key(), networksKey) && e.Key() != "k8s.v1.cni.cncf.io/network-status":
				all = append(all, foundKey(p.ref(), e, "%s has the annotation %q, which nobody reads: it is spelled %s",
					p.ref(), e.Key(), networksKey))
			}
		}
		if at := p.Meta.Get("labels", networksKey); at.Exists() {
			all = append(all, foundKey(p.ref(), at, "%s has %s among its labels: the key belongs under annotations", p.ref(),
				networksKey))
		}
	}
	return all
}

func annotationUnclean(w *World) []Finding {
	var all []Finding
	w.written(func(n *Network) {
		text := n.At.Text()
		switch {
		case text == "":
		case strings.ContainsAny(strings.TrimSpace(text), ", \t\n"):
			all = append(all, found(n.ref(), n.At, "%s names %q: one network has one resource", n.ref(),
				text).about(n.Resource))
		case strings.TrimSpace(text) != text:
			all = append(all, found(n.ref(), n.At, "%s names %q, with blanks around it", n.ref(), text).about(n.Resource))
		}
	})
	return all
}

func networkMissing(w *World) []Finding {
	elsewhere := map[string]*Network{}
	for _, n := range w.ordered {
		elsewhere[n.Name] = n
	}
	var all []Finding
	for _, p := range w.workloads {
		if p.Live && !p.holds() {
			continue
		}
		for _, a := range p.Attachments {
			if w.networks[a.key()] != nil {
				continue
			}
			f := found(p.ref(), a.At, "%s attaches network %q, which is not in namespace %s", p.ref(), a.Name, a.Namespace)
			if n := elsewhere[a.Name]; n != nil {
				f = f.with(n.Object.Place(), "there is one of that name in namespace %s",
					n.Namespace).advise("write %s/%s, or make the network in namespace %s", n.Namespace, n.Name, a.Namespace)
			}
			if !w.complete(networkKind) {
				f = f.as(finding.Note).because("the input does not have all NetworkAttachmentDefinitions of the cluster")
			}
			all = append(all, f)
		}
	}
	return w.unattached(finding.NetworkMissing(), all)
}

func networksMalformed(w *World) []Finding {
	var all []Finding
	for _, p := range w.workloads {
		for _, problem := range p.Malformed {
			all = append(all, placed(p.ref(), problem.Place, "", "the networks of %s cannot be read: %s", p.ref(),
				problem.What))
		}
	}
	return all
}
