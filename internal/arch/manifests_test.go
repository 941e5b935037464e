package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// manifestRule is one thing that the manifests must be, and the ways in which they could
// stop being it. Every one of those must be noticed.
type manifestRule struct {
	name, why string
	check     func(*deployment) error
	breaks    []func(*deployment)
}

func TestManifests(t *testing.T) {
	for _, p := range deployed() {
		d := readDeployment(t, p)
		for _, rule := range manifestRules(p) {
			t.Run(p.name+"/"+rule.name, func(t *testing.T) {
				if err := rule.check(d); err != nil {
					t.Errorf("%v\nthe rule is there because %s", err, rule.why)
				}
			})
		}
	}
}

func TestManifestRulesNoticeWhatBreaksThem(t *testing.T) {
	for _, p := range deployed() {
		d := readDeployment(t, p)
		for _, rule := range manifestRules(p) {
			if len(rule.breaks) == 0 {
				t.Errorf("rule %q has no way to break it, so nobody knows whether it works", rule.name)
			}
			for i, spoil := range rule.breaks {
				t.Run(fmt.Sprintf("%s/%s/%d", p.name, rule.name, i+1), func(t *testing.T) {
					broken := d.clone(t)
					spoil(broken)
					if cmp.Equal(d, broken) {
						t.Fatal("this way to break it changes nothing")
					}
					if err := rule.check(broken); err == nil {
						t.Errorf("the rule does not notice this change:\n%s", cmp.Diff(d, broken))
					}
				})
			}
		}
	}
}

// components are kustomizations of their own, which overlays name.
const components = "components"

// What lies beside the kustomization but is not named by it would be deployed by nobody.
func TestEveryManifestIsInTheKustomization(t *testing.T) {
	for _, p := range deployed() {
		want := append([]string{"kustomization.yaml"}, readDeployment(t, p).Kustomization.Resources...)
		slices.Sort(want)
		files := slices.DeleteFunc(directory(t, "deploy/"+p.name), func(name string) bool { return name == components })
		if !slices.Equal(files, want) {
			t.Errorf("deploy/%s holds %v, the kustomization names %v", p.name, files, want)
		}
	}
}

// TestEveryProgramIsDeployed: a program without manifests is used by nobody, and manifests that
// no row knows are checked by nobody.
func TestEveryProgramIsDeployed(t *testing.T) {
	var rows []string
	for _, p := range deployed() {
		rows = append(rows, p.name)
	}
	slices.Sort(rows)
	agents := slices.DeleteFunc(commands(t), func(program string) bool { return program == "kubectl-device" }) // for people
	if !slices.Equal(agents, rows) {
		t.Errorf("there are the programs %v, and rows in deployed() for %v", agents, rows)
	}
	const examples = "examples" // overlays, which tools/manifests renders
	if dirs := slices.DeleteFunc(directory(t, "deploy"), func(dir string) bool { return dir == examples }); !slices.Equal(dirs, rows) {
		t.Errorf("deploy holds %v, and there are rows in deployed() for %v", dirs, rows)
	}
}

// directory lists the names in a directory of the repository.
func directory(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(repository(t), dir))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func manifestRules(p plugin) []manifestRule {
	rules := slices.Concat([]manifestRule{namespaceRule(), nodesRule(p)}, placeRules(p.name), privilegeRules(p), networkRules(p), volumeRules(p), lifeRules(p))
	if p.api != "" {
		rules = append(rules, accessRule(p), policyRule(p), classRule())
	}
	return rules
}

// placeRules are about where the plugin runs.
func placeRules(program string) []manifestRule {
	return []manifestRule{{
		name: "one DaemonSet",
		why:  "there is one plugin for each node",
		check: func(d *deployment) error {
			return same("kind", d.DaemonSet.APIVersion+" "+d.DaemonSet.Kind+" "+d.DaemonSet.Metadata.Name, "apps/v1 DaemonSet "+program)
		},
		breaks: []func(*deployment){func(d *deployment) { d.DaemonSet.Kind = "Deployment" }},
	}, {
		name: "selector",
		why:  "a selector is immutable: one label and never another",
		check: func(d *deployment) error {
			want := map[string]string{"app.kubernetes.io/name": program}
			for _, l := range d.Kustomization.Labels {
				if l.IncludeSelectors {
					return fmt.Errorf("the kustomization adds %v to selectors", l.Pairs)
				}
			}
			return first(
				same("selector of the DaemonSet", d.DaemonSet.Spec.Selector.MatchLabels, want),
				same("labels of the pods", d.DaemonSet.Spec.Template.Metadata.Labels, want),
			)
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.DaemonSet.Spec.Selector.MatchLabels["app.kubernetes.io/version"] = "v1" },
			func(d *deployment) { d.Kustomization.Labels[0].IncludeSelectors = true },
			func(d *deployment) { d.DaemonSet.Spec.Template.Metadata.Labels = nil },
		},
	}, {
		name: "labels",
		why:  "people and dashboards find the parts of a program by the recommended labels",
		check: func(d *deployment) error {
			for _, l := range d.Kustomization.Labels {
				if l.IncludeTemplates && l.Pairs["app.kubernetes.io/name"] == program &&
					l.Pairs["app.kubernetes.io/component"] != "" && l.Pairs["app.kubernetes.io/part-of"] != "" {
					return nil
				}
			}
			return fmt.Errorf("no entry of the kustomization's labels sets name, component and part-of on objects and pods")
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.Kustomization.Labels[0].IncludeTemplates = false },
			func(d *deployment) { delete(d.Kustomization.Labels[0].Pairs, "app.kubernetes.io/part-of") },
		},
	}, {
		name: "tolerations",
		why:  "nodes with devices are tainted, and running pods keep their devices when a taint is added",
		check: func(d *deployment) error {
			return same("tolerations", d.pod().Tolerations, []toleration{
				{Operator: "Exists", Effect: "NoSchedule"}, {Operator: "Exists", Effect: "NoExecute"},
			})
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.pod().Tolerations = d.pod().Tolerations[:1] },
			func(d *deployment) { d.pod().Tolerations[0].Key = "nvidia.com/gpu" },
		},
	}, {
		name: "priority",
		why:  "without the plugin the node has no devices, so other pods go first",
		check: func(d *deployment) error {
			return same("priorityClassName", d.pod().PriorityClassName, "system-node-critical")
		},
		breaks: []func(*deployment){func(d *deployment) { d.pod().PriorityClassName = "" }},
	}, {
		name: "on the host",
		why:  "inside a Kata VM there is no host to look at",
		check: func(d *deployment) error {
			return same("runtimeClassName", d.pod().RuntimeClassName, "")
		},
		breaks: []func(*deployment){func(d *deployment) { d.pod().RuntimeClassName = "kata" }},
	}, {
		name: "image",
		why:  "where images come from is the cluster's decision, made in the kustomization; latest is not a version",
		check: func(d *deployment) error {
			if len(d.Kustomization.Images) != 1 {
				return fmt.Errorf("the kustomization sets %d images, want 1", len(d.Kustomization.Images))
			}
			i := d.Kustomization.Images[0]
			if i.NewTag == "" || i.NewTag == "latest" {
				return fmt.Errorf("the image's tag is %q", i.NewTag)
			}
			return first(
				same("image", d.container().Image, program),
				same("image in the kustomization", i.Name+i.NewName, program),
				same("imagePullPolicy", d.container().ImagePullPolicy, "IfNotPresent"),
			)
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.container().Image = "registry.example/" + program + ":v1" },
			func(d *deployment) { d.Kustomization.Images[0].NewTag = "latest" },
			func(d *deployment) { d.Kustomization.Images[0].Name = "other" },
			func(d *deployment) { d.container().ImagePullPolicy = "Always" },
		},
	}}
}

// same compares a part of a manifest with what it must be.
func same[T any](what string, got, want T) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("%s is not as it must be (-want +got):\n%s", what, diff)
	}
	return nil
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
