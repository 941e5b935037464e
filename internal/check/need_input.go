package check

import "slices"

// What somebody would add to the input. One of them serves many needs.
const (
	inputNode     = "a captured node"
	inputMoreNode = "more of a captured node"
	inputPods     = "pods or workload templates"
	inputLivePods = "pods of a cluster"
	inputAgents   = "DaemonSets of device plugins"
	inputConfigs  = "configurations of device plugins"
	inputSlices   = "ResourceSlices"
	inputClaims   = "ResourceClaims or their templates"
	inputFewer    = "a part of the ResourceClaims at a time"
)

// input is what somebody would add for a need.
func (n Need) input() string {
	switch n {
	case needWorkloads, needAttached, needUses, needMeta:
		return inputPods
	case needPods, needAllPods:
		return inputLivePods
	case needAgents, needDeviceAgents, needOwnAgents, needSpecWriters:
		return inputAgents
	case needConfigs, needDeviceLists, needSocketNames:
		return inputConfigs
	case needDRA, needSlices:
		return inputSlices
	case needClaims, needClaimants, needParams, needSelectors, needAllotted:
		return inputClaims
	}
	if ofNode(n) != nil || n == needPlugged {
		return inputNode
	}
	return string(n)
}

// inputs are what is missing of needs, in short: for all that there is, or for some captured node.
func (w *World) inputs(needs []Need) []string {
	var all []string
	for _, n := range needs {
		if !w.has(n) {
			all = append(all, n.input())
		}
	}
	if len(w.captured) > 0 && slices.ContainsFunc(needs, func(n Need) bool { return ofNode(n) != nil }) {
		all = slices.DeleteFunc(all, func(s string) bool { return s == inputNode })
		if len(w.lacking(needs)) > 0 {
			all = append(all, inputMoreNode)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
