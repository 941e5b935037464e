//go:build !kubernetes134

package explain

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/internal/exit"
	"kata-device-plugin/test/plane"
)

// holders asks the kubelet of a node by its socket, and the cluster by its objects.
func holders(t *testing.T, p *plane.Plane, device command, kubeconfig string) {
	const resource = "demo.example/held"
	n := p.Node(t, "node-kubelet", plane.NodeOptions{})
	n.SetAllocatable(t, resource, 3)
	pod := p.AwaitBound(t, p.Pod(t, plane.ExtendedPod("keeper", resource, 2)))
	n.PluginAllocatable(resource, "0000:41:00.0", "0000:42:00.0", "0000:43:00.0")
	n.PluginDevices(pod, "c", resource, "0000:41:00.0", "0000:43:00.0")
	says := func(want []string, args ...string) func(context.Context) error {
		return func(context.Context) error {
			out, told, code := device.run(t, append([]string{"holders"}, args...)...)
			if code != exit.OK {
				return fmt.Errorf("exit code %d: %s", code, told)
			}
			for _, words := range want {
				if !strings.Contains(strings.Join(strings.Fields(out), " "), words) {
					return fmt.Errorf("it does not say %q:\n%s", words, out)
				}
			}
			return nil
		}
	}
	// The kubelet hears of the pod by a watch.
	plane.Await(t, "kubelet to know the holder", says([]string{
		"0000:41:00.0 demo.example/held default/keeper c -", "0000:42:00.0 demo.example/held <nobody> - -",
		"0000:43:00.0 demo.example/held default/keeper c -",
	}, "--pod-resources", n.PodResources()))
	if err := says([]string{
		"node-kubelet 2 of them demo.example/held default/keeper c -", "node-kubelet 1 of them demo.example/held <nobody>",
		"node-gpu one single.example default/owner c default/taken", "node-gpu two demo.example <nobody>",
	}, "--live", "-A", "--kubeconfig", kubeconfig)(t.Context()); err != nil {
		t.Error(err)
	}
}

// oneNamespace: whoever may see only a namespace is told what is unknown, and nothing is guessed.
func oneNamespace(t *testing.T, p *plane.Plane, device command) {
	rbac := p.Client().RbacV1()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list"}},
	}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"}},
	}
	_, err := rbac.Roles("default").Create(t.Context(), role, metav1.CreateOptions{})
	if err == nil {
		_, err = rbac.RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	alice := p.Kubeconfig(t, p.ConfigFor("alice", []string{"system:authenticated"}, nil))
	plane.Await(t, "alice to see the pod", func(context.Context) error {
		out, told, code := device.explain(t, alice, "pod", "default/in-use")
		if code != exit.OK {
			return fmt.Errorf("exit code %d: %s", code, told)
		}
		if !strings.Contains(out, "nothing is proven to be wrong") || !strings.Contains(told, "not read: list nodes") {
			t.Fatalf("it says\n%s\n%s", out, told)
		}
		return nil
	})
	// What a namespace proves is said all the same.
	out, _, _ := device.explain(t, alice, "pod", "default/no-claim")
	if !strings.Contains(out, "stops at \"claim exists\"") || !strings.Contains(out, "[DRA012]") {
		t.Errorf("it says\n%s", out)
	}
}
