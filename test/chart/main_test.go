package chart

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

const (
	root      = "../.."
	chartDir  = root + "/charts/passthrough"
	namespace = "kube-system"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// usual is a release on a cluster of the newest version.
func usual(values string) Release {
	return Release{Name: "passthrough", Namespace: namespace, Kubernetes: "1.37.2", Values: values}
}

// try renders the chart, freshly loaded: Helm changes a chart that it has rendered.
func try(t testing.TB, r Release) (*Rendered, error) {
	t.Helper()
	c, err := Load(chartDir)
	must(t, err)
	return Render(c, r)
}

func render(t testing.TB, r Release) *Rendered {
	t.Helper()
	made, err := try(t, r)
	must(t, err)
	return made
}

// refused complains unless rendering fails with all these words.
func refused(t testing.TB, r Release, want ...string) {
	t.Helper()
	_, err := try(t, r)
	if err == nil {
		t.Errorf("these values are taken, want an error with %q:\n%s", want, r.Values)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q:\n%v", w, err)
		}
	}
}

// component is a row for each of the chart's.
type component struct {
	key, program string
}

func components() []component {
	return []component{
		{"kataDevicePlugin", "kata-device-plugin"},
		{"nicDevicePlugin", "nic-device-plugin"},
		{"draDriver", "kata-dra-driver"},
		{"exporter", "device-exporter"},
	}
}

// only are values that enable one component, with more of its values, in YAML's flow style.
func only(key, more string) string {
	values := ""
	for _, c := range components() {
		switch {
		case c.key == key && more != "":
			values += c.key + ": {enabled: true, " + more + "}\n"
		case c.key == key:
			values += c.key + ": {enabled: true}\n"
		default:
			values += c.key + ": {enabled: false}\n"
		}
	}
	return values
}

// daemonSets are the rendered ones by name.
func daemonSets(r *Rendered) map[string]*appsv1.DaemonSet {
	all := map[string]*appsv1.DaemonSet{}
	for _, o := range r.Objects {
		if ds, ok := o.(*appsv1.DaemonSet); ok {
			all[ds.Name] = ds
		}
	}
	return all
}
