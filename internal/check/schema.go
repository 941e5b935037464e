package check

import (
	"slices"
	"strings"
)

// What the two plugins know. A key that they do not know they ignore without a word.

// deviceType is a type of the SR-IOV plugin with the selectors that it has.
type deviceType struct {
	name      string
	selectors []string
}

func deviceTypes() []deviceType {
	every := []string{"vendors", "devices", "drivers"}
	network := []string{"pfNames", "rootDevices", "linkTypes", "isRdma", "needVhostNet"}
	return []deviceType{
		{"netDevice", slices.Concat(every, network, []string{"pciAddresses", "acpiIndexes", "ddpProfiles", "pKeys",
			"vdpaType"})},
		{"accelerator", append(every[:3:3], "pciAddresses")},
		{"auxNetDevice", slices.Concat(every, network, []string{"auxTypes"})},
	}
}

// schema is what a plugin knows at each level.
type schema struct{ top, pool, selectors []string }

func sriovSchema() schema {
	s := schema{
		top:  []string{"resourceList"},
		pool: []string{"resourceName", "resourcePrefix", "deviceType", "selectors", "excludeTopology", "additionalInfo"},
	}
	for _, t := range deviceTypes() {
		for _, key := range t.selectors {
			if !slices.Contains(s.selectors, key) {
				s.selectors = append(s.selectors, key)
			}
		}
	}
	return s
}

func rdmaSchema() schema {
	return schema{
		top:       []string{"configList", "periodicUpdateInterval", "kubeletRootDir"},
		pool:      []string{"resourceName", "resourcePrefix", "rdmaHcaMax", "selectors", "devices"},
		selectors: []string{"vendors", "deviceIDs", "drivers", "ifNames", "linkTypes"},
	}
}

// knows says whether a key is in a list, without regard to case, as the plugins' decoder does.
func knows(keys []string, key string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(k, key) })
}

// generated are keys that the SR-IOV operator writes, and old files have, without a meaning.
func generated(key string) bool {
	return knows([]string{"SelectorObj", "SelectorObjs", "sriovMode"}, key)
}

// nearest is the key of a list that is most like one, "" when none is.
func nearest(keys []string, key string) string {
	best, at := "", 3
	for _, k := range keys {
		if d := distance(fold(k), fold(key), at-1); d < at {
			best, at = k, d
		}
	}
	return best
}

// pciDriver is the driver of the PCI function for a module that makes an RDMA device of it.
func pciDriver(module string) string {
	return map[string]string{
		"mlx5_ib": "mlx5_core", "mlx4_ib": "mlx4_core", "irdma": "ice", "i40iw": "i40e", "bnxt_re": "bnxt_en", "qedr": "qede",
		"iw_cxgb4": "cxgb4", "hns_roce_hw_v2": "hns3", "ib_core": "mlx5_core", "ib_uverbs": "mlx5_core",
	}[module]
}
