package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"sigs.k8s.io/yaml"
)

// decode reads every document strictly into Kubernetes' types: a field that is not there, or stands
// in the wrong place, fails.
func decode(t *testing.T, stream string) []any {
	t.Helper()
	var all []any
	for _, d := range split([]byte(stream)) {
		must(t, d.parse())
		if d.root == nil {
			continue
		}
		root := d.root.Content[0]
		bodies := [][]byte{d.body}
		if text(get(root, "kind")) == "List" {
			bodies = nil
			for _, item := range items(get(root, "items")) {
				body, err := d.dump(item)
				must(t, err)
				bodies = append(bodies, body)
			}
		}
		for _, body := range bodies {
			if o := decodeOne(t, body); o != nil {
				all = append(all, o)
			}
		}
	}
	return all
}

func decodeOne(t *testing.T, body []byte) any {
	t.Helper()
	n, err := load(body)
	must(t, err)
	kind := text(get(n.Content[0], "apiVersion")) + "/" + text(get(n.Content[0], "kind"))
	o := map[string]any{
		"v1/Pod":              &corev1.Pod{},
		"v1/PodTemplate":      &corev1.PodTemplate{},
		"v1/ConfigMap":        &corev1.ConfigMap{},
		"v1/Service":          &corev1.Service{},
		"apps/v1/Deployment":  &appsv1.Deployment{},
		"apps/v1/StatefulSet": &appsv1.StatefulSet{},
		"apps/v1/DaemonSet":   &appsv1.DaemonSet{},
		"apps/v1/ReplicaSet":  &appsv1.ReplicaSet{},
		"batch/v1/Job":        &batchv1.Job{},
		"batch/v1/CronJob":    &batchv1.CronJob{},
		"resource.k8s.io/v1/ResourceClaimTemplate":      &resourcev1.ResourceClaimTemplate{},
		"resource.k8s.io/v1/ResourceClaim":              &resourcev1.ResourceClaim{},
		"resource.k8s.io/v1/DeviceClass":                &resourcev1.DeviceClass{},
		"resource.k8s.io/v1beta2/ResourceClaimTemplate": &resourcev1beta2.ResourceClaimTemplate{},
		"resource.k8s.io/v1beta1/ResourceClaimTemplate": &resourcev1beta1.ResourceClaimTemplate{},
	}[kind]
	if o == nil {
		foreign := []string{"jobset.x-k8s.io/v1alpha2/JobSet", "kubevirt.io/v1/VirtualMachine"} // not Kubernetes'
		if !slices.Contains(foreign, kind) {
			t.Fatalf("%s is of a type that the test does not know", kind)
		}
		return nil
	}
	if err := yaml.UnmarshalStrict(body, o); err != nil {
		t.Fatalf("%s: %v\n%s", kind, err, body)
	}
	return o
}

// TestRenderedIsKubernetes: what the golden files say decodes strictly.
func TestRenderedIsKubernetes(t *testing.T) {
	n := 0
	for _, file := range cases(t) {
		for _, s := range readSections(t, file) {
			if s.name == "policy" || strings.HasPrefix(s.text, "refused:") {
				continue
			}
			yamlText, _, _ := strings.Cut(s.text, "note: ")
			n += len(decode(t, yamlText))
		}
	}
	if n < 80 {
		t.Errorf("only %d objects", n)
	}
}

// TestDevicesAreTheSame: a claim has as many devices as a device plugin would give and the scheduler would
// count, each container has as many as its limit, and two that run at once share none.
func TestDevicesAreTheSame(t *testing.T) {
	r := seeded(t)
	pods := 0
	for range 25 {
		w := writer{r: r}
		input := w.documents()
		p := Default().With(DRA)
		p.Queue = &Queue{ClusterQueue: "q", Flavors: []ResourceFlavor{{Name: "f", Quotas: []Entry{
			{"nvidia.com/gpu", "1"}, {"nvidia.com/nvswitch", "1"}, {"vfio.katacontainers.io/nic", "1"}}}}}
		charged := mappingsOf(t, p)
		before, after := podSpecs(decode(t, input)), decode(t, outcome(t, input, p))
		templates := map[string]resourcev1.ResourceClaimSpec{}
		for _, o := range after {
			if c, ok := o.(*resourcev1.ResourceClaimTemplate); ok {
				templates[c.Namespace+"/"+c.Name] = c.Spec.Spec
			}
		}
		for i, spec := range podSpecs(after) {
			if complaint := compare(before[i], spec, templates, charged); complaint != "" {
				t.Fatalf("%s\n%s\n%s", complaint, input, outcome(t, input, p))
			}
			pods++
		}
	}
	if pods < 10 {
		t.Errorf("only %d pods", pods)
	}
}

// podIn is the spec of a pod with its namespace.
type podIn struct {
	namespace string
	spec      corev1.PodSpec
}

func podSpecs(all []any) []podIn {
	var specs []podIn
	for _, o := range all {
		switch o := o.(type) {
		case *corev1.Pod:
			specs = append(specs, podIn{o.Namespace, o.Spec})
		case *appsv1.Deployment:
			specs = append(specs, podIn{o.Namespace, o.Spec.Template.Spec})
		}
	}
	return specs
}

// counted is what the scheduler and a quota count for a pod with limits: KEP-753's rule for sidecars.
func counted(spec corev1.PodSpec, name corev1.ResourceName) int64 {
	limit := func(c corev1.Container) int64 { q := c.Resources.Limits[name]; return q.Value() }
	var initial, sidecars, regular int64
	for _, c := range spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars += limit(c)
			initial = max(initial, sidecars)
		} else {
			initial = max(initial, sidecars+limit(c))
		}
	}
	for _, c := range spec.Containers {
		regular += limit(c)
	}
	return max(initial, sidecars+regular)
}

// compare holds a pod with claims against what it was. charged has the resource that Kueue counts a
// class as.
func compare(before, after podIn, templates map[string]resourcev1.ResourceClaimSpec, charged map[string]string) string {
	type request struct {
		class string
		count int64
	}
	requests := map[string]request{}
	total := map[string]int64{}
	for _, c := range after.spec.ResourceClaims {
		claim, ok := templates[after.namespace+"/"+*c.ResourceClaimTemplateName]
		if !ok {
			return "there is no template " + *c.ResourceClaimTemplateName
		}
		for _, r := range claim.Devices.Requests {
			n := max(r.Exactly.Count, 1)
			requests[c.Name+"/"+r.Name] = request{charged[r.Exactly.DeviceClassName], n}
			total[charged[r.Exactly.DeviceClassName]] += n
		}
	}
	for _, f := range Default().Flavours {
		if got, want := total[f.Resource], counted(before.spec, corev1.ResourceName(f.Resource)); got != want {
			return fmt.Sprintf("the claim is of %d %s, and the limits count as %d", got, f.Resource, want)
		}
	}
	holder := map[string]string{}
	all := func(p podIn) []corev1.Container {
		return append(append([]corev1.Container(nil), p.spec.InitContainers...), p.spec.Containers...)
	}
	for i, c := range all(after) {
		has := map[string]int64{}
		for _, use := range c.Resources.Claims {
			key := use.Name + "/" + use.Request
			has[requests[key].class] += requests[key].count
			lasting := i >= len(after.spec.InitContainers) || c.RestartPolicy != nil
			switch {
			case lasting && holder[key] != "":
				return fmt.Sprintf("%s and %s share %s", holder[key], c.Name, key)
			case lasting:
				holder[key] = c.Name
			case holder[key] != "":
				return fmt.Sprintf("%s has %s, which the sidecar %s has kept", c.Name, key, holder[key])
			}
		}
		for _, f := range Default().Flavours {
			limit := all(before)[i].Resources.Limits[corev1.ResourceName(f.Resource)]
			if has[f.Resource] != limit.Value() {
				return fmt.Sprintf("%s has %d %s, and its limit is %d", c.Name, has[f.Resource], f.Resource, limit.Value())
			}
		}
	}
	return ""
}

// mappingsOf reads the classes that Kueue is told of.
func mappingsOf(t *testing.T, p *Policy) map[string]string {
	t.Helper()
	files, err := Kueue(p)
	must(t, err)
	var c struct {
		Resources struct {
			DeviceClassMappings []struct {
				Name             string   `json:"name"`
				DeviceClassNames []string `json:"deviceClassNames"`
			} `json:"deviceClassMappings"`
		} `json:"resources"`
	}
	must(t, yaml.Unmarshal(files.Configuration, &c))
	charged := map[string]string{}
	for _, m := range c.Resources.DeviceClassMappings {
		for _, class := range m.DeviceClassNames {
			charged[class] = m.Name
		}
	}
	return charged
}
