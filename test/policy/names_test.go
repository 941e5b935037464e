//go:build !kubernetes134

package policy_test

import (
	"context"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kata-device-plugin/test/plane"
)

// named is a class with an extended resource name.
func named(name, resource string) *resourceapi.DeviceClass {
	c := class(name)
	c.Spec.ExtendedResourceName = &resource
	return c
}

// TestNames: a name that another class has is refused, whoever came first. What is between other
// drivers' classes is not this policy's affair.
func TestNames(t *testing.T) {
	p := plane.Start(t, plane.Options{})
	classes := p.Client().ResourceV1().DeviceClasses()
	create := func(c *resourceapi.DeviceClass) {
		t.Helper()
		if _, err := classes.Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const ours, theirs, taken, free = "gpu.vfio.katacontainers.io", "gpu.nvidia.com", "nvidia.com/gpu", "nvidia.com/pgpu"
	create(named(theirs, taken))
	create(named("old.vfio.katacontainers.io", "example.com/both"))
	create(named("old.example.com", "example.com/both"))
	p.CreateFile(t, deployed+"admission.yaml")
	inEffect(t, "names.vfio.katacontainers.io", func(ctx context.Context) error {
		_, err := classes.Create(ctx, named(ours, taken), dry())
		return err
	})
	for _, name := range []string{"old.vfio.katacontainers.io", "old.example.com"} { // the names were there before
		if _, err := classes.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
			t.Errorf("another change of a class whose name was there before: %v", err)
		}
	}
	create(class(ours))
	for _, c := range []struct {
		what, class, name string
		want              string
	}{
		{"ours takes theirs", ours, taken, "DeviceClass " + theirs + " has the extended resource name " + taken + " already"},
		{"ours takes a free one", ours, free, ""},
		{"ours keeps it", ours, free, ""},
		{"theirs takes ours", theirs, free, "DeviceClass " + ours + " has the extended resource name " + free + " already"},
		{"theirs keeps its own", theirs, taken, ""},
		{"ours gives it up", ours, "", ""},
		{"theirs takes what ours had", theirs, free, ""},
		{"ours comes back", ours, free, "DeviceClass " + theirs},
		{"ours takes what theirs had", ours, taken, ""},
	} {
		now := class(c.class)
		if c.name != "" {
			now = named(c.class, c.name)
		}
		// The server knows of the other class's change a moment later.
		plane.Await(t, c.what, func(ctx context.Context) error {
			old, err := classes.Get(ctx, c.class, metav1.GetOptions{})
			if err != nil {
				return err
			}
			now.ResourceVersion = old.ResourceVersion
			_, err = classes.Update(ctx, now, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			return expect(err, c.want)
		})
		if c.want == "" {
			if _, err := classes.Update(t.Context(), now, metav1.UpdateOptions{}); err != nil {
				t.Fatal(c.what, err)
			}
		}
	}
	create(named("a.example.com", "example.com/x"))
	create(named("b.example.com", "example.com/x"))
	plane.Await(t, "a name that two others have", func(ctx context.Context) error {
		_, err := classes.Create(ctx, named("other.vfio.katacontainers.io", "example.com/x"), dry())
		return expect(err, "already")
	})
}
