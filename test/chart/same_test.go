package chart

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// TestSameAsBases: the chart and the kustomize bases deploy the same objects, so what is known of the one
// is known of the other. The mapping from components to values is the table in docs/install.md.
func TestSameAsBases(t *testing.T) {
	for _, test := range []struct {
		name, values string
		kustomize    string // a directory, or a kustomization
	}{
		{"the chart as it comes", "", "../../deploy/kata-device-plugin"},
		{"kata-device-plugin", only("kataDevicePlugin", ""), "../../deploy/kata-device-plugin"},
		{"nic-device-plugin", only("nicDevicePlugin", ""), "../../deploy/nic-device-plugin"},
		{"kata-dra-driver", only("draDriver", ""), "../../deploy/kata-dra-driver"},
		{"extended resources", only("draDriver", "deviceClasses: {extendedResources: true}"), "../../deploy/examples/dra-extended-resource"},
		{"device-exporter", only("exporter", ""), "../../deploy/device-exporter"},
		{"PodMonitor", only("exporter", "podMonitor: {enabled: true}"), exporterWith("podmonitor")},
		{"PrometheusRule", only("exporter", "prometheusRule: {enabled: true}"), exporterWith("prometheusrule")},
		{"dashboard", only("exporter", "dashboard: {enabled: true}"), exporterWith("dashboard")},
		{"NIC rules", only("exporter", "nicRules: {enabled: true}"), exporterWith("nic-rules")},
		{"people's CDI specs", only("exporter", "staticCDI: {enabled: true}"), exporterWith("static-cdi")},
		{"all components of the exporter", only("exporter",
			"podMonitor: {enabled: true}, prometheusRule: {enabled: true}, dashboard: {enabled: true}, nicRules: {enabled: true}, "+
				"staticCDI: {enabled: true}"),
			exporterWith("podmonitor", "prometheusrule", "dashboard", "nic-rules", "static-cdi")},
		{"PodMonitor of the driver", only("draDriver", "podMonitor: {enabled: true}"), "resources:\n  - ../../deploy/kata-dra-driver\n" +
			"components:\n  - ../../deploy/device-exporter/components/dra-driver\n"},
		{"another namespace", only("draDriver", ""), moved},
		{"SR-IOV network operator", perNode(t), operator},
	} {
		t.Run(test.name, func(t *testing.T) {
			release := usual(test.values)
			switch test.kustomize {
			case moved:
				release.Namespace = "passthrough"
			case operator:
				release.Namespace = "sriov-network-operator"
			}
			got := plain(t, render(t, release).Objects)
			want := plain(t, kustomized(t, test.kustomize))
			labelled(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the chart is not what kustomize makes (-kustomize +chart):\n%s", diff)
			}
		})
	}
}

// TestEveryBaseIsCompared: a base or a component that is added has to be in the table above.
func TestEveryBaseIsCompared(t *testing.T) {
	disk := filesys.MakeFsOnDisk()
	for dir, known := range map[string][]string{
		"../../deploy": {"device-exporter", "kata-device-plugin", "kata-dra-driver", "nic-device-plugin"},
		"../../deploy/device-exporter/components": {"dashboard", "dra-driver", "nic-rules", "podmonitor", "prometheusrule", "static-cdi"},
	} {
		names, err := disk.ReadDir(dir)
		must(t, err)
		names = slices.DeleteFunc(names, func(name string) bool { return !disk.Exists(dir + "/" + name + "/kustomization.yaml") })
		slices.Sort(names)
		if !slices.Equal(names, known) {
			t.Errorf("%s has %v, and compared are %v", dir, names, known)
		}
	}
}

// operator is the example for the SR-IOV network operator.
const operator = "../../deploy/examples/nic-sriov-operator"

// perNode are the values that docs/nic.md has for it.
func perNode(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/nic.md")
	must(t, err)
	_, rest, _ := strings.Cut(string(text), "### SR-IOV network operator")
	_, rest, _ = strings.Cut(rest, "```yaml\n")
	values, _, _ := strings.Cut(rest, "```")
	return values
}

// moved is the overlay of docs/dra.md for another namespace.
const moved = `resources:
  - ../../deploy/kata-dra-driver
patches:
  - target: {kind: DaemonSet|NetworkPolicy|ServiceAccount}
    patch: |-
      - {op: replace, path: /metadata/namespace, value: passthrough}
  - target: {kind: ClusterRoleBinding}
    patch: |-
      - {op: replace, path: /subjects/0/namespace, value: passthrough}
  - target: {kind: ValidatingAdmissionPolicy, name: slices.vfio.katacontainers.io}
    patch: |-
      - op: replace
        path: /spec/matchConditions/0/expression
        value: request.userInfo.username == "system:serviceaccount:passthrough:kata-dra-driver"
`

func exporterWith(components ...string) string {
	text := "resources:\n  - ../../deploy/device-exporter\ncomponents:\n"
	for _, c := range components {
		text += "  - ../../deploy/device-exporter/components/" + c + "\n"
	}
	return text
}

// kustomized renders a directory, or the text of a kustomization that is as if it were beside this file.
func kustomized(t *testing.T, what string) []Object {
	t.Helper()
	dir := what
	if strings.Contains(what, "\n") {
		dir = overlay(t, what)
	}
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	must(t, err)
	text, err := resources.AsYaml()
	must(t, err)
	objects, err := Decode(text)
	must(t, err)
	return objects
}

// plain are objects by their IDs, without what only Helm adds.
func plain(t *testing.T, objects []Object) map[string]Object {
	t.Helper()
	all := map[string]Object{}
	for _, o := range objects {
		labels := o.GetLabels()
		for _, label := range []string{"helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version"} {
			delete(labels, label)
		}
		o.SetLabels(labels)
		switch o := o.(type) {
		case *appsv1.DaemonSet:
			sortPod(&o.Spec.Template.Spec)
		case *unstructured.Unstructured:
			folded(o.Object)
		}
		if all[ID(o)] != nil {
			t.Errorf("there are two of %s", ID(o))
		}
		all[ID(o)] = o
	}
	return all
}

// labelled adds the labels of a base to what an overlay or a component adds: those are outside of the
// kustomization that labels.
func labelled(objects map[string]Object) {
	standard := map[string]string{}
	for _, o := range objects {
		if ds, ok := o.(*appsv1.DaemonSet); ok {
			standard = ds.Labels
		}
	}
	for _, o := range objects {
		labels := maps.Clone(standard)
		maps.Copy(labels, o.GetLabels())
		o.SetLabels(labels)
	}
}

// folded takes away the empty lines that kustomize adds to folded text of several indentations. To the
// languages in it they mean nothing.
func folded(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "\n\n", "\n")
	case []any:
		for i := range v {
			v[i] = folded(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = folded(v[key])
		}
	}
	return v
}

// sortPod takes the order of volumes and mounts away, which means nothing.
func sortPod(pod *corev1.PodSpec) {
	slices.SortFunc(pod.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
	for i := range pod.Containers {
		slices.SortFunc(pod.Containers[i].VolumeMounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
	}
}
