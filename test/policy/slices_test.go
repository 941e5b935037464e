//go:build !kubernetes134

package policy_test

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kata-device-plugin/test/plane"
)

// slice is one of a driver on a node, with changes.
func slice(name, of, node string, changes ...func(*resourceapi.ResourceSlice)) *resourceapi.ResourceSlice {
	s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.ResourceSliceSpec{
		Driver: of, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
	}}
	for _, change := range changes {
		change(s)
	}
	return s
}

// TestSlices: the driver's token is good for the slices of its own node and nothing else.
func TestSlices(t *testing.T) {
	versions(t, func(t *testing.T, p *plane.Plane) {
		node(t, p, "a")
		node(t, p, "b")
		p.CreateFile(t, deployed+"rbac.yaml")
		p.CreateFile(t, deployed+"admission.yaml")
		agent := client(t, p.Agent(t, system, account, "a"))
		inEffect(t, "slices."+driver, func(ctx context.Context) error {
			_, err := agent.ResourceV1().ResourceSlices().Create(ctx, slice("x", driver, "b"), dry())
			return err
		})
		unbound := client(t, p.ConfigFor("system:serviceaccount:"+system+":"+account, []string{"system:authenticated"}, nil))
		createSlices(t, p, agent, unbound)
		changeSlices(t, p, agent)
	})
}

func createSlices(t *testing.T, p *plane.Plane, agent, unbound kubernetes.Interface) {
	t.Helper()
	everywhere := func(s *resourceapi.ResourceSlice) { s.Spec.NodeName, s.Spec.AllNodes = nil, new(true) }
	selected := func(s *resourceapi.ResourceSlice) {
		s.Spec.NodeName = nil
		s.Spec.NodeSelector = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
			{Key: "kubernetes.io/hostname", Operator: v1.NodeSelectorOpIn, Values: []string{"a"}},
		}}}}
	}
	for _, test := range []struct {
		name  string
		who   kubernetes.Interface
		slice *resourceapi.ResourceSlice
		want  string
	}{
		{"its own", agent, slice("x", driver, "a"), ""},
		{"of another node", agent, slice("x", driver, "b"), "the slice is not one of node a"},
		{"of another driver", agent, slice("x", "gpu.nvidia.com", "a"), "another driver's"},
		{"of another node's pool", agent, slice("x", driver, "a", func(s *resourceapi.ResourceSlice) { s.Spec.Pool.Name = "b" }), "the pool is not that of node a"},
		{"of all nodes", agent, slice("x", driver, "a", everywhere), "the slice is not one of node a"},
		{"of selected nodes", agent, slice("x", driver, "a", selected), "the slice is not one of node a"},
		{"with a token of no pod", unbound, slice("x", driver, "a"), "bound to no node"},
		{"by somebody else", p.Client(), slice("x", driver, "b", everywhere), ""},
	} {
		_, err := test.who.ResourceV1().ResourceSlices().Create(t.Context(), test.slice, dry())
		if err := expect(err, test.want); err != nil {
			t.Errorf("create a slice %s: %v", test.name, err)
		}
	}
}

// changeSlices: what was there counts as well as what is to be there.
func changeSlices(t *testing.T, p *plane.Plane, agent kubernetes.Interface) {
	t.Helper()
	for _, test := range []struct {
		slice *resourceapi.ResourceSlice
		want  string
	}{
		{slice("own", driver, "a"), ""},
		{slice("of-another-node", driver, "b"), "the slice is not one of node a"},
		{slice("of-another-driver", "gpu.nvidia.com", "a"), "another driver's"},
		{slice("of-all-nodes", driver, "a", func(s *resourceapi.ResourceSlice) { s.Spec.NodeName, s.Spec.AllNodes = nil, new(true) }), "the slice is not one of node a"},
	} {
		is, err := p.Client().ResourceV1().ResourceSlices().Create(t.Context(), test.slice, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		is.Spec.Pool.Generation++
		_, err = agent.ResourceV1().ResourceSlices().Update(t.Context(), is, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		if err := expect(err, test.want); err != nil {
			t.Errorf("update a slice %s: %v", is.Name, err)
		}
		err = agent.ResourceV1().ResourceSlices().Delete(t.Context(), is.Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if err := expect(err, test.want); err != nil {
			t.Errorf("delete a slice %s: %v", is.Name, err)
		}
	}
}

// TestAccess: RBAC gives the driver nothing beyond what it asks for.
func TestAccess(t *testing.T) {
	p := plane.Start(t, plane.Options{})
	node(t, p, "a")
	p.CreateFile(t, deployed+"rbac.yaml")
	agent := client(t, p.Agent(t, system, account, "a"))
	nobody := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "none"}}}}
	for _, test := range []struct {
		name string
		do   func(context.Context) error
		want string
	}{
		{"get its node", func(ctx context.Context) error {
			_, err := agent.CoreV1().Nodes().Get(ctx, "a", metav1.GetOptions{})
			return err
		}, ""},
		{"list slices", func(ctx context.Context) error {
			_, err := agent.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
			return err
		}, ""},
		{"make an event", func(ctx context.Context) error {
			_, err := agent.CoreV1().Events("default").Create(ctx, &v1.Event{
				ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}, InvolvedObject: v1.ObjectReference{Kind: "Node", Name: "a"},
			}, dry())
			return err
		}, ""},
		{"get a claim", func(ctx context.Context) error {
			_, err := agent.ResourceV1().ResourceClaims("default").Get(ctx, "x", metav1.GetOptions{})
			return err
		}, "not found"},
		{"list claims", func(ctx context.Context) error {
			_, err := agent.ResourceV1().ResourceClaims("default").List(ctx, metav1.ListOptions{})
			return err
		}, "forbidden"},
		{"list nodes", func(ctx context.Context) error {
			_, err := agent.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			return err
		}, "forbidden"},
		{"create pods", func(ctx context.Context) error {
			_, err := agent.CoreV1().Pods("default").Create(ctx, nobody, dry())
			return err
		}, "forbidden"},
	} {
		if err := expect(test.do(t.Context()), test.want); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
