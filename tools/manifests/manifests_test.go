package main

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The rules about the manifests' content are tests of the main module, internal/arch. Here
// is what needs kustomize and Kubernetes' types: that they render, and to what.
func TestPluginsRender(t *testing.T) {
	for _, test := range []struct{ dir, namespace, image string }{
		{"../../deploy/kata-device-plugin", "kube-system", "kata-device-plugin:dev"},
		{"../../deploy/nic-device-plugin", "kube-system", "nic-device-plugin:dev"},
		{operator, "sriov-network-operator", "nic-device-plugin:dev"},
		{driver, "kube-system", "kata-dra-driver:dev"},
		{extended, "kube-system", "kata-dra-driver:dev"},
	} {
		var out bytes.Buffer
		if err := run([]string{test.dir}, &out); err != nil {
			t.Fatal(err)
		}
		objects, ds := daemonSet(t, test.dir)
		if got := strings.Count(out.String(), "\n---\n") + 1; got != objects {
			t.Errorf("%s: the output holds %d documents, want %d", test.dir, got, objects)
		}
		if image := ds.Spec.Template.Spec.Containers[0].Image; ds.Namespace != test.namespace || image != test.image {
			t.Errorf("%s: the DaemonSet is in namespace %q with image %q", test.dir, ds.Namespace, image)
		}
		labels := ds.Spec.Template.Labels
		for key, value := range ds.Spec.Selector.MatchLabels {
			if labels[key] != value {
				t.Errorf("%s: the selector wants %s=%s, the pods have %q", test.dir, key, value, labels[key])
			}
		}
		if labels["app.kubernetes.io/part-of"] != "passthrough" {
			t.Errorf("%s: the pods' labels are %v", test.dir, labels)
		}
	}
}

const operator = "../../deploy/examples/nic-sriov-operator"

// TestOperatorExample: the overlay adds what it says, and loses nothing of the base.
func TestOperatorExample(t *testing.T) {
	_, base := daemonSet(t, "../../deploy/nic-device-plugin")
	_, ds := daemonSet(t, operator)
	c, was := &ds.Spec.Template.Spec.Containers[0], &base.Spec.Template.Spec.Containers[0]
	if want := append(slices.Clone(was.Args), "--config-file=/etc/pcidp/$(NODE_NAME)", "--resource-prefix=openshift.io"); !slices.Equal(c.Args, want) {
		t.Errorf("the arguments are %q, want %q", c.Args, want)
	}
	if len(c.Env) != 1 || c.Env[0].Name != "NODE_NAME" || c.Env[0].ValueFrom.FieldRef.FieldPath != "spec.nodeName" {
		t.Errorf("the environment is %v", c.Env)
	}
	mounted := ""
	volumes := ds.Spec.Template.Spec.Volumes
	for i := range volumes {
		if m := volumes[i].ConfigMap; m != nil && m.Name == "device-plugin-config" && *m.Optional {
			mounted = volumes[i].Name
			m.Name = "sriovdp-config" // all that the overlay changes there
		}
	}
	if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == mounted && m.MountPath == "/etc/pcidp" }) {
		t.Errorf("the operator's ConfigMap is not at /etc/pcidp: %v", c.VolumeMounts)
	}
	c.Args, c.Env = was.Args, nil
	slices.SortFunc(volumes, byName)
	slices.SortFunc(base.Spec.Template.Spec.Volumes, byName)
	if !reflect.DeepEqual(ds.Spec, base.Spec) {
		t.Errorf("beside that it is not the base's any more:\n%v\n%v", ds.Spec, base.Spec)
	}
}

func byName(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) }

// daemonSet renders a directory and returns the number of its objects and its DaemonSet.
func daemonSet(t *testing.T, dir string) (int, *appsv1.DaemonSet) {
	t.Helper()
	objects, err := render(dir)
	if err != nil {
		t.Fatal(err)
	}
	var ds appsv1.DaemonSet
	for _, object := range objects {
		if bytes.Contains(object, []byte("kind: DaemonSet")) {
			if err := yaml.UnmarshalStrict(object, &ds); err != nil {
				t.Fatal(err)
			}
		}
	}
	return len(objects), &ds
}

func TestMistakesAreRefused(t *testing.T) {
	for _, test := range []struct{ name, object, want string }{
		{"misspelled", "apiVersion: apps/v1\nkind: DaemonSet\nspec: {template: {spec: {hostNetwerk: true}}}\n", `unknown field "hostNetwerk"`},
		{"misplaced", "apiVersion: apps/v1\nkind: DaemonSet\nspec: {template: {spec: {securityContext: {readOnlyRootFilesystem: true}}}}\n", "readOnlyRootFilesystem"},
		{"doubled", "apiVersion: apps/v1\nkind: DaemonSet\nkind: DaemonSet\n", "already set"},
		{"wrong type", "apiVersion: apps/v1\nkind: DaemonSet\nspec: {minReadySeconds: soon}\n", "minReadySeconds"},
		{"other kind", "apiVersion: v1\nkind: Secret\n", "v1 Secret is not a kind"},
		{"namespace", "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: x, namespace: y}\n", "in none"},
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
