//go:build !kubernetes134

package policy_test

import (
	"bytes"
	"os"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"kata-device-plugin/test/plane"
)

// TestTypes: the controller that looks whether expressions fit the types has nothing to say.
func TestTypes(t *testing.T) {
	p := plane.Start(t, plane.Options{})
	groups, err := restmapper.GetAPIGroupResources(p.Client().Discovery())
	if err != nil {
		t.Fatal(err)
	}
	checker := &validating.TypeChecker{
		SchemaResolver: &resolver.ClientDiscoveryResolver{Discovery: p.Client().Discovery()},
		RestMapper:     restmapper.NewDiscoveryRESTMapper(groups),
	}
	checked := 0
	for _, file := range []string{deployed + "admission.yaml", extended + "preset-node.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			var policy admissionv1.ValidatingAdmissionPolicy
			if err := yaml.UnmarshalStrict(document, &policy); err != nil || policy.Kind != "ValidatingAdmissionPolicy" {
				continue // a binding
			}
			checked++
			for _, w := range checker.Check(&policy) {
				t.Errorf("%s, %s: %s", policy.Name, w.FieldRef, w.Warning)
			}
		}
	}
	if checked != 4 {
		t.Errorf("there are %d policies, want 4", checked)
	}
}
