package main

import (
	"fmt"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"
)

// newObject makes an empty object of each kind that the manifests may hold.
func newObject(apiVersion, kind string) any {
	switch apiVersion + " " + kind {
	case "apps/v1 DaemonSet":
		return &appsv1.DaemonSet{}
	case "networking.k8s.io/v1 NetworkPolicy":
		return &networkingv1.NetworkPolicy{}
	case "v1 ServiceAccount":
		return &corev1.ServiceAccount{}
	case "rbac.authorization.k8s.io/v1 ClusterRole":
		return &rbacv1.ClusterRole{}
	case "rbac.authorization.k8s.io/v1 ClusterRoleBinding":
		return &rbacv1.ClusterRoleBinding{}
	case "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy":
		return &admissionv1.ValidatingAdmissionPolicy{}
	case "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding":
		return &admissionv1.ValidatingAdmissionPolicyBinding{}
	case "resource.k8s.io/v1 DeviceClass":
		return &resourcev1.DeviceClass{}
	case "resource.k8s.io/v1 ResourceClaim":
		return &resourcev1.ResourceClaim{}
	case "resource.k8s.io/v1 ResourceClaimTemplate":
		return &resourcev1.ResourceClaimTemplate{}
	case "v1 Pod": // of examples
		return &corev1.Pod{}
	case "v1 ConfigMap": // with dashboards
		return &corev1.ConfigMap{}
	case "monitoring.coreos.com/v1 PodMonitor":
		return &monitoringv1.PodMonitor{}
	case "monitoring.coreos.com/v1 PrometheusRule":
		return &monitoringv1.PrometheusRule{}
	}
	return nil
}

// check decodes an object into its project's own type and refuses unknown and doubled fields.
func check(object []byte) error {
	var id struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(object, &id); err != nil {
		return fmt.Errorf("read its kind: %w", err)
	}
	into := newObject(id.APIVersion, id.Kind)
	if into == nil {
		return fmt.Errorf("%s %s is not a kind that this project deploys", id.APIVersion, id.Kind)
	}
	if err := yaml.UnmarshalStrict(object, into); err != nil {
		return fmt.Errorf("decode %s %s: %w", id.Kind, id.Metadata.Name, err)
	}
	if of, ok := into.(*corev1.ConfigMap); ok {
		return checkDashboards(of)
	}
	// kustomize knows this of old kinds only, and gives the others its namespace.
	if id.Metadata.Namespace != "" && clusterWide(id.Kind) {
		return fmt.Errorf("%s %s is in namespace %s: its kind is in none", id.Kind, id.Metadata.Name, id.Metadata.Namespace)
	}
	return nil
}

// clusterWide says whether objects of a kind are in no namespace.
func clusterWide(kind string) bool {
	switch kind {
	case "ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "DeviceClass":
		return true
	}
	return false
}
