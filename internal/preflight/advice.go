package preflight

import (
	"strings"

	"kata-device-plugin/internal/manifest"
)

// adviceFor is what to do about an object that depends on the name of a resource.
func adviceFor(o *manifest.Object, m Move) string {
	class := "CLASS"
	if m.Class != "" {
		class = m.Class
	}
	switch o.Kind {
	case "ResourceQuota":
		return "a class with this extended resource name counts here as the plugin does; for claims add " + class +
			".deviceclass.resource.k8s.io/devices to the quota"
	case "LimitRange":
		return "it does not count claims: a class with this extended resource name keeps it in force"
	case "ClusterQueue", "Cohort", "LocalQueue":
		return "map the device class to the name in Kueue's configuration (kubectl device render --kueue), so that " +
			"admission counts the same devices"
	case "ResourceFlavor", "Topology", "AdmissionCheck":
		return "look whether nodes that are moved still belong to it"
	case "KubeSchedulerConfiguration":
		return "the scheduler scores claims in another plugin, DynamicResources: weights of this resource have no effect " +
			"on claims"
	case "HorizontalPodAutoscaler", "VerticalPodAutoscaler":
		return "an autoscaler sees requests in the pod, not claims: scale by another metric"
	case "PrometheusRule":
		return "kube_pod_container_resource_requests and kube_node_status_allocatable have no series for claims: use those " +
			"of device-exporter, which are the same for both ways"
	case "DeviceClass":
		return "leave it: it is what pods with this name will get their devices by. One class for one name, in the " +
			"whole cluster"
	case "ConfigMap":
		return adviceForConfig(o)
	case "ClusterPolicy", "Policy", "ConstraintTemplate", "ValidatingAdmissionPolicy",
		"ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "ValidatingWebhookConfiguration",
		"MutatingWebhookConfiguration":
		return adviceForRule
	}
	if o.Group() == "constraints.gatekeeper.sh" || o.Group() == "kyverno.io" || o.Group() == "policies.kyverno.io" {
		return adviceForRule
	}
	return "look what it does with the name before you migrate"
}

const adviceForRule = "a pod with a claim passes this rule: add one for resourceClaims, or keep the name with a " +
	"class that has it"

// adviceForConfig tells dashboards, settings of schedulers and of plugins apart by what is in them.
func adviceForConfig(o *manifest.Object) string {
	for text := range o.Get("data").Entries() {
		switch {
		case strings.Contains(text.Text(), `"panels"`):
			return "a dashboard: series of kube-state-metrics for this name have none for claims, those of device-exporter have"
		case strings.Contains(text.Text(), "KubeSchedulerConfiguration"):
			return "settings of a scheduler: weights of this resource have no effect on claims, which the plugin " +
				"DynamicResources scores"
		case strings.Contains(text.Text(), "deviceClassMappings"):
			return "Kueue maps device classes to this name: that is what migration wants"
		case strings.Contains(text.Text(), "resourceList") || strings.Contains(text.Text(), "configList"):
			return "the configuration of a device plugin: it ends with the plugin"
		}
	}
	return "look which program reads it before you migrate"
}
