package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Version is a minor version of Kubernetes 1.
type Version int

// The versions whose features are known here. Later ones are taken for the newest: what is generally
// available stays so.
const (
	oldestVersion Version = 32
	newestVersion Version = 37
)

// ParseVersion reads 1.36, v1.36 or 1.36.2.
func ParseVersion(s string) (Version, error) {
	major, rest, _ := strings.Cut(strings.TrimPrefix(s, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(minor)
	if major != "1" || err != nil || n < 0 || n > 999 {
		return 0, fmt.Errorf("%s is no version of Kubernetes: write 1.%d, for example", quoted(s), newestVersion)
	}
	return Version(n), nil
}

// String is the version as people write it.
func (v Version) String() string { return fmt.Sprintf("1.%d", int(v)) }

// stage is how far a feature has come. What follows it is whether it is on by default.
type stage string

const (
	absent  stage = "not there"
	alpha   stage = "alpha and off by default"
	betaOff stage = "beta and off by default"
	beta    stage = "beta and on by default"
	stable  stage = "generally available"
)

func (s stage) on() bool { return s == beta || s == stable }

// gates is the state of each feature gate in 1.32, 1.33, ... 1.37.
//
// The table is pkg/features/kube_features.go of Kubernetes 1.37.2, which has the history of each gate.
func gates() map[string][newestVersion - oldestVersion + 1]stage {
	return map[string][newestVersion - oldestVersion + 1]stage{
		"DynamicResourceAllocation": {betaOff, betaOff, stable, stable, stable, stable},
		"DRAAdminAccess":            {alpha, alpha, beta, beta, stable, stable},
		"DRAPrioritizedList":        {absent, alpha, beta, beta, stable, stable},
		"DRADeviceTaints":           {absent, alpha, alpha, alpha, beta, stable},
		"DRAConsumableCapacity":     {absent, absent, alpha, alpha, beta, beta},
		"DRAExtendedResource":       {absent, absent, alpha, alpha, beta, stable},
	}
}

// gateNames lists the feature gates that a policy may name.
func gateNames() []string {
	return []string{"DynamicResourceAllocation", "DRAAdminAccess", "DRAPrioritizedList", "DRADeviceTaints",
		"DRAConsumableCapacity", "DRAExtendedResource"}
}

// stageOf is the state of a gate in a version.
func stageOf(gate string, v Version) stage {
	if v < oldestVersion {
		return absent
	}
	return gates()[gate][min(v, newestVersion)-oldestVersion]
}

// since is the first version in which a gate is on by default.
func since(gate string) Version {
	for v := oldestVersion; v < newestVersion; v++ {
		if stageOf(gate, v).on() {
			return v
		}
	}
	return newestVersion
}

// lacks says why a feature cannot be used in the cluster that the policy is for, and what to do; "" when
// it can. Where a gate is off the API server drops the field without a word, so that the pod would
// run without what it asked for.
func (p *Policy) lacks(gate string) (what, remedy string) {
	state := stageOf(gate, p.Kubernetes)
	if state.on() {
		return "", ""
	}
	what = fmt.Sprintf("needs %s, which is %s in Kubernetes %s", gate, state, p.Kubernetes)
	if state == absent {
		return what, fmt.Sprintf("use Kubernetes %s or later, and say so in the policy's kubernetes", since(gate))
	}
	if slices.Contains(p.FeatureGates, gate) {
		return "", ""
	}
	return what, fmt.Sprintf("use Kubernetes %s or later, or turn the gate on in the API server, the scheduler, "+
		"the controller manager and the kubelets, and name it in the policy's featureGates", since(gate))
}

// resourceAPI is the version of resource.k8s.io that a version of Kubernetes serves: v1 since 1.34, when
// DRA became generally available; v1beta2 has the fields of v1, v1beta1 has requests without exactly.
func (v Version) resourceAPI() string {
	switch {
	case v >= 34:
		return "resource.k8s.io/v1"
	case v == 33:
		return "resource.k8s.io/v1beta2"
	}
	return "resource.k8s.io/v1beta1"
}
