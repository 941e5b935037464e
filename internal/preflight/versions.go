package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// needs is what a way needs of Kubernetes 1 (pkg/features/kube_features.go of 1.37).
type needs struct {
	// minor is the oldest version, and why is the feature that decides.
	minor int
	why   string
	// gates are those that have to be on.
	gates map[string]gate
}

// gate has the versions that have it on by default, and since which it cannot be switched off.
type gate struct{ on, locked int }

func needsOf(w Way) needs {
	if w == DRA {
		return needs{minor: 34, why: "resource.k8s.io/v1", gates: map[string]gate{
			"DynamicResourceAllocation": {34, 35}, "KubeletPodResourcesDynamicResources": {34, 36},
		}}
	}
	return needs{minor: 31, why: "CDI names in the answers of device plugins", gates: map[string]gate{
		"DevicePluginCDIDevices": {29, 31}, "KubeletPodResourcesGet": {34, 36},
	}}
}

// extendedNameMinor is the version that has DRAExtendedResource on by default.
const extendedNameMinor = 36

func kubeletVersion(n *check.Node) manifest.Value {
	return n.Object.Get("status", "nodeInfo", "kubeletVersion")
}

// kubelets compares the versions that nodes have with the oldest that will do.
func kubelets(s *survey, w Way, v *verdict) {
	want, seen := needsOf(w), map[string]int{}
	all := s.hosts()
	for _, h := range all {
		version := h.kubeletVersion()
		minor, ok := check.Minor(version)
		switch {
		case !ok:
			v.open("the status of node " + h.name)
		case minor < want.minor:
			v.no(h.found(finding.KubeletTooOld(), "kubeletVersion",
				"kubelet of node %s is %s: the way %s wants 1.%d or later, for %s", h.name, version, w, want.minor, want.why))
		default:
			seen[version]++
		}
	}
	for _, version := range slices.Sorted(maps.Keys(seen)) {
		v.yes(fmt.Sprintf("kubelet %s on %s", version, counted(seen[version], "node")))
	}
	if len(all) == 0 {
		v.open("nodes with status")
	}
}

// gates: what is on by default may be off by kubelet's configuration, and the other way round. What
// kubelet is told by flags, and by files that are laid over its configuration, no input has: they are not known
// to leave on what they may switch off.
func gates(s *survey, w Way, v *verdict) {
	s.eachKubelet(v, func(n *captured) {
		version := s.versionOf(n)
		minor, known := check.Minor(version)
		wanted := needsOf(w).gates
		for _, name := range slices.Sorted(maps.Keys(wanted)) {
			on, set := n.kubelet.Gates[name]
			switch of := wanted[name]; {
			case set && !on:
				v.no(n.found(finding.GateOff(), "%s of node %s switches %s off", n.kubelet.File, n.name, name))
			case set:
				v.yes(fmt.Sprintf("%s is on in %s of node %s", name, n.kubelet.File, n.name))
			case !known:
				v.open(fmt.Sprintf("the version of kubelet of node %s: %s is on by default since 1.%d", n.name, name, of.on))
			case minor < of.on:
				v.no(n.found(finding.GateOff(), "%s is off by default in kubelet %s of node %s, and %s does not switch it on",
					name, version, n.name, n.kubelet.File))
			case minor < of.locked:
				v.open(fmt.Sprintf("the flags and drop-in files of kubelet %s of node %s: %s is on by default, and cannot be "+
					"switched off since 1.%d", version, n.name, name, of.locked))
			default:
				v.yes(fmt.Sprintf("%s cannot be off in kubelet %s of node %s", name, version, n.name))
			}
		}
	})
}

// versionOf is kubelet's version by the capture, or by the node's object.
func (s *survey) versionOf(n *captured) string {
	if n.c.Meta.Kubelet != "" {
		return n.c.Meta.Kubelet
	}
	if of := s.View.Node(n.name); of != nil {
		return kubeletVersion(of).Text()
	}
	return ""
}

// served: an object of the version that came from a cluster shows it as well as the server's word.
func served(s *survey, _ Way, v *verdict) {
	const want = "resource.k8s.io/v1"
	if s.API != nil {
		if slices.Contains(s.API.Served, want) {
			v.yes(fmt.Sprintf("the API server %s serves %s", s.API.Version, want))
		} else {
			v.no(found(finding.ClaimsNotServed(), check.Ref{}, manifest.Value{},
				"the API server %s does not serve %s", s.API.Version, want))
		}
		return
	}
	for _, kind := range []string{"ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate"} {
		for _, o := range s.View.Objects(kind) {
			if o.FromCluster && o.APIVersion == want {
				v.yes(fmt.Sprintf("%s comes from a cluster, as %s", s.View.RefOf(o), want))
				return
			}
		}
	}
	v.open("the cluster (--live), or what it has of resource.k8s.io/v1")
}

// extendedNames: a server that does not know the field drops it, and the class is there without.
func extendedNames(s *survey, _ Way, v *verdict) {
	named, nodes := 0, s.hosts()
	for _, o := range s.View.Objects("DeviceClass") {
		at := o.Get("spec", "extendedResourceName")
		if at.Text() == "" {
			continue
		}
		named++
		for _, h := range nodes {
			version := h.kubeletVersion()
			switch minor, ok := check.Minor(version); {
			case !ok:
				v.open("the status of node " + h.name)
			case minor < extendedNameMinor:
				v.no(found(finding.NameTooNew(), s.View.RefOf(o), at,
					"%s has the extended resource name %q, and kubelet of node %s is %s",
					s.View.RefOf(o), at.Text(), h.name, version))
			}
		}
	}
	switch {
	case named == 0 && !s.View.Complete("DeviceClass"):
		v.open("DeviceClasses, all of them")
	case named == 0:
		v.yes("no class has one")
	case len(nodes) == 0:
		v.open("nodes with status")
	case len(v.findings)+len(v.tell) == 0:
		v.yes(fmt.Sprintf("%s with one, and every node is of 1.%d or later", counted(named, "class"), extendedNameMinor))
	}
}

func counted(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "lass"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
