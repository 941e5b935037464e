package chart

import (
	"strings"
	"testing"
)

// TestBothMechanisms: values by which a device plugin and the DRA driver could be on one node are refused,
// and those that keep them apart are not.
func TestBothMechanisms(t *testing.T) {
	both := func(plugin, driver string) string {
		return "kataDevicePlugin: {" + plugin + "}\ndraDriver: {enabled: true" + driver + "}\n"
	}
	const none = "affinity: null"
	affinity := func(expressions ...string) string {
		terms := ""
		for _, e := range expressions {
			terms += "{matchExpressions: [" + e + "]}, "
		}
		return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + terms + "]}}}"
	}
	const mode = "node-restriction.kubernetes.io/passthrough-mode"
	for _, test := range []struct {
		name, values string
		apart        bool
	}{
		{"as they come", both("", ""), true},
		{"no exclusion", both(none, ""), false},
		{"the driver everywhere", both("", ", nodeSelector: {"+mode+": null}"), false},
		{"another value than is excluded", both("", ", nodeSelector: {"+mode+": vfio}"), false},
		{"another value, excluded too", both(affinity("{key: "+mode+", operator: NotIn, values: [dra, vfio]}"), ", nodeSelector: {"+mode+": vfio}"), true},
		{"two pools by node selectors", both(none+", nodeSelector: {pool: a}", ", nodeSelector: {pool: b}"), true},
		{"one pool by node selectors", both(none+", nodeSelector: {pool: a}", ", nodeSelector: {pool: a}"), false},
		{"label must not be there", both(affinity("{key: "+mode+", operator: DoesNotExist}"), ""), true},
		{"one alternative lets it in", both(affinity("{key: "+mode+", operator: NotIn, values: [dra]}", "{key: pool, operator: Exists}"), ""), false},
		{"alternatives that all exclude", both(affinity("{key: "+mode+", operator: NotIn, values: [dra]}", "{key: "+mode+", operator: In, values: [plugin]}"), ""), true},
		{"by the driver's affinity", both(none+", nodeSelector: {pool: a}", ", "+affinity("{key: pool, operator: NotIn, values: [a]}")), true},
		{"by both affinities", both(affinity("{key: pool, operator: Exists}"), ", "+affinity("{key: pool, operator: DoesNotExist}")), true},
		{"values that overlap", both(affinity("{key: pool, operator: In, values: [a, b]}"), ", "+affinity("{key: pool, operator: In, values: [b, c]}")), false},
		{"preferred is not required", both("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: null,"+
			" preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: "+mode+", operator: NotIn, values: [dra]}]}}]}}", ""), false},
		{"the plugin is off", both("enabled: false, "+none, ""), true},
		{"the driver is off", "kataDevicePlugin: {" + none + "}\n", true},
		{"the NIC plugin, as it comes", both("", "") + "nicDevicePlugin: {enabled: true}\n", true},
		{"the NIC plugin, no exclusion", both("", "") + "nicDevicePlugin: {enabled: true, " + none + "}\n", false},
		{"the exporter is on all nodes", both("", "") + "exporter: {enabled: true}\n", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := try(t, usual(test.values))
			switch {
			case test.apart && err != nil:
				t.Errorf("refused: %v", err)
			case !test.apart && err == nil:
				t.Error("taken")
			case !test.apart:
				for _, want := range []string{"draDriver.nodeSelector", "Plugin.affinity", "given out twice", "NotIn"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the error does not say %q: %v", want, err)
					}
				}
			}
		})
	}
}

// TestNotes: the last thing that Helm prints is what to do next, with the names of this release.
func TestNotes(t *testing.T) {
	for _, test := range []struct{ name, values, want string }{
		{"kata-device-plugin", "", "kubectl -n kube-system rollout status daemonset/kata-device-plugin"},
		{"renamed", "kataDevicePlugin: {fullnameOverride: x}", "daemonset/x\n"},
		{"nic-device-plugin", only("nicDevicePlugin", ""), "create configmap nic-device-plugin --from-file=config.json"},
		{"nic-device-plugin configured", only("nicDevicePlugin", "config: '{}'"), "rollout status daemonset/nic-device-plugin"},
		{"kata-dra-driver", only("draDriver", ""), "kubectl label node NODE node-restriction.kubernetes.io/passthrough-mode=dra\n"},
		{"device-exporter", only("exporter", ""), "port-forward daemonset/device-exporter 9818"},
		{"nothing", "kataDevicePlugin: {enabled: false}", "--set kataDevicePlugin.enabled=true"},
	} {
		notes := render(t, usual(test.values)).Notes
		if !strings.Contains(notes, test.want) || !strings.Contains(notes, "docs/install.md") {
			t.Errorf("%s: the notes do not say %q:\n%s", test.name, test.want, notes)
		}
		if strings.Contains(notes, "\n\n\n") || strings.HasPrefix(notes, "\n\n") {
			t.Errorf("%s: the notes have holes:\n%s", test.name, notes)
		}
	}
}

// TestWarnings: what can be meant, and has a price, is taken, and the price is named.
func TestWarnings(t *testing.T) {
	monitor := func(more string) string {
		return only("exporter", "webConfigSecret: web, podMonitor: {enabled: true"+more+"}")
	}
	for _, test := range []struct{ name, kubernetes, values, want string }{
		{"names that are dropped", "1.35.1", only("draDriver", "deviceClasses: {extendedResources: true}"), "DRAExtendedResource"},
		{"names that are kept", "1.36.0", only("draDriver", "deviceClasses: {extendedResources: true}"), ""},
		{"no names", "1.35.1", only("draDriver", ""), ""},
		{"no policies", "1.37.2", only("draDriver", "admissionPolicies: {enabled: false}"), "draDriver.admissionPolicies.enabled"},
		{"open port", "1.37.2", only("exporter", "nicRules: {enabled: true}"), "exporter.webConfigSecret"},
		{"port with passwords", "1.37.2", only("exporter", "nicRules: {enabled: true}, webConfigSecret: web"), ""},
		{"Prometheus without TLS", "1.37.2", monitor(""), "exporter.podMonitor"},
		{"Prometheus of the driver", "1.37.2", only("draDriver", "webConfigSecret: web, podMonitor: {enabled: true}"), "draDriver.podMonitor"},
		{"Prometheus with TLS", "1.37.2", monitor(", scheme: https"), ""},
		{"Prometheus with a password", "1.37.2", monitor(", basicAuth: {username: {name: s, key: u}, password: {name: s, key: p}}"), ""},
	} {
		r := usual(test.values)
		r.Kubernetes = test.kubernetes
		notes := render(t, r).Notes
		if strings.Contains(notes, "WARNING") != (test.want != "") || !strings.Contains(notes, test.want) {
			t.Errorf("%s: the notes do not warn of %q alone:\n%s", test.name, test.want, notes)
		}
		if strings.Contains(notes, "\n\n\n") {
			t.Errorf("%s: the notes have holes:\n%s", test.name, notes)
		}
	}
}
