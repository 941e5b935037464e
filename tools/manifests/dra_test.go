package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"
)

const (
	driver   = "../../deploy/kata-dra-driver"
	extended = "../../deploy/examples/dra-extended-resource"
	claims   = "../../deploy/examples/dra"
	classes  = ".vfio.katacontainers.io"
)

// ofKind decodes the objects of a kind that a directory renders to.
func ofKind[T any](t *testing.T, dir, kind string) []T {
	t.Helper()
	objects, err := render(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	for _, object := range objects {
		if bytes.Contains(object, []byte("\nkind: "+kind+"\n")) {
			var o T
			if err := yaml.UnmarshalStrict(object, &o); err != nil {
				t.Fatal(err)
			}
			all = append(all, o)
		}
	}
	return all
}

// TestExtendedResourceExample: the overlay maps two names, and changes nothing else of the base.
func TestExtendedResourceExample(t *testing.T) {
	base, err := render(driver)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := render(extended)
	if err != nil {
		t.Fatal(err)
	}
	mapped, more := map[string]string{}, 0
	for _, c := range ofKind[resourcev1.DeviceClass](t, extended, "DeviceClass") {
		if c.Spec.ExtendedResourceName != nil {
			mapped[c.Name] = *c.Spec.ExtendedResourceName
		}
	}
	if want := "map[gpu" + classes + ":nvidia.com/gpu nvswitch" + classes + ":nvidia.com/nvswitch]"; fmt.Sprint(mapped) != want {
		t.Errorf("mapped are %v, want %s", mapped, want)
	}
	for _, o := range objects {
		without := regexp.MustCompile(`(?m)^  extendedResourceName: .*\n`).ReplaceAll(o, nil)
		if !slices.ContainsFunc(base, func(b []byte) bool { return bytes.Equal(b, without) }) {
			more++
			if !bytes.Contains(o, []byte("name: preset-node"+classes)) {
				t.Errorf("this is not of the base:\n%s", o)
			}
		}
	}
	if more != 2 || len(objects) != len(base)+2 {
		t.Errorf("there are %d objects beyond the base's %d, want a policy and its binding", more, len(base))
	}
}

// TestClaimExamples: each pod runs in a VM, gets what it names, and names what there is; and each
// template asks for classes that there are.
func TestClaimExamples(t *testing.T) {
	if err := run([]string{claims}, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range ofKind[resourcev1.DeviceClass](t, driver, "DeviceClass") {
		known[c.Name] = true
	}
	used := map[string]bool{}
	for _, p := range ofKind[corev1.Pod](t, claims, "Pod") {
		if r := p.Spec.RuntimeClassName; r == nil || !strings.HasPrefix(*r, "kata-") {
			t.Errorf("pod %s has no runtime class of Kata", p.Name)
		}
		if len(p.Spec.ResourceClaims) != 1 || p.Spec.ResourceClaims[0].ResourceClaimTemplateName == nil {
			t.Fatalf("pod %s names the claims %v", p.Name, p.Spec.ResourceClaims)
		}
		c := p.Spec.ResourceClaims[0]
		used[*c.ResourceClaimTemplateName] = true
		if got := p.Spec.Containers[0].Resources.Claims; len(got) != 1 || got[0].Name != c.Name {
			t.Errorf("the container of pod %s gets %v of the claim %s", p.Name, got, c.Name)
		}
	}
	templates := ofKind[resourcev1.ResourceClaimTemplate](t, claims, "ResourceClaimTemplate")
	if len(templates) < 6 {
		t.Fatalf("there are %d templates", len(templates))
	}
	for _, template := range templates {
		if !used[template.Name] {
			t.Errorf("no pod uses the template %s", template.Name)
		}
		for _, r := range template.Spec.Spec.Devices.Requests {
			for _, class := range classesOf(r) {
				if !known[class] {
					t.Errorf("template %s asks for the class %s, which nobody makes", template.Name, class)
				}
			}
		}
	}
}

func classesOf(r resourcev1.DeviceRequest) []string {
	var all []string
	if r.Exactly != nil {
		all = append(all, r.Exactly.DeviceClassName)
	}
	for _, alternative := range r.FirstAvailable {
		all = append(all, alternative.DeviceClassName)
	}
	return all
}

// TestEveryExampleIsInItsKustomization: what is not there is checked by nobody.
func TestEveryExampleIsInItsKustomization(t *testing.T) {
	for _, dir := range []string{claims, extended} {
		files, err := filepath.Glob(dir + "/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(dir + "/kustomization.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if name := filepath.Base(file); name != "kustomization.yaml" && !bytes.Contains(text, []byte("  - "+name+"\n")) {
				t.Errorf("%s does not name %s", dir, name)
			}
		}
	}
}

// TestDocumentHasObjects: what docs/dra.md shows is what Kubernetes knows.
func TestDocumentHasObjects(t *testing.T) {
	text, err := os.ReadFile("../../docs/dra.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
		for object := range bytes.SplitSeq(block[1], []byte("\n---\n")) {
			if bytes.Contains(object, []byte("kind: Kustomization")) {
				continue
			}
			found++
			if err := check(object); err != nil {
				t.Errorf("%v:\n%s", err, object)
			}
		}
	}
	if found == 0 {
		t.Error("docs/dra.md shows nothing")
	}
}
