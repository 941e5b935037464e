package arch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/deviceconfig"
	"kata-device-plugin/internal/dra"
)

// access is what RBAC lets the driver do: resources and verbs, in the manifest's order.
func access() []string {
	return []string{
		"resource.k8s.io/resourceclaims: get",
		"resource.k8s.io/resourceslices: get list watch create update patch delete",
		"/nodes: get",
		"/events: create patch",
	}
}

// accessRule is about what the credential is good for.
func accessRule(p plugin) manifestRule {
	role := func(d *deployment) *clusterRole { return &d.API.Roles[0] }
	binding := func(d *deployment) *clusterRoleBinding { return &d.API.Bindings[0] }
	return manifestRule{
		name: "access",
		why:  "it writes slices and events and nothing else, reads no other claims than kubelet names, and lists nothing but slices",
		check: func(d *deployment) error {
			if len(d.API.Roles) != 1 || len(d.API.Bindings) != 1 {
				return fmt.Errorf("there are %d roles and %d bindings, want 1 of each", len(d.API.Roles), len(d.API.Bindings))
			}
			r, b := role(d), binding(d)
			var got []string
			for _, rule := range r.Rules {
				if len(rule.ResourceNames) > 0 {
					return fmt.Errorf("the rule for %v names objects: nobody knows them before", rule.Resources)
				}
				got = append(got, strings.Join(rule.APIGroups, ",")+"/"+strings.Join(rule.Resources, ",")+": "+strings.Join(rule.Verbs, " "))
			}
			const rbac = "rbac.authorization.k8s.io"
			return first(
				same("rules", got, access()),
				same("role", r.APIVersion+" "+r.Kind+" "+r.Metadata.Name, rbac+"/v1 ClusterRole "+p.name),
				same("binding", b.APIVersion+" "+b.Kind+" "+b.Metadata.Name, rbac+"/v1 ClusterRoleBinding "+p.name),
				same("roleRef", b.RoleRef, roleRef{rbac, "ClusterRole", p.name}),
				same("subjects", b.Subjects, []subject{{"ServiceAccount", p.name, "kube-system"}}),
			)
		},
		breaks: []func(*deployment){
			func(d *deployment) { role(d).Rules[0].Verbs = append(role(d).Rules[0].Verbs, "list") },
			func(d *deployment) { role(d).Rules[0].Resources[0] = "resourceclaims/status" },
			func(d *deployment) { role(d).Rules = append(role(d).Rules, policyAccess{Verbs: []string{"*"}}) },
			func(d *deployment) { role(d).Rules[1].ResourceNames = []string{"x"} },
			func(d *deployment) { role(d).Metadata.Name = "other" },
			func(d *deployment) { binding(d).RoleRef.Name = "cluster-admin" },
			func(d *deployment) { binding(d).Subjects[0].Name = "default" },
			func(d *deployment) { binding(d).Subjects = append(binding(d).Subjects, subject{Kind: "Group"}) },
			func(d *deployment) { d.API.Bindings = nil },
		},
	}
}

// policyRule is about what the policies are about, and that they are in effect. What their
// expressions let through is shown by test/policy.
func policyRule(p plugin) manifestRule {
	slices0 := func(d *deployment) *admissionPolicy { return &d.API.Policies[0] }
	want := map[string][]string{
		"slices." + dra.Driver: {"CREATE,UPDATE,DELETE resource.k8s.io/v1/resourceslices"},
		"parameters." + dra.Driver: {
			"CREATE resource.k8s.io/v1/resourceclaims,resourceclaimtemplates", "CREATE,UPDATE resource.k8s.io/v1/deviceclasses",
		},
		"names." + dra.Driver: {"CREATE,UPDATE resource.k8s.io/v1/deviceclasses"},
	}
	classes := paramKind{APIVersion: "resource.k8s.io/v1", Kind: "DeviceClass"}
	account := fmt.Sprintf(`request.userInfo.username == "system:serviceaccount:kube-system:%s"`, p.name)
	return manifestRule{
		name: "policies",
		why:  "RBAC cannot say of which node a slice is, and a parameter that is misspelled must not wait for a pod to be noticed; what cannot be judged is refused",
		check: func(d *deployment) error {
			got, bound := map[string][]string{}, map[string]bool{}
			for _, b := range d.API.PolicyBindings {
				bound[b.Spec.PolicyName] = slices.Equal(b.Spec.ValidationActions, []string{"Deny"})
				if all := b.Spec.ParamRef != nil && b.Spec.ParamRef.ParameterNotFoundAction == "Allow"; all != (b.Spec.PolicyName == "names."+dra.Driver) {
					return fmt.Errorf("policy %s is about every class, and about the first one: %v", b.Spec.PolicyName, all)
				}
			}
			for _, o := range d.API.Policies {
				if o.Spec.FailurePolicy != "Fail" || !bound[o.Metadata.Name] {
					return fmt.Errorf("policy %s: failurePolicy %s, bound to deny %v; want Fail, true", o.Metadata.Name, o.Spec.FailurePolicy, bound[o.Metadata.Name])
				}
				if o.Metadata.Name == "names."+dra.Driver && o.Spec.ParamKind != classes {
					return fmt.Errorf("policy %s holds against %v, want %v", o.Metadata.Name, o.Spec.ParamKind, classes)
				}
				for _, r := range o.Spec.MatchConstraints.ResourceRules {
					got[o.Metadata.Name] = append(got[o.Metadata.Name], r.String())
				}
			}
			if err := same("what the policies are about", got, want); err != nil {
				return err
			}
			return same("whom the first is about", slices0(d).Spec.MatchConditions, []condition{{"is-the-driver", account}})
		},
		breaks: []func(*deployment){
			func(d *deployment) { slices0(d).Spec.FailurePolicy = "Ignore" },
			func(d *deployment) { slices0(d).Spec.MatchConditions[0].Expression = "false" },
			func(d *deployment) { slices0(d).Spec.MatchConditions = nil },
			func(d *deployment) { slices0(d).Spec.MatchConstraints.ResourceRules[0].Operations = []string{"CREATE"} },
			func(d *deployment) { d.API.Policies = d.API.Policies[:1] },
			func(d *deployment) { d.API.PolicyBindings = d.API.PolicyBindings[:1] },
			func(d *deployment) { d.API.PolicyBindings[1].Spec.PolicyName = "other" },
			func(d *deployment) { d.API.PolicyBindings[0].Spec.ValidationActions = []string{"Audit"} },
			func(d *deployment) { d.API.PolicyBindings[2].Spec.ParamRef = nil },
			func(d *deployment) { d.API.PolicyBindings[2].Spec.ParamRef.ParameterNotFoundAction = "Deny" },
			func(d *deployment) { d.API.Policies[2].Spec.ParamKind = paramKind{} },
		},
	}
}

// classRule is about what people ask for.
func classRule() manifestRule {
	var want []deviceClass
	for _, t := range dra.Types() {
		c := deviceClass{APIVersion: "resource.k8s.io/v1", Kind: "DeviceClass", Metadata: metadata{Name: string(t) + "." + dra.Driver}}
		var s classSelector
		s.CEL.Expression = fmt.Sprintf("device.driver == %q && device.attributes[%q].type == %q", dra.Driver, dra.Driver, t)
		c.Spec.Selectors = []classSelector{s}
		want = append(want, c)
	}
	return manifestRule{
		name:  "classes",
		why:   "each type of devices has a class, and none takes over the name of an extended resource before somebody has decided so",
		check: func(d *deployment) error { return same("classes", d.API.Classes, want) },
		breaks: []func(*deployment){
			func(d *deployment) { d.API.Classes[0].Spec.ExtendedResourceName = "nvidia.com/gpu" },
			func(d *deployment) { d.API.Classes = d.API.Classes[1:] },
			func(d *deployment) { d.API.Classes[0].Spec.Selectors = nil },
		},
	}
}

// TestPolicyKnowsTheAPI: the policy lets through the fields and values that the driver knows.
func TestPolicyKnowsTheAPI(t *testing.T) {
	var text strings.Builder
	for _, p := range deployed() {
		for _, o := range readDeployment(t, p).API.Policies {
			for _, v := range o.Spec.Validations {
				text.WriteString(v.Expression + "\n")
			}
		}
	}
	for _, want := range []string{
		quoted(jsonFields(deviceconfig.Config{})),
		quoted([]string{string(deviceconfig.Cdev), string(deviceconfig.Group)}),
		fmt.Sprintf("%q", deviceconfig.APIVersion), fmt.Sprintf("%q", deviceconfig.Kind), fmt.Sprintf("%q", dra.Driver),
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no policy has %s:\n%s", want, &text)
		}
	}
}

// quoted is a list as CEL has it.
func quoted(words []string) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = fmt.Sprintf("%q", w)
	}
	return "[" + strings.Join(all, ", ") + "]"
}
