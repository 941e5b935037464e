package chart

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Object is an object of Kubernetes in its own type, or unstructured where the type is of an operator.
type Object interface {
	metav1.Object
	runtime.Object
}

// ID names an object.
func ID(o Object) string {
	return fmt.Sprintf("%s %s/%s", o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName())
}

// empty makes an empty object of each kind that the chart and the bases may hold.
func empty(apiVersion, kind string) Object {
	switch apiVersion + " " + kind {
	case "apps/v1 DaemonSet":
		return &appsv1.DaemonSet{}
	case "v1 ServiceAccount":
		return &corev1.ServiceAccount{}
	case "v1 ConfigMap":
		return &corev1.ConfigMap{}
	case "networking.k8s.io/v1 NetworkPolicy":
		return &networkingv1.NetworkPolicy{}
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
	case "monitoring.coreos.com/v1 PodMonitor", "monitoring.coreos.com/v1 PrometheusRule":
		return &unstructured.Unstructured{}
	}
	return nil
}

// clusterWide says whether objects of a kind are in no namespace.
func clusterWide(o Object) bool {
	switch o.(type) {
	case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *admissionv1.ValidatingAdmissionPolicy,
		*admissionv1.ValidatingAdmissionPolicyBinding, *resourcev1.DeviceClass:
		return true
	}
	return false
}

// decode refuses unknown and doubled fields, kinds that nobody deploys, and a namespace that is missing
// or has no place.
func decode(document []byte) (Object, error) {
	var id metav1.TypeMeta
	if err := yaml.Unmarshal(document, &id); err != nil {
		return nil, fmt.Errorf("read an object's kind: %w", err)
	}
	o := empty(id.APIVersion, id.Kind)
	if o == nil {
		return nil, fmt.Errorf("%s %s is not a kind that this project deploys", id.APIVersion, id.Kind)
	}
	if u, ok := o.(*unstructured.Unstructured); ok {
		if err := yaml.UnmarshalStrict(document, &u.Object); err != nil {
			return nil, fmt.Errorf("decode a %s: %w", id.Kind, err)
		}
	} else if err := yaml.UnmarshalStrict(document, o); err != nil {
		return nil, fmt.Errorf("decode a %s: %w", id.Kind, err)
	}
	if (o.GetNamespace() == "") != clusterWide(o) {
		return nil, fmt.Errorf("%s has the wrong namespace for its kind", ID(o))
	}
	return o, nil
}
