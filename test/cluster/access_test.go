//go:build node

package cluster

import (
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"kata-device-plugin/test/peer"
)

// podSecurity: what the levels say of the plugin's pod is what its manifest says they do,
// and a pod that asks for a device may be as restricted as any.
func podSecurity(c *cluster) {
	ds, err := c.Client().AppsV1().DaemonSets(system).Get(c.ctx, daemonSet, metav1.GetOptions{})
	c.must(err)
	plugin := v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "plugin"}, Spec: ds.Spec.Template.Spec}
	plugin.Spec.PriorityClassName = ""
	restricted := peer.NewPod("train", gpu, 1)
	yes, no, user := true, false, int64(65534)
	restricted.Namespace = ""
	restricted.Spec.Containers[0].SecurityContext = &v1.SecurityContext{
		RunAsNonRoot: &yes, RunAsUser: &user, AllowPrivilegeEscalation: &no,
		Capabilities:   &v1.Capabilities{Drop: []v1.Capability{"ALL"}},
		SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
	}
	for _, x := range []struct {
		level string
		pod   *v1.Pod
		want  []string // complaints
	}{
		{"privileged", &plugin, nil},
		{"baseline", &plugin, []string{"hostPath volumes"}},
		{"restricted", &plugin, []string{"restricted volume types", "runAsNonRoot != true", "runAsUser=0"}},
		{"restricted", restricted, nil},
	} {
		if got := c.complaints(x.level, x.pod); !slices.Equal(got, x.want) {
			c.t.Errorf("level %s says of pod %s: %q, want %q", x.level, x.pod.Name, got, x.want)
		}
	}
}

// complaints are those of a Pod Security level about a pod.
func (c *cluster) complaints(level string, pod *v1.Pod) []string {
	c.t.Helper()
	name := "level-" + level + "-" + pod.Name
	_, err := c.Client().CoreV1().Namespaces().Create(c.ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": level, "pod-security.kubernetes.io/enforce-version": "latest"},
	}}, metav1.CreateOptions{})
	c.must(err)
	account := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := c.Client().CoreV1().ServiceAccounts(name).Create(c.ctx, account, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		c.must(err) // or the controller was faster
	}
	_, err = c.Client().CoreV1().Pods(name).Create(c.ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		return nil
	}
	_, text, found := strings.Cut(err.Error(), `violates PodSecurity "`+level+`:latest": `)
	if !apierrors.IsForbidden(err) || !found {
		c.t.Fatal(err)
	}
	var heads []string
	depth, start := 0, 0
	for i, r := range text + "," {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			head, _, _ := strings.Cut(text[start:i], " (")
			heads = append(heads, strings.TrimSpace(head))
			start = i + 1
		}
	}
	return heads
}

// restriction: the authorizers are on, so that what the other parts have shown was shown
// under them; and the plugin has no credential, and would have no right with one.
func restriction(c *cluster) {
	w := c.join("restricted", "hgx-h100")
	other := c.join("restricted-other", "cpu-only")
	pod, othersPod := w.ready(), other.pluginReady()
	config, err := c.ConfigFor("system:node:"+w.Name(), "system:nodes")
	c.must(err)
	asNode, err := kubernetes.NewForConfig(config)
	c.must(err)
	label := func(key string) []byte { return []byte(`{"metadata":{"labels":{"` + key + `":"x"}}}`) }
	patch := func(node, key string) error {
		_, err := asNode.CoreV1().Nodes().Patch(c.ctx, node, types.StrategicMergePatchType, label(key), metav1.PatchOptions{})
		return err
	}
	c.must(patch(w.Name(), "example.org/free"))
	for what, err := range map[string]error{
		"label another node":               patch(other.Name(), "example.org/free"),
		"give itself a restricted label":   patch(w.Name(), "node-restriction.kubernetes.io/pool"),
		"list the secrets of everybody":    listSecrets(c, asNode),
		"remove a pod that is on another":  asNode.CoreV1().Pods(system).Delete(c.ctx, othersPod.Name, metav1.DeleteOptions{}),
		"read the DaemonSet of the plugin": getDaemonSet(c, asNode),
	} {
		if !apierrors.IsForbidden(err) {
			c.t.Errorf("a node may %s: %v", what, err)
		}
	}

	if token := pod.Spec.AutomountServiceAccountToken; token == nil || *token {
		c.t.Error("the plugin's pod gets a token")
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.Projected != nil || volume.Secret != nil || volume.ConfigMap != nil {
			c.t.Errorf("the plugin's pod has volume %s from the API server", volume.Name)
		}
	}
	for _, x := range []authorizationv1.ResourceAttributes{
		{Verb: "get", Resource: "nodes"}, {Verb: "patch", Resource: "nodes", Subresource: "status"}, {Verb: "list", Resource: "pods"},
		{Verb: "create", Resource: "events", Namespace: system}, {Verb: "get", Resource: "secrets", Namespace: system},
		{Verb: "create", Group: "resource.k8s.io", Resource: "resourceslices"},
	} {
		review, err := c.Client().AuthorizationV1().SubjectAccessReviews().Create(c.ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + system + ":" + pod.Spec.ServiceAccountName, ResourceAttributes: &x,
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + system, "system:authenticated"},
			},
		}, metav1.CreateOptions{})
		c.must(err)
		if review.Status.Allowed {
			c.t.Errorf("the plugin's service account may %s %s: %s", x.Verb, x.Resource, review.Status.Reason)
		}
	}
}

func listSecrets(c *cluster, client kubernetes.Interface) error {
	_, err := client.CoreV1().Secrets("").List(c.ctx, metav1.ListOptions{})
	return err
}

func getDaemonSet(c *cluster, client kubernetes.Interface) error {
	_, err := client.AppsV1().DaemonSets(system).Get(c.ctx, daemonSet, metav1.GetOptions{})
	return err
}
