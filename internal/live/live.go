// Package live reads from a cluster what has to do with devices, as lists of objects. It only lists,
// and never asks for Secrets.
package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// pageSize is how many objects an answer has: kubectl's own.
const pageSize = 500

// List is what the cluster has of a kind.
type List struct {
	// Resource is pods, or resourceslices.resource.k8s.io.
	Resource string
	Kind     string
	// JSON is a List of the objects. Places in it are of no use to a person.
	JSON []byte
	// Whole says that these are the objects of all namespaces.
	Whole bool
	// Err is why there is no list, nil where there is one.
	Err error
}

// Read lists the resources, of one namespace where that is not "". What the user may not list, or
// what the cluster does not have, is in the answer with its error: what is absent then is not known
// to be absent. The error is that nothing can be asked at all.
func Read(ctx context.Context, config *rest.Config, namespace string) ([]List, error) {
	return readThese(ctx, config, namespace, devices(), nil)
}

// ReadAll is Read of what refers to devices from afar as well: what decides whether a cluster is
// ready, and what depends on the name of a resource.
func ReadAll(ctx context.Context, config *rest.Config, namespace string) ([]List, error) {
	return readThese(ctx, config, namespace, Resources(), policyGroups())
}

func readThese(
	ctx context.Context, config *rest.Config, namespace string, wanted []schema.GroupResource, groups []string,
) ([]List, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the cluster: %w", err)
	}
	served, err := served(ctx, config)
	if err != nil {
		return nil, err
	}
	var all []List
	for _, r := range choose(served, wanted, groups) {
		l := read(ctx, client, r, namespace)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("read %s of the cluster: %w", l.Resource, context.Cause(ctx))
		}
		all = append(all, l)
	}
	return all, nil
}

// choose takes what is wanted out of what is served: some resources, and then all of some groups. What
// the cluster does not know it has none of.
func choose(served []metav1.APIResource, wanted []schema.GroupResource, groups []string) []metav1.APIResource {
	var all []metav1.APIResource
	for _, want := range wanted {
		for _, r := range served {
			if r.Name == want.Resource && r.Group == want.Group {
				all = append(all, r)
			}
		}
	}
	for _, r := range served {
		if slices.Contains(groups, r.Group) && slices.Contains(r.Verbs, "list") {
			all = append(all, r)
		}
	}
	return all
}

// served are the resources of the cluster, each in the version that it prefers. A group that
// cannot be asked, as that of a metrics server that is down, hides no other.
func served(ctx context.Context, config *rest.Config) ([]metav1.APIResource, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the cluster: %w", err)
	}
	lists, err := discovery.ToDiscoveryInterfaceWithContext(client).ServerPreferredResourcesWithContext(ctx)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("ask the cluster at %s what it has: %w", config.Host, err)
	}
	var all []metav1.APIResource
	for _, l := range lists {
		version, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("ask the cluster what it has: %w", err)
		}
		for _, r := range l.APIResources {
			r.Group, r.Version = version.Group, version.Version
			all = append(all, r)
		}
	}
	return all, nil
}

func read(ctx context.Context, client dynamic.Interface, r metav1.APIResource, namespace string) List {
	resource := schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Name}
	l := List{Resource: resource.GroupResource().String(), Kind: r.Kind, Whole: !r.Namespaced || namespace == ""}
	var from dynamic.ResourceInterface = client.Resource(resource)
	if !l.Whole {
		from = client.Resource(resource).Namespace(namespace)
	}
	list := struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Items      []map[string]any `json:"items"`
	}{"v1", "List", []map[string]any{}}
	next := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := from.List(ctx, next)
		if apierrors.IsResourceExpired(err) && next.Continue != "" {
			// The list took longer than the server remembers its beginning.
			list.Items, next.Continue = list.Items[:0], ""
			next.Limit = 0
			continue
		}
		if err != nil {
			l.Err = fmt.Errorf("list %s: %w", l.Resource, err)
			return l
		}
		for i := range page.Items {
			list.Items = append(list.Items, trim(&page.Items[i], r))
		}
		if next.Continue = page.GetContinue(); next.Continue == "" {
			break
		}
	}
	l.JSON, l.Err = json.Marshal(list)
	return l
}

// trim leaves out what repeats an object, and fills in what an element of a list may lack.
func trim(o *unstructured.Unstructured, r metav1.APIResource) map[string]any {
	o.SetManagedFields(nil)
	if annotations := o.GetAnnotations(); annotations != nil {
		delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		o.SetAnnotations(annotations)
	}
	o.SetAPIVersion(schema.GroupVersion{Group: r.Group, Version: r.Version}.String())
	o.SetKind(r.Kind)
	return o.Object
}

// Forbidden says whether a list is missing because the user may not have it.
func (l List) Forbidden() bool {
	var status apierrors.APIStatus
	return errors.As(l.Err, &status) && status.Status().Reason == metav1.StatusReasonForbidden
}

// Resources are all that may be read, in this order.
func Resources() []schema.GroupResource { return append(devices(), distant()...) }

// devices are what has to do with devices itself.
func devices() []schema.GroupResource {
	return resources([]group{
		{"", "nodes pods configmaps namespaces resourcequotas limitranges events replicationcontrollers serviceaccounts"},
		{"apps", "daemonsets deployments statefulsets replicasets"},
		{"batch", "jobs cronjobs"},
		{"resource.k8s.io", "deviceclasses resourceslices resourceclaims resourceclaimtemplates devicetaintrules"},
		{"k8s.cni.cncf.io", "network-attachment-definitions"},
		{"admissionregistration.k8s.io", "mutatingwebhookconfigurations"},
		{"rbac.authorization.k8s.io", "clusterroles clusterrolebindings roles rolebindings"},
		{"sriovnetwork.openshift.io", "sriovnetworknodepolicies sriovnetworks sriovibnetworks ovsnetworks sriovnetworknodestates"},
		{"mellanox.com", "nicclusterpolicies hostdevicenetworks macvlannetworks ipoibnetworks"},
		{"nvidia.com", "clusterpolicies"},
		{"kubevirt.io", "kubevirts virtualmachines virtualmachineinstances"},
		{"kueue.x-k8s.io", "resourceflavors clusterqueues localqueues"},
	})
}

// distant are what refers to nodes, agents and names of resources.
func distant() []schema.GroupResource {
	return resources([]group{
		{"node.k8s.io", "runtimeclasses"},
		{"scheduling.k8s.io", "priorityclasses"},
		{"networking.k8s.io", "networkpolicies"},
		{"autoscaling", "horizontalpodautoscalers"},
		{"autoscaling.k8s.io", "verticalpodautoscalers"},
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations validatingadmissionpolicies validatingadmissionpolicybindings"},
		{"monitoring.coreos.com", "podmonitors prometheusrules"},
		{"kyverno.io", "clusterpolicies policies"},
		{"templates.gatekeeper.sh", "constrainttemplates"},
		{"kueue.x-k8s.io", "cohorts"},
	})
}

// policyGroups are those in which every resource is one of policies. Gatekeeper makes a resource of each
// template that somebody has written, so that nobody knows their names.
func policyGroups() []string { return []string{"constraints.gatekeeper.sh", "policies.kyverno.io"} }

// group is an API group with some of its resources.
type group struct{ name, resources string }

func resources(groups []group) []schema.GroupResource {
	var all []schema.GroupResource
	for _, group := range groups {
		for resource := range strings.FieldsSeq(group.resources) {
			all = append(all, schema.GroupResource{Group: group.name, Resource: resource})
		}
	}
	return all
}
