package chart

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"sigs.k8s.io/yaml"
)

// TestLint: Helm's own linter has nothing to say, but that there is no icon.
func TestLint(t *testing.T) {
	version, err := common.ParseKubeVersion(usual("").Kubernetes)
	must(t, err)
	for name, values := range combinations() {
		v, err := Values(values)
		must(t, err)
		lint := action.NewLint()
		lint.Namespace, lint.Strict, lint.KubeVersion = namespace, true, version
		for _, m := range lint.Run([]string{chartDir}, v).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

// guide is the document about installation.
func guide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/install.md")
	must(t, err)
	return string(text)
}

// TestGuideNamesValues: a value or a base that docs/install.md names is there.
func TestGuideNamesValues(t *testing.T) {
	c, err := Load(chartDir)
	must(t, err)
	seen := 0
	for _, m := range regexp.MustCompile("`((?:kataDevicePlugin|nicDevicePlugin|draDriver|exporter)\\.[A-Za-z.]+)`").FindAllStringSubmatch(guide(t), -1) {
		seen++
		var at any = c.Values
		for key := range strings.SplitSeq(m[1], ".") {
			group, _ := at.(map[string]any)
			at = group[key]
		}
		if at == nil {
			t.Errorf("docs/install.md names the value %s, which is not there", m[1])
		}
	}
	for _, m := range regexp.MustCompile("`(deploy/[a-z/-]+|components/[a-z-]+)`").FindAllStringSubmatch(guide(t), -1) {
		seen++
		dir := m[1]
		if strings.HasPrefix(dir, "components") {
			dir = "deploy/device-exporter/" + dir
		}
		if _, err := os.Stat(root + "/" + dir); err != nil {
			t.Errorf("docs/install.md names %s: %v", m[1], err)
		}
	}
	if seen < 15 {
		t.Errorf("only %d names were found", seen)
	}
}

// TestGuideSaysWhatProgramsGet: the table of privileges in docs/install.md is the one that pods are held
// against.
func TestGuideSaysWhatProgramsGet(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| ([a-z-]+) \| ([a-zA-Z ]+) \| (yes|no) \| (.*) \|$`).FindAllStringSubmatch(guide(t), -1)
	seen := 0
	plugin := allowances()["kata-device-plugin"].writable
	for _, row := range rows {
		allowed, known := allowances()[row[1]]
		if !known {
			continue
		}
		seen++
		var written []string
		if strings.HasPrefix(row[4], "the same, and ") {
			written = slices.Clone(plugin)
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[4], -1) {
			written = append(written, m[1])
		}
		if (row[2] == "yes") != allowed.hostNetwork || (row[3] == "yes") != allowed.token || !slices.Equal(written, allowed.writable) {
			t.Errorf("docs/install.md says %q, and it is %+v", row[0], allowed)
		}
	}
	if seen != len(allowances()) {
		t.Errorf("docs/install.md has %d of %d programs", seen, len(allowances()))
	}
}

// TestOpenShiftConstraints: the constraints in docs/install.md let in what the chart makes, and allow no more than
// some program needs. That is all that can be shown without OpenShift.
func TestOpenShiftConstraints(t *testing.T) {
	_, rest, _ := strings.Cut(guide(t), "apiVersion: security.openshift.io/v1\n")
	text, _, _ := strings.Cut(rest, "```")
	var allowed struct {
		AllowHostNetwork, AllowHostPorts, AllowHostDirVolumePlugin            bool
		AllowHostPID, AllowHostIPC, AllowPrivilegedContainer                  bool
		AllowPrivilegeEscalation, ReadOnlyRootFilesystem                      bool
		AllowedCapabilities, DefaultAddCapabilities, RequiredDropCapabilities []string
		SeccompProfiles, Volumes                                              []string
	}
	must(t, yaml.Unmarshal([]byte(text), &allowed))
	a := allowed
	if a.AllowHostPID || a.AllowHostIPC || a.AllowPrivilegedContainer || a.AllowPrivilegeEscalation || !a.ReadOnlyRootFilesystem ||
		len(a.AllowedCapabilities)+len(a.DefaultAddCapabilities) > 0 || !slices.Equal(a.RequiredDropCapabilities, []string{"ALL"}) ||
		!slices.Equal(a.SeccompProfiles, []string{"runtime/default"}) {
		t.Errorf("they allow what no pod has: %+v", a)
	}
	volumes, network := map[string]bool{"projected": true}, false // kubelet adds the token
	for _, values := range combinations() {
		for _, ds := range daemonSets(render(t, usual(values))) {
			network = network || ds.Spec.Template.Spec.HostNetwork
			for _, v := range ds.Spec.Template.Spec.Volumes {
				for kind, has := range map[string]bool{
					"hostPath": v.HostPath != nil, "emptyDir": v.EmptyDir != nil, "configMap": v.ConfigMap != nil, "secret": v.Secret != nil,
				} {
					volumes[kind] = volumes[kind] || has
				}
			}
		}
	}
	if got := slices.Sorted(maps.Keys(volumes)); !slices.Equal(got, a.Volumes) || a.AllowHostNetwork != network || !a.AllowHostDirVolumePlugin {
		t.Errorf("volumes are %v and the host's network %v, and allowed is %+v", got, network, a)
	}
}
