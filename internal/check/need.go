package check

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/manifest"
)

// Need is an input that a check cannot do without.
type Need string

// The inputs.
const (
	needWorkloads Need = "pods or workload templates"
	needPods      Need = "pods from a cluster"
	needNetworks  Need = "NetworkAttachmentDefinitions"
	needAttached  Need = "pods that attach networks"
	needConfigs   Need = "device plugin configurations in ConfigMaps"
	needAgents    Need = "DaemonSets of device plugins"
	needNodes     Need = "nodes with status"
	needEvents    Need = "events"
	needProducers Need = "plugin configurations, policies, nodes or device classes that advertise a resource"
	needUses      Need = "pods, networks or plugins that name a resource"
	needMeta      Need = "pods or networks"
	needQuotas    Need = "ResourceQuotas or LimitRanges"
	needDRA       Need = "DeviceClasses or ResourceSlices"
	needNodeNICs  Need = "SriovNetworkNodeStates"
	needSlices    Need = "ResourceSlices"
	needClasses   Need = "DeviceClasses"
	needClaims    Need = "ResourceClaims or ResourceClaimTemplates"
	needClaimants Need = "pods or workload templates with claims"
	needParams    Need = "claims or device classes with parameters for the driver of this project"
	needSelectors Need = "claims or device classes with selectors"
	needAllotted  Need = "ResourceClaims from a cluster"
	needPlugged   Need = "captured nodes, plugin configurations or network statuses that say which PCI functions a plugin has"
	needRoles     Need = "roles with their bindings"

	needSpecWriters Need = "DaemonSets of device plugins, or captured nodes of which every CDI spec was read"
	needDeviceLists Need = "captured nodes with the devices that kubelet has from plugins, or plugin configurations with shares"

	needOwnAgents    Need = "workloads of the programs of this project"
	needDeviceAgents Need = "workloads of device plugins or DRA drivers"
	needAllPods      Need = "all pods of the cluster"
	needSocketNames  Need = "captured nodes with kubelet's plugin directories, or plugin configurations"

	// Of captured nodes.
	needCapture     Need = "captured nodes"
	needSpecsAsked  Need = "captured nodes on which CDI directories were looked for"
	needSpecDirs    Need = "captured nodes with both CDI directories"
	needSpecTexts   Need = "captured nodes of which every CDI spec was read"
	needSpecTimes   Need = "captured nodes with the times at which the kernel was started and CDI specs were written"
	needNames       Need = "captured nodes with kubelet's record of devices or its answer who has which"
	needRuntime     Need = "captured nodes with the settings of the container runtime"
	needSockets     Need = "captured nodes with kubelet's plugin directories"
	needKubelet     Need = "captured nodes on which kubelet has made its directories"
	needLabels      Need = "captured nodes with SELinux, on which the directories of plugins or CDI were looked for"
	needLimits      Need = "captured nodes with kubelet's configuration and the hardware"
	needOffers      Need = "captured nodes with the hardware and the devices that kubelet has from plugins"
	needPluginDir   Need = "captured nodes on which the directory of device plugins was looked for"
	needRecord      Need = "captured nodes with kubelet's record of devices"
	needRecordAsked Need = "captured nodes on which kubelet's record was looked for"
	needAllocatable Need = "captured nodes with kubelet's answer which devices it offers"
	needHolders     Need = "captured nodes with kubelet's answer who has which device"
	needAnswer      Need = "captured nodes on which kubelet was asked who has which device"
	needRealNames   Need = "captured nodes with the real names of pods"
	needLocks       Need = "captured nodes on which a device plugin of this project runs"
	needNICRules    Need = "captured nodes with their Node objects, who has which device, and the configuration of their nic-device-plugin"
	needFunctions   Need = "captured nodes with their PCI functions"
	needHardware    Need = "captured nodes with all of /sys and /dev that is looked at"
)

// missing lists what is needed and not there.
func (w *World) missing(needs []Need) []string {
	var all []string
	for _, n := range needs {
		if !w.has(n) {
			all = append(all, string(n))
		}
	}
	if lacking := w.lacking(needs); len(all) == 0 && len(lacking) > 0 && len(lacking) == len(w.captured) {
		return lacking // each has a part, and none has all
	}
	return all
}

// lacking lists the captured nodes of which a check cannot say anything, although it can of others.
func (w *World) lacking(needs []Need) []string {
	var all []string
	for _, n := range w.captured {
		var missing []string
		for _, need := range needs {
			if is := ofNode(need); is != nil && !is(n) {
				missing = append(missing, string(need))
			}
		}
		if len(missing) > 0 {
			all = append(all, "capture of node "+n.name+" as one of these: "+strings.Join(missing, "; "))
		}
	}
	return all
}

func (w *World) has(n Need) bool {
	some := func(kinds ...string) bool {
		return slices.ContainsFunc(kinds, func(k string) bool { return len(w.kinds[k]) > 0 })
	}
	switch n {
	case needWorkloads:
		return len(w.workloads) > 0
	case needPods:
		return slices.ContainsFunc(w.workloads, func(p *Workload) bool { return p.Live })
	case needNetworks:
		return len(w.networks) > 0 || w.complete(networkKind)
	case needAttached:
		return slices.ContainsFunc(w.workloads, func(p *Workload) bool { return len(p.Attachments)+len(p.Malformed) > 0 })
	case needConfigs:
		return len(w.configs) > 0
	case needAgents:
		return len(w.agents) > 0
	case needNodes:
		return slices.ContainsFunc(w.nodes, func(n *Node) bool { return n.Object.Get("status", "capacity").Len() > 0 })
	case needEvents:
		return some("Event")
	case needProducers:
		return len(w.names.all)+len(w.names.known) > 0
	case needUses:
		return len(w.uses)+len(w.names.all) > 0
	case needMeta:
		return len(w.workloads)+len(w.networks) > 0
	case needQuotas:
		return some("ResourceQuota", "LimitRange")
	case needDRA:
		return some("DeviceClass", "ResourceSlice")
	case needNodeNICs:
		return some("SriovNetworkNodeState")
	}
	return w.hasOfClaims(n) || w.hasOfNodes(n)
}

// hasOfClaims is has for what has to do with claims and boundaries.
func (w *World) hasOfClaims(n Need) bool {
	some := func(kinds ...string) bool {
		return slices.ContainsFunc(kinds, func(k string) bool { return len(w.kinds[k]) > 0 })
	}
	switch n {
	case needSlices:
		return some("ResourceSlice") || w.complete("ResourceSlice")
	case needClasses:
		return some("DeviceClass") || w.complete("DeviceClass")
	case needClaims:
		return some("ResourceClaim", "ResourceClaimTemplate") || w.complete("ResourceClaim")
	case needClaimants:
		return slices.ContainsFunc(w.workloads, func(p *Workload) bool { return p.Spec.Get("resourceClaims").Len() > 0 })
	case needParams:
		return len(w.parameters()) > 0
	case needSelectors:
		return slices.ContainsFunc(w.selections(), func(s selection) bool { return s.list.Len() > 0 })
	case needAllotted:
		return slices.ContainsFunc(w.kinds["ResourceClaim"], func(o *manifest.Object) bool { return o.FromCluster }) ||
			w.complete("ResourceClaim")
	case needPlugged:
		return len(w.plugged()) > 0 || slices.ContainsFunc(w.captured, func(n *captured) bool { return n.told })
	case needRoles:
		return some("ClusterRole", "Role") && some("ClusterRoleBinding", "RoleBinding")
	case needDeviceAgents:
		return len(w.deviceAgents()) > 0
	case needOwnAgents:
		return slices.ContainsFunc(w.deviceAgents(), func(a deviceAgent) bool { return a.ours })
	case needAllPods:
		return w.complete("Pod")
	case needSocketNames:
		return len(w.configs) > 0 || slices.ContainsFunc(w.captured, (*captured).hasPluginSockets)
	case needSpecWriters:
		return len(w.agents) > 0 || slices.ContainsFunc(w.captured, (*captured).hasSpecTexts)
	case needDeviceLists:
		return len(w.configs) > 0 || slices.ContainsFunc(w.captured, func(n *captured) bool { return len(n.deviceLists()) > 0 })
	}
	return false
}

// hasOfNodes is has for what captured nodes may have: one of them is enough.
func (w *World) hasOfNodes(n Need) bool {
	is := ofNode(n)
	return is != nil && slices.ContainsFunc(w.captured, is)
}

// ofNode is what a need means for a captured node, nil for one that is not about nodes.
func ofNode(n Need) func(*captured) bool {
	switch n {
	case needCapture:
		return (*captured).hasEntries
	case needSpecsAsked:
		return (*captured).asked
	case needSpecDirs:
		return (*captured).hasSpecDirs
	case needSpecTexts:
		return (*captured).hasSpecTexts
	case needNames:
		return func(n *captured) bool { return n.hasRecord() || n.hasHolders() }
	case needSpecTimes:
		return (*captured).hasSpecTimes
	case needKubelet:
		return (*captured).hasKubelet
	case needLabels:
		return (*captured).hasLabels
	case needLimits:
		return (*captured).hasLimits
	case needOffers:
		return (*captured).hasOffers
	case needRuntime:
		return func(n *captured) bool { return n.runtime() != nil }
	case needSockets:
		return (*captured).hasSockets
	case needPluginDir:
		return (*captured).hasPluginDir
	case needRecord:
		return (*captured).hasRecord
	case needRecordAsked:
		return (*captured).hasRecordAsked
	case needAllocatable:
		return (*captured).hasAllocatable
	case needHolders:
		return (*captured).hasHolders
	case needAnswer:
		return (*captured).hasAnswer
	case needRealNames:
		return (*captured).hasNames
	case needLocks:
		return (*captured).hasLocks
	case needNICRules:
		return (*captured).hasNICRules
	case needFunctions:
		return (*captured).hasFunctions
	case needHardware:
		return (*captured).hasHardware
	}
	return nil
}
