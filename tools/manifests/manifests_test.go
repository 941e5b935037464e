package main

import (
	"bytes"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

const plugin = "../../deploy/kata-device-plugin"

// The rules about the manifests' content are tests of the main module, internal/arch. Here
// is what needs kustomize and Kubernetes' types: that they render, and to what.
func TestPluginRenders(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{plugin}, &out); err != nil {
		t.Fatal(err)
	}
	objects, err := render(plugin)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "\n---\n") + 1; got != len(objects) {
		t.Errorf("the output holds %d documents, want %d", got, len(objects))
	}
	var ds appsv1.DaemonSet
	for _, object := range objects {
		if bytes.Contains(object, []byte("kind: DaemonSet")) {
			if err := yaml.UnmarshalStrict(object, &ds); err != nil {
				t.Fatal(err)
			}
		}
	}
	if ds.Namespace != "kube-system" || ds.Spec.Template.Spec.Containers[0].Image != "kata-device-plugin:dev" {
		t.Errorf("the DaemonSet is in namespace %q with image %q", ds.Namespace, ds.Spec.Template.Spec.Containers[0].Image)
	}
	labels := ds.Spec.Template.Labels
	for key, value := range ds.Spec.Selector.MatchLabels {
		if labels[key] != value {
			t.Errorf("the selector wants %s=%s, the pods have %q", key, value, labels[key])
		}
	}
	if labels["app.kubernetes.io/part-of"] != "passthrough" {
		t.Errorf("the pods' labels are %v", labels)
	}
}

func TestMistakesAreRefused(t *testing.T) {
	for _, test := range []struct{ name, object, want string }{
		{"misspelled", "apiVersion: apps/v1\nkind: DaemonSet\nspec: {template: {spec: {hostNetwerk: true}}}\n", `unknown field "hostNetwerk"`},
		{"misplaced", "apiVersion: apps/v1\nkind: DaemonSet\nspec: {template: {spec: {securityContext: {readOnlyRootFilesystem: true}}}}\n", "readOnlyRootFilesystem"},
		{"doubled", "apiVersion: apps/v1\nkind: DaemonSet\nkind: DaemonSet\n", "already set"},
		{"wrong type", "apiVersion: apps/v1\nkind: DaemonSet\nspec: {minReadySeconds: soon}\n", "minReadySeconds"},
		{"other kind", "apiVersion: v1\nkind: Secret\n", "v1 Secret is not a kind"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := check([]byte(test.object)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
	if err := run([]string{t.TempDir()}, &bytes.Buffer{}); err == nil {
		t.Error("a directory without a kustomization renders")
	}
}
