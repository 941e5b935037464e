package preflight_test

import (
	"strings"
	"testing"

	"kata-device-plugin/internal/preflight"
)

// TestPlaces: a finding points at what is to be changed, and says how.
func TestPlaces(t *testing.T) {
	const off = "config.d/*.toml\"]\n\t[plugins.\"io.containerd.cri.v1.runtime\"]\n\tenable_cdi = false"
	for name, tt := range map[string]struct {
		edits             []string // old and new
		id, file, at      string   // at is in the line of the place, "" for none
		message, help, no string   // parts, and what is not said
	}{
		"CDI is off in settings": {
			edits: []string{`config.d/*.toml"]`, off}, id: "PRE005", file: "plugin.node", message: "switches CDI off",
			help: "take enable_cdi out of /etc/containerd/config.toml", no: "1.7",
		},
		"CDI is off in settings of 1.7": {
			edits: []string{`config.d/*.toml"]`, off, "containerd://2.1.4", "containerd://1.7.27"}, id: "PRE005",
			file: "plugin.node", message: "switches CDI off", help: "set enable_cdi to true in /etc/containerd/config.toml",
		},
		"CDI is not switched on in 1.7": {
			edits: []string{"containerd://2.1.4", "containerd://1.7.27"}, id: "PRE005", file: "plugin.node",
			message: "which has CDI off unless enable_cdi is set", help: "set enable_cdi to true in /etc/containerd/config.toml",
		},
		"no CDI in 1.6": {
			edits: []string{"containerd://2.1.4", "containerd://1.6.9"}, id: "PRE005", file: "cluster.yaml",
			at: "containerRuntimeVersion", message: "has no CDI", help: "update the runtime", no: "enable_cdi",
		},
		"a binding that warns": {
			edits: []string{"policyName: slices.vfio.katacontainers.io, validationActions: [Deny]",
				"policyName: slices.vfio.katacontainers.io, validationActions: [Warn]"}, id: "PRE018", file: "cluster.yaml",
			at: "validationActions: [Warn]", message: "deny: one has Warn",
			help: "bindings",
		},
		"a policy without a binding": {
			edits: []string{"policyName: slices.vfio.katacontainers.io", "policyName: other"}, id: "PRE018", file: "cluster.yaml",
			at: "metadata: {name: slices.vfio.katacontainers.io, uid: p3}", message: "no binding makes", help: "bindings",
		},
	} {
		w := ready(t)
		for i := 0; i < len(tt.edits); i += 2 {
			w = w.with(t, tt.edits[i], tt.edits[i+1])
		}
		some := false
		for _, f := range preflight.Run(w.input(t)).Findings {
			if f.ID != tt.id || f.Object.Name == "n2" {
				continue
			}
			some = true
			line := ""
			if f.Place.Line > 0 && f.Place.File == "cluster.yaml" {
				line = strings.Split(w.cluster, "\n")[f.Place.Line-1]
			}
			if f.Place.File != tt.file || !strings.Contains(line, tt.at) || !strings.Contains(f.Message, tt.message) ||
				!strings.Contains(f.Help, tt.help) || tt.no != "" && strings.Contains(f.Help, tt.no) {
				t.Errorf("%s: %s: %q: %s; %s", name, f.Place, line, f.Message, f.Help)
			}
		}
		if !some {
			t.Errorf("%s: no %s", name, tt.id)
		}
	}
}
