//go:build !kubernetes134

package policy_test

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/test/plane"
)

// pod asks for one of a resource, "" for none, on a node, "" for any.
func pod(node, name string, initial bool) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: v1.PodSpec{
		NodeName: node, Containers: []v1.Container{{Name: "c", Image: "none"}}, InitContainers: []v1.Container{{Name: "i", Image: "none"}},
	}}
	if name == "" {
		return p
	}
	c := &p.Spec.Containers[0]
	if initial {
		c = &p.Spec.InitContainers[0]
	}
	c.Resources.Limits = v1.ResourceList{v1.ResourceName(name): resource.MustParse("1")}
	return p
}

// TestPresetNode: who passes the scheduler by gets no claim, and must not start without a device.
func TestPresetNode(t *testing.T) {
	p := plane.Start(t, plane.Options{})
	node(t, p, "a")
	p.CreateFile(t, extended+"preset-node.yaml")
	create := func(ctx context.Context, pod *v1.Pod) error {
		_, err := p.Client().CoreV1().Pods("default").Create(ctx, pod, dry())
		return err
	}
	inEffect(t, "preset-node."+driver, func(ctx context.Context) error { return create(ctx, pod("a", "nvidia.com/gpu", false)) })
	const refused = "must leave spec.nodeName to the scheduler"
	for _, test := range []struct {
		name string
		pod  *v1.Pod
		want string
	}{
		{"a GPU, any node", pod("", "nvidia.com/gpu", false), ""},
		{"a GPU, this node", pod("a", "nvidia.com/gpu", false), refused},
		{"a GPU for the start, this node", pod("a", "nvidia.com/gpu", true), refused},
		{"a switch, this node", pod("a", "nvidia.com/nvswitch", false), refused},
		{"by its class, this node", pod("a", "deviceclass.resource.kubernetes.io/vf."+driver, false), refused},
		{"nothing, this node", pod("a", "", false), ""},
		{"something else, this node", pod("a", "example.com/gpu", false), ""},
	} {
		if err := expect(create(t.Context(), test.pod), test.want); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
