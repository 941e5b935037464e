package chart

import (
	"io"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/kube/fake"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
)

// TestReusedValues: who upgrades with the values of the old release gets those of the old chart as well. What the
// new chart has more is said to be missing, and is not taken for empty.
func TestReusedValues(t *testing.T) {
	version, err := common.ParseKubeVersion(usual("").Kubernetes)
	must(t, err)
	for _, test := range []struct {
		name          string
		reuse, theirs bool
		want          string // of the refusal; "" for yes
	}{
		{"--reuse-values", true, false, "missing property 'kubeletDir'"},
		{"--reset-then-reuse-values", false, true, ""},
	} {
		cluster := action.NewConfiguration()
		cluster.Releases = storage.Init(driver.NewMemory())
		cluster.KubeClient = &fake.PrintingKubeClient{Out: io.Discard}
		capabilities := *common.DefaultCapabilities
		capabilities.KubeVersion = *version
		cluster.Capabilities = &capabilities
		old, err := Load(chartDir)
		must(t, err)
		delete(old.Values, "kubeletDir") // the old chart did not have it
		old.Schema = nil
		install := action.NewInstall(cluster)
		install.ReleaseName, install.Namespace = "passthrough", namespace
		_, err = install.Run(old, map[string]any{"imageRegistry": "r.example.com"})
		must(t, err)

		next, err := Load(chartDir)
		must(t, err)
		upgrade := action.NewUpgrade(cluster)
		upgrade.Namespace, upgrade.ReuseValues, upgrade.ResetThenReuseValues = namespace, test.reuse, test.theirs
		_, err = upgrade.Run("passthrough", next, nil)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}
