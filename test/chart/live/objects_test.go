//go:build node

package live

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// kinds that come and go by themselves, and whose objects are nobody's in particular.
func passing() []string {
	return []string{"Event", "Lease", "Node", "CSINode", "ComponentStatus"}
}

// each calls a function with every object of the cluster, of every kind that can be listed.
func (c *cluster) each(do func(gvr schema.GroupVersionResource, o *unstructured.Unstructured)) {
	c.t.Helper()
	config := c.Config()
	config.WarningHandler = rest.NoWarnings{} // of kinds that are out of fashion
	client, err := discovery.NewDiscoveryClientForConfig(config)
	c.must(err)
	lists, err := client.ServerPreferredResources()
	c.must(err)
	objects, err := dynamic.NewForConfig(config)
	c.must(err)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		c.must(err)
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if !slices.Contains(r.Verbs, "list") || slices.Contains(passing(), r.Kind) {
				continue
			}
			gvr := gv.WithResource(r.Name)
			all, err := objects.Resource(gvr).List(c.t.Context(), metav1.ListOptions{})
			c.must(err)
			for i := range all.Items {
				do(gvr, &all.Items[i])
			}
		}
	}
}

func id(o *unstructured.Unstructured) string { return o.GetKind() + "/" + o.GetName() }

// objects are all objects of the cluster, sorted.
func (c *cluster) objects() (ids []string) {
	c.t.Helper()
	c.each(func(_ schema.GroupVersionResource, o *unstructured.Unstructured) {
		if !slices.Contains(ids, id(o)) {
			ids = append(ids, id(o))
		}
	})
	slices.Sort(ids)
	return ids
}

// owned complains unless these objects are the release's.
func (c *cluster) owned(want ...string) {
	c.t.Helper()
	seen := map[string]string{}
	c.each(func(_ schema.GroupVersionResource, o *unstructured.Unstructured) {
		seen[id(o)] = fmt.Sprint(o.GetLabels()["app.kubernetes.io/managed-by"], " ",
			o.GetAnnotations()["meta.helm.sh/release-namespace"], "/", o.GetAnnotations()["meta.helm.sh/release-name"])
	})
	for _, w := range want {
		if seen[w] != "Helm kube-system/passthrough" {
			c.t.Errorf("%s is of %q", w, seen[w])
		}
	}
}

// disown makes the objects of the release what they are after kubectl apply -k.
func (c *cluster) disown() {
	c.t.Helper()
	client, err := dynamic.NewForConfig(c.Config())
	c.must(err)
	const none = `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null},"annotations":` +
		`{"meta.helm.sh/release-name":null,"meta.helm.sh/release-namespace":null}}}`
	c.each(func(gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
		resource := client.Resource(gvr).Namespace(o.GetNamespace())
		var err error
		switch {
		case strings.HasPrefix(o.GetName(), "sh.helm.release."):
			err = resource.Delete(c.t.Context(), o.GetName(), metav1.DeleteOptions{})
		case o.GetAnnotations()["meta.helm.sh/release-name"] != "":
			_, err = resource.Patch(c.t.Context(), o.GetName(), types.MergePatchType, []byte(none), metav1.PatchOptions{})
		}
		c.must(err)
	})
}
