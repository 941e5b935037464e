package exporter

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/nodestate"
)

// Metric is one metric as it is promised. Everything that is said of metrics is made of these: what
// the collector exports, what "introspect metrics" prints, and the table in docs/exporter.md.
type Metric struct {
	Name      string    `json:"name"`
	Type      Type      `json:"type"`
	Labels    []string  `json:"labels,omitempty"`
	Help      string    `json:"help"`
	Stability Stability `json:"stability"`
	// Needs are the sources that have to be fresh: without one of them there is no series.
	Needs []nodestate.Source `json:"needs,omitempty"`
}

// Type is Prometheus's.
type Type string

// The types that there are.
const (
	Gauge   Type = "gauge"
	Counter Type = "counter"
)

// Stability says what may change.
type Stability string

// The stabilities.
const (
	// Stable: name, labels and meaning stay for a major version; a label may be added to an info.
	Stable Stability = "stable"
	// Alpha: it may change in any version, which the change log says.
	Alpha Stability = "alpha"
)

// prefix begins the names of all metrics.
const prefix = "passthrough_"

// Contract are all metrics, by name.
func Contract() []Metric {
	all := slices.Concat(deviceMetrics(), kubeletMetrics(), resolverMetrics(), selfMetrics())
	for i := range all {
		all[i].Name = prefix + all[i].Name
	}
	slices.SortFunc(all, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func needs(s ...nodestate.Source) []nodestate.Source { return s }

// deviceMetrics are about the hardware and what the rules make of it.
func deviceMetrics() []Metric {
	hardware := needs(nodestate.Hardware)
	return []Metric{{
		Name: "device_info", Type: Gauge, Stability: Stable, Needs: hardware,
		Labels: []string{"pci_address", "type", "vendor", "product", "driver", "numa_node", "iommu_group", "resource"},
		Help: "1 for each PCI function that a rule is about, that is bound to VFIO, or that a container has. " +
			"What is unknown is empty; several resources are separated by commas.",
	}, {
		Name: "device_healthy", Type: Gauge, Stability: Stable, Needs: hardware, Labels: []string{"pci_address", "resource"},
		Help: "1 for a declared function of which every unit may be handed out, else 0.",
	}, {
		Name: "device_health_transitions_total", Type: Counter, Stability: Stable, Labels: []string{"pci_address", "resource", "to"},
		Help: "How often a declared function turned healthy or unhealthy since the exporter was started, as device_healthy has it. " +
			"One that leaves turns unhealthy, and keeps its series.",
	}, {
		Name: "devices", Type: Gauge, Stability: Stable, Needs: hardware, Labels: []string{"resource", "state"},
		Help: "Units of each resource by state: discovered is always excluded plus healthy plus unhealthy. " +
			"The resource none is for candidates that are of no resource.",
	}, {
		Name: "devices_excluded", Type: Gauge, Stability: Stable, Needs: hardware, Labels: []string{"resource", "finding"},
		Help: "Candidates that are no device, by the ID of the finding that says why.",
	}, {
		Name: "devices_unhealthy", Type: Gauge, Stability: Stable, Needs: hardware, Labels: []string{"resource", "finding"},
		Help: "Declared units that must not be handed out, by the ID of the first finding.",
	}, {
		Name: "findings", Type: Gauge, Stability: Alpha, Needs: hardware, Labels: []string{"finding", "severity"},
		Help: "Standing findings of the node's rules by ID, beside the faults of devices.",
	}, {
		Name: "resource_owner_info", Type: Gauge, Stability: Alpha, Needs: needs(nodestate.Hardware, nodestate.Locks), Labels: []string{"resource", "owner"},
		Help: "1 for who has the node's lock of a declared resource: device_plugin, dra_driver or nobody.",
	}}
}

// kubeletMetrics are about what kubelet offers and who has it.
func kubeletMetrics() []Metric {
	const hardware, pods, allocatable, record = nodestate.Hardware, nodestate.Pods, nodestate.Allocatable, nodestate.Record
	return []Metric{{
		Name: "device_allocatable", Type: Gauge, Stability: Stable, Needs: needs(hardware, allocatable), Labels: []string{"pci_address", "resource"},
		Help: "1 for a declared function of which kubelet has every unit as allocatable, else 0.",
	}, {
		Name: "device_allocation_info", Type: Gauge, Stability: Stable, Needs: needs(pods),
		Labels: []string{
			"pci_address", "device", "source", "resource", "namespace", "pod", "container", "driver", "pool", "claim", "request", "admin_access",
		},
		Help: "1 for each device that a container has, from a device plugin or by a claim (source). " +
			"Only devices that can be told to be a PCI function. admin_access is true for a claim that looks at a device which another may hold, " +
			"and empty where nobody has noted it. With --pod-uid there is the label pod_uid as well.",
	}, {
		Name: "resource_allocatable", Type: Gauge, Stability: Stable, Needs: needs(allocatable), Labels: []string{"resource"},
		Help: "Units that kubelet has as allocatable. Only resources whose units are hardware.",
	}, {
		Name: "resource_allocated", Type: Gauge, Stability: Stable, Needs: needs(pods), Labels: []string{"resource"},
		Help: "Units that containers have from a device plugin. Only resources whose units are hardware.",
	}, {
		Name: "resource_free", Type: Gauge, Stability: Stable, Needs: needs(pods, allocatable, record, nodestate.PodUIDs), Labels: []string{"resource"},
		Help: "Allocatable units that kubelet can still give: no container has them, and kubelet's record keeps them for no init container of a pod that is known to live. " +
			"It is by a device that another of its containers has, or with --pod-uid by kubelet's Pods API: without either, what only an init container has is counted. " +
			"It is not the difference of the two: a device that a container has may be allocatable no more.",
	}, {
		Name: "resource_contested_devices", Type: Gauge, Stability: Alpha, Needs: needs(hardware, allocatable, pods, nodestate.Claims), Labels: []string{"resource", "reason"},
		Help: "Devices that two have a hand in for longer than --settle: foreign_list, two_mechanisms or two_resources.",
	}, {
		Name: "kubelet_registered", Type: Gauge, Stability: Stable, Needs: needs(record), Labels: []string{"resource"},
		Help: "1 for a resource that kubelet has in its record, else 0. Not for resources of the DRA driver, which has the lock: " +
			"while nobody knows who has that, there is no 0.",
	}, {
		Name: "kubelet_plugin_sockets", Type: Gauge, Stability: Alpha, Needs: needs(nodestate.Sockets), Labels: []string{"resource", "state"},
		Help: "Sockets of a resource's plugin by state: listening or dead. More than one that listens are two plugins.",
	}, {
		Name: "allocations_not_released", Type: Gauge, Stability: Stable, Needs: needs(pods), Labels: []string{"source"},
		Help: "Records of devices that no living pod has, for longer than --settle: in kubelet's checkpoint, the claims' records, or CDI specs of claims. " +
			"The last has no series while a spec is unexamined that may be a claim's, and with --pod-uid the first none while kubelet's Pods API does not answer.",
	}, {
		Name: "allocations_not_released_oldest_timestamp_seconds", Type: Gauge, Stability: Stable, Needs: needs(pods), Labels: []string{"source"},
		Help: "When the oldest of them was first seen so, in seconds since 1970. There is none where there are none.",
	}, {
		Name: "pod_uids", Type: Gauge, Stability: Alpha, Needs: needs(pods), Labels: []string{"result"},
		Help: "Pods with devices by what is known of their UID: resolved, ambiguous or unknown. Only with --pod-uid.",
	}}
}

// resolverMetrics are about claims and CDI specs.
func resolverMetrics() []Metric {
	return []Metric{{
		Name: "claims", Type: Gauge, Stability: Stable, Needs: needs(nodestate.Claims), Labels: []string{"state"},
		Help: "Claims that the DRA driver has a record of, by state. Only where there is a driver.",
	}, {
		Name: "cdi_devices", Type: Gauge, Stability: Stable, Needs: needs(nodestate.Specs, nodestate.Hardware), Labels: []string{"kind", "state"},
		Help: "CDI names of devices that are offered or claimed, by what they come to: resolvable, missing, stale, conflicting, unreadable, " +
			"or unknown where a spec that was not examined may have them.",
	}, {
		Name: "cdi_specs", Type: Gauge, Stability: Stable, Needs: needs(nodestate.Specs), Labels: []string{"state"},
		Help: "CDI spec files of all owners by state: valid, invalid, too_new (for Kata's Go shim) or unexamined, " +
			"which is too large, or cannot be read by the exporter. A directory that cannot be read is one of them.",
	}}
}

// selfMetrics are about what the rest rests on.
func selfMetrics() []Metric {
	return []Metric{{
		Name: "source_up", Type: Gauge, Stability: Stable, Labels: []string{"source"},
		Help: "1 for a source that answered in full when it was asked last, else 0. Not for sources that the node does not have.",
	}, {
		Name: "source_stale", Type: Gauge, Stability: Stable, Labels: []string{"source"},
		Help: "1 for a source whose last answer is older than --stale-after: what rests on it is not exported. Else 0.",
	}, {
		Name: "source_last_success_timestamp_seconds", Type: Gauge, Stability: Stable, Labels: []string{"source"},
		Help: "When a source answered last, in seconds since 1970. There is none for one that never did.",
	}, {
		Name: "state_timestamp_seconds", Type: Gauge, Stability: Stable,
		Help: "When the sources were joined last, in seconds since 1970. A scrape asks nobody: it tells this state.",
	}, {
		Name: "looks_total", Type: Counter, Stability: Alpha, Labels: []string{"depth"},
		Help: "Looks at the node by depth: full, glance, or reuse, which does not read the hardware.",
	}, {
		Name: "look_duration_seconds", Type: Gauge, Stability: Alpha,
		Help: "How long it took to read and join everything but kubelet's answers, the last time. There is none before the first.",
	}, {
		Name: "kubelet_answer_duration_seconds", Type: Gauge, Stability: Alpha,
		Help: "How long kubelet took for its last answers about pods and devices. There is none before the first.",
	}, {
		Name: "scrape_duration_seconds", Type: Gauge, Stability: Alpha,
		Help: "How long it took to make the series of this scrape.",
	}, {
		Name: "build_info", Type: Gauge, Stability: Stable, Labels: []string{"version"},
		Help: "1, with the version of the exporter as a label.",
	}}
}
