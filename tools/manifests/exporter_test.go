package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const exporter = "../../deploy/device-exporter"

// withComponents is an overlay of the exporter's base with some of its components.
func withComponents(t *testing.T, names ...string) string {
	t.Helper()
	base, err := filepath.Abs(exporter)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	relative, err := filepath.Rel(dir, base)
	if err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [" + relative + "]\ncomponents:\n"
	for _, name := range names {
		text += "  - " + relative + "/components/" + name + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestComponents: each component, and all of them together, render to what their owners know, and add just
// what they are said to.
func TestComponents(t *testing.T) {
	adds := map[string]string{
		"podmonitor": "PodMonitor", "prometheusrule": "PrometheusRule", "dashboard": "ConfigMap", "nic-rules": "", "dra-driver": "PodMonitor", "static-cdi": "",
	}
	entries, err := os.ReadDir(exporter + "/components")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		kind, known := adds[e.Name()]
		if !known {
			t.Errorf("component %s is not checked here", e.Name())
			continue
		}
		var out bytes.Buffer
		dir := withComponents(t, e.Name())
		if err := run([]string{dir}, &out); err != nil {
			t.Errorf("component %s: %v", e.Name(), err)
		}
		if kind != "" && !strings.Contains(out.String(), "\nkind: "+kind+"\n") {
			t.Errorf("component %s: there is no %s:\n%s", e.Name(), kind, &out)
		}
	}
	if err := run([]string{withComponents(t, slices.Sorted(maps.Keys(adds))...)}, &bytes.Buffer{}); err != nil {
		t.Errorf("all components: %v", err)
	}
}

// TestPodMonitors: each selects the pods of its program and a port that they have. That of the exporter
// leaves the labels of who has a device as they are.
func TestPodMonitors(t *testing.T) {
	for component, base := range map[string]string{"podmonitor": exporter, "dra-driver": driver} {
		t.Run(component, func(t *testing.T) {
			m := ofKind[monitoringv1.PodMonitor](t, withComponents(t, component), "PodMonitor")[0]
			fits(t, &m, &ofKind[appsv1.DaemonSet](t, base, "DaemonSet")[0])
			if e := m.Spec.PodMetricsEndpoints[0]; e.HonorLabels != (base == exporter) {
				t.Errorf("honorLabels is %t", e.HonorLabels)
			}
		})
	}
}

// fits complains about a PodMonitor that is not for the pods of a DaemonSet.
func fits(t *testing.T, m *monitoringv1.PodMonitor, ds *appsv1.DaemonSet) {
	t.Helper()
	for key, value := range m.Spec.Selector.MatchLabels {
		if ds.Spec.Template.Labels[key] != value {
			t.Errorf("it selects %s=%s, and the pods have %v", key, value, ds.Spec.Template.Labels)
		}
	}
	if m.Namespace != ds.Namespace || len(m.Spec.Selector.MatchLabels) == 0 || len(m.Spec.PodMetricsEndpoints) != 1 {
		t.Fatalf("%s: %+v", m.Namespace, m.Spec)
	}
	e := m.Spec.PodMetricsEndpoints[0]
	if e.Port == nil || !slices.ContainsFunc(ds.Spec.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == *e.Port }) {
		t.Errorf("it scrapes %v", e.Port)
	}
	if len(e.RelabelConfigs) != 1 || e.RelabelConfigs[0].TargetLabel != "node" {
		t.Errorf("%+v", e)
	}
}

// TestDashboardMistakesAreRefused: what Grafana would not show is not let through.
func TestDashboardMistakesAreRefused(t *testing.T) {
	good := ofKind[corev1.ConfigMap](t, withComponents(t, "dashboard"), "ConfigMap")[0]
	const file = "passthrough-devices.json"
	for _, test := range []struct{ name, old, new, want string }{
		{"dashboard's field", `"schemaVersion"`, `"schemeVersion"`, "schemeVersion"},
		{"panel's field", `"gridPos"`, `"gridPoz"`, "gridPoz"},
		{"panel's option", `"colorMode"`, `"colourMode"`, "colourMode"},
		{"query's field", `"expr"`, `"expression"`, "expression"},
		{"no JSON", `{`, ``, "decode dashboard " + file},
	} {
		t.Run(test.name, func(t *testing.T) {
			bad := *good.DeepCopy()
			bad.Data[file] = strings.Replace(bad.Data[file], test.old, test.new, 1)
			if bad.Data[file] == good.Data[file] {
				t.Fatalf("there is no %s", test.old)
			}
			if err := checkDashboards(&bad); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
	plain := *good.DeepCopy()
	plain.Labels = nil
	text, err := yaml.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := check(text); err == nil || !strings.Contains(err.Error(), dashboardLabel) {
		t.Errorf("got %v", err)
	}
}
