package chart

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TestWrongValuesAreRefused: who mistypes a value is told which one. Without that a protection that is
// misspelled would not be there.
func TestWrongValuesAreRefused(t *testing.T) {
	for _, test := range []struct {
		name, values string
		want         []string
	}{
		{"component", "kataDevicePlugins: {enabled: true}", []string{"kataDevicePlugins"}},
		{"field", "kataDevicePlugin: {image: {tga: v1}}", []string{"/kataDevicePlugin/image", "tga"}},
		{"type", "exporter: {enabled: 'yes'}", []string{"/exporter/enabled", "boolean"}},
		{"enumeration", "exporter: {image: {pullPolicy: Sometimes}}", []string{"/exporter/image/pullPolicy", "IfNotPresent"}},
		{"digest", "draDriver: {image: {digest: sha256:12}}", []string{"/draDriver/image/digest"}},
		{"tag in the repository", "draDriver: {image: {repository: 'kata-dra-driver:v1'}}", []string{"/draDriver/image/repository"}},
		{"toleration", "exporter: {tolerations: [{operator: Exists, efect: NoExecute}]}", []string{"/exporter/tolerations/0", "efect"}},
		{"affinity", "exporter: {affinity: {nodeAfinity: {}}}", []string{"/exporter/affinity", "nodeAfinity"}},
		{"resources", "exporter: {resources: {limit: {memory: 1Gi}}}", []string{"/exporter/resources", "limit"}},
		{"operator of a toleration", "exporter: {tolerations: [{operator: Is}]}", []string{"/exporter/tolerations/0/operator", "Exists"}},
		{"effect of a toleration", "exporter: {tolerations: [{effect: NoRun}]}", []string{"/exporter/tolerations/0/effect", "NoExecute"}},
		{"operator of an affinity", "exporter: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " +
			"{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Is}]}]}}}}", []string{"/matchExpressions/0/operator", "DoesNotExist"}},
		{"operator of a peer", "exporter: {networkPolicy: {from: [{podSelector: {matchExpressions: [{key: a, operator: Gt}]}}]}}",
			[]string{"/matchExpressions/0/operator", "DoesNotExist"}},
		{"type of an update", "exporter: {updateStrategy: {type: Rolling}}", []string{"/exporter/updateStrategy/type", "OnDelete"}},
		{"number of nodes", "exporter: {updateStrategy: {rollingUpdate: {maxUnavailable: many}}}", []string{"/rollingUpdate/maxUnavailable"}},
		{"number of nodes as text", "exporter: {updateStrategy: {rollingUpdate: {maxUnavailable: '1'}}}", []string{"/rollingUpdate/maxUnavailable"}},
		{"more than all nodes", "exporter: {updateStrategy: {rollingUpdate: {maxUnavailable: 101%}}}", []string{"/rollingUpdate/maxUnavailable"}},
		{"less than no node", "exporter: {updateStrategy: {rollingUpdate: {maxUnavailable: -1}}}", []string{"/rollingUpdate/maxUnavailable"}},
		{"key of a label", "exporter: {podLabels: {'x y': a}}", []string{"'/exporter/podLabels'", "x y"}},
		{"key of an annotation", "exporter: {podAnnotations: {'x y': a}}", []string{"'/exporter/podAnnotations'", "x y"}},
		{"quantity", "exporter: {resources: {limits: {memory: lots}}}", []string{"/exporter/resources/limits/memory"}},
		{"unit of a quantity", "exporter: {resources: {limits: {memory: 64MB}}}", []string{"/exporter/resources/limits/memory"}},
		{"less than nothing", "exporter: {resources: {limits: {memory: -1}}}", []string{"/exporter/resources/limits/memory"}},
		{"priority class", "exporter: {priorityClassName: High_Priority}", []string{"/exporter/priorityClassName"}},
		{"name with an empty part", "exporter: {webConfigSecret: a..b}", []string{"/exporter/webConfigSecret"}},
		{"path that leads up", "kubeletDir: /var/lib/../kubelet", []string{"/kubeletDir"}},
		{"path with an empty part", "kubeletDir: /var//kubelet", []string{"/kubeletDir"}},
		{"long path", only("draDriver", "") + "kubeletDir: /" + strings.Repeat("a", 30), []string{"kubeletDir", "31", "30"}},
		{"registry with a scheme", "imageRegistry: 'https://r.example.com'", []string{"/imageRegistry"}},
		{"registry with capitals", "imageRegistry: r.example.com/Devices", []string{"/imageRegistry"}},
		{"repository with capitals", "exporter: {image: {repository: Exporter}}", []string{"/exporter/image/repository"}},
		{"flag without its value", "exporter: {extraArgs: [--poll-interval]}", []string{"/exporter/extraArgs/0"}},
		{"flag with an empty value", "exporter: {extraArgs: [--poll-interval=]}", []string{"/exporter/extraArgs/0"}},
		{"flag that is on or off", "draDriver: {extraArgs: [--device-metadata=maybe]}", []string{"/draDriver/extraArgs/0"}},
		{"long name", "exporter: {nameOverride: " + strings.Repeat("a", 64) + "}", []string{"/exporter/nameOverride"}},
		{"long full name", "exporter: {fullnameOverride: " + strings.Repeat("a", 64) + "}", []string{"/exporter/fullnameOverride"}},
		{"null", "kubeletDir: null", []string{"kubeletDir"}},
		{"component that is null", "exporter: null", []string{"exporter"}},
		{"label", "commonLabels: {a: 'b c'}", []string{"/commonLabels/a"}},
		{"label that is no string", "commonLabels: {a: 1}", []string{"/commonLabels/a"}},
		{"pull secret", "imagePullSecrets: [mine]", []string{"/imagePullSecrets/0"}},
		{"flag that the program does not have", "nicDevicePlugin: {extraArgs: [--poll=1s]}", []string{"/nicDevicePlugin/extraArgs/0"}},
		{"argument of the plugin that has none", "kataDevicePlugin: {extraArgs: [--v]}", []string{"/kataDevicePlugin", "extraArgs"}},
		{"environment", "kataDevicePlugin: {env: []}", []string{"/kataDevicePlugin", "env"}},
		{"security context", "kataDevicePlugin: {securityContext: {privileged: true}}", []string{"/kataDevicePlugin", "securityContext"}},
		{"interval", "exporter: {podMonitor: {interval: soon}}", []string{"/exporter/podMonitor/interval"}},
		{"configuration", "nicDevicePlugin: {enabled: true, config: '{\"resourceList\": ['}", []string{"nicDevicePlugin.config", "--set-file"}},
		{"configuration that is a list", "nicDevicePlugin: {enabled: true, config: '[]'}", []string{"nicDevicePlugin.config", "resourceList"}},
		{"one ConfigMap twice", only("nicDevicePlugin", "configMapName: sriovdp-config"),
			[]string{"nicDevicePlugin.configMapName", "nicDevicePlugin.sriovConfigMapName", "sriovdp-config"}},
		{"one ConfigMap twice, in the exporter", "exporter: {enabled: true, nicRules: {enabled: true}}\nnicDevicePlugin: {rdmaConfigMapName: nic-device-plugin}",
			[]string{"nicDevicePlugin.configMapName", "nicDevicePlugin.rdmaConfigMapName"}},
		{"two copies", "kataDevicePlugin: {updateStrategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}}", []string{"kataDevicePlugin.updateStrategy.rollingUpdate.maxSurge"}},
		{"one more and one less", only("draDriver", "updateStrategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 10%}}"), []string{"draDriver.updateStrategy.rollingUpdate", "maxUnavailable"}},
		{"no node at a time", "exporter: {updateStrategy: {rollingUpdate: {maxUnavailable: 0%}}}", []string{"exporter.updateStrategy.rollingUpdate", "maxUnavailable"}},
		{"one more, and the API server's default", only("draDriver", "updateStrategy: {rollingUpdate: {maxUnavailable: null}}"), []string{"draDriver.updateStrategy.rollingUpdate"}},
		{"names of classes that are not made", only("draDriver", "deviceClasses: {enabled: false, extendedResources: true}"), []string{"draDriver.deviceClasses.extendedResources", "draDriver.deviceClasses.enabled"}},
		{"policy that binds nobody", only("exporter", "nicRules: {enabled: true}, networkPolicy: {from: [{podSelector: {}}]}"), []string{"exporter.networkPolicy.from", "exporter.webConfigSecret"}},
		{"account without a name", only("draDriver", "serviceAccount: {create: false}"), []string{"draDriver.serviceAccount.name", "draDriver.serviceAccount.create"}},
		{"one name for two", "kataDevicePlugin: {nameOverride: x}\nexporter: {enabled: true, nameOverride: x}", []string{"kataDevicePlugin.nameOverride", "exporter.nameOverride", "x"}},
		{"one full name for two", "kataDevicePlugin: {fullnameOverride: x}\nexporter: {enabled: true, fullnameOverride: x}", []string{"exporter.nameOverride", "x"}},
	} {
		t.Run(test.name, func(t *testing.T) { refused(t, usual(test.values), test.want...) })
	}
}

// TestUpdateStrategies: what the API server takes is not refused.
func TestUpdateStrategies(t *testing.T) {
	for _, values := range []string{
		"kataDevicePlugin: {updateStrategy: {type: OnDelete}}", // beside the chart's own numbers, which do not count then
		"kataDevicePlugin: {updateStrategy: {rollingUpdate: {maxUnavailable: 3}}}",
		"kataDevicePlugin: {updateStrategy: {rollingUpdate: {maxUnavailable: 100%}}}",
		"kataDevicePlugin: {updateStrategy: {rollingUpdate: null}}",
		"kataDevicePlugin: {updateStrategy: null}",
		only("draDriver", "updateStrategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}"),
	} {
		render(t, usual(values))
	}
}

// TestValuesThatAreTaken: what looks odd and is right is not refused.
func TestValuesThatAreTaken(t *testing.T) {
	for _, values := range []string{
		"kubeletDir: /data/.k/..k/kubelet_1@b", "kubeletDir: /a", "kubeletDir: /" + strings.Repeat("a", 60),
		only("draDriver", "") + "kubeletDir: /" + strings.Repeat("a", 29),
		"imageRegistry: localhost:5000", "imageRegistry: '[fd00::1]:5000/a'", "imageRegistry: R.example.com/a__b/c-d.e",
		"kataDevicePlugin: {image: {repository: r.example.com/x/kata-device-plugin}}",
		"kataDevicePlugin: {resources: {limits: {memory: 64Mi, cpu: 0.5}, requests: {cpu: 100m, memory: 1e7}}}",
		"kataDevicePlugin: {resources: {limits: {memory: 64000000, cpu: '1.5'}}}",
		"kataDevicePlugin: {priorityClassName: ''}", "kataDevicePlugin: {priorityClassName: a.b-c}",
		"kataDevicePlugin: {podAnnotations: {example.com/a_b.c: 'x y'}}",
		only("draDriver", "extraArgs: [--device-metadata, --types=gpu]"), only("exporter", "extraArgs: [--pod-uid=false, --settle=0s]"),
	} {
		render(t, usual(values))
	}
}

// TestKubernetesVersions: what a cluster is too old for is refused before anything is made.
func TestKubernetesVersions(t *testing.T) {
	for _, test := range []struct {
		version, values string
		want            []string // of the refusal; none for yes
	}{
		{"1.30.9", "", []string{"1.31", "1.30.9"}},
		{"1.31.0", "", nil},
		{"1.31.4-eks-1234", "", nil},
		{"1.37.2", "", nil},
		{"1.33.5", only("draDriver", ""), []string{"draDriver.enabled", "1.34", "1.33.5"}},
		{"1.34.0", only("draDriver", ""), nil},
		{"1.34.2-gke.100", only("draDriver", ""), nil},
	} {
		r := usual(test.values)
		r.Kubernetes = test.version
		if test.want != nil {
			refused(t, r, test.want...)
		} else if _, err := try(t, r); err != nil {
			t.Errorf("%s: %v", test.version, err)
		}
	}
}

// TestAsDependency: a chart above this one hands down what it has for all charts.
func TestAsDependency(t *testing.T) {
	render(t, usual("global: {imageRegistry: r.example.com}"))
}

// TestImages: the four ways to name an image.
func TestImages(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for _, test := range []struct{ values, want string }{
		{"", "kata-device-plugin:dev"},
		{"imageRegistry: r.example.com:5000/d", "r.example.com:5000/d/kata-device-plugin:dev"},
		{"kataDevicePlugin: {image: {tag: v1.2.3}}", "kata-device-plugin:v1.2.3"},
		{"kataDevicePlugin: {image: {repository: 'r.example.com:5000/x', tag: v1, digest: '" + digest + "'}}", "r.example.com:5000/x@" + digest},
	} {
		ds := daemonSets(render(t, usual(test.values)))["kata-device-plugin"]
		if got := ds.Spec.Template.Spec.Containers[0].Image; got != test.want {
			t.Errorf("%q: the image is %s, want %s", test.values, got, test.want)
		}
	}
}

// TestNames: one name of the driver is in several objects, and they have to agree.
func TestNames(t *testing.T) {
	r := usual(only("draDriver", "fullnameOverride: objects, nameOverride: pods, serviceAccount: {name: account}"))
	r.Namespace = "elsewhere"
	account, binding, policy := "", "", ""
	for _, o := range render(t, r).Objects {
		switch o := o.(type) {
		case *corev1.ServiceAccount:
			account = o.Namespace + ":" + o.Name
		case *rbacv1.ClusterRoleBinding:
			binding = o.Subjects[0].Namespace + ":" + o.Subjects[0].Name
			if o.RoleRef.Name != "objects" {
				t.Errorf("the binding is of role %s", o.RoleRef.Name)
			}
		case *networkingv1.NetworkPolicy:
			if o.Spec.PodSelector.MatchLabels["app.kubernetes.io/name"] != "pods" {
				t.Errorf("the NetworkPolicy is about %v", o.Spec.PodSelector)
			}
		case *admissionv1.ValidatingAdmissionPolicy:
			for _, c := range o.Spec.MatchConditions {
				if c.Name == "is-the-driver" {
					policy = c.Expression
				}
			}
		}
	}
	if account != "elsewhere:account" || binding != account || policy != `request.userInfo.username == "system:serviceaccount:`+account+`"` {
		t.Errorf("the account is %s, the binding's %s, and the policy says %s", account, binding, policy)
	}
	if pod := daemonSets(render(t, r))["objects"].Spec.Template.Spec; pod.ServiceAccountName != "account" {
		t.Errorf("the pods have account %q", pod.ServiceAccountName)
	}
}

// TestNodeName: a container whose arguments have the node's name is told it, and no other has an environment.
func TestNodeName(t *testing.T) {
	for key, flag := range map[string]string{"nicDevicePlugin": "--config-file", "exporter": "--nic-config-file"} {
		for _, file := range []string{"/etc/pcidp/$(NODE_NAME)", "/etc/pcidp/config.json"} {
			for name, ds := range daemonSets(render(t, usual(only(key, "extraArgs: ['"+flag+"="+file+"']")))) {
				told := false
				for _, e := range ds.Spec.Template.Spec.Containers[0].Env {
					told = e.Name == "NODE_NAME" && e.ValueFrom.FieldRef.FieldPath == "spec.nodeName"
				}
				if told != strings.Contains(file, "NODE_NAME") {
					t.Errorf("%s with %s: told the node's name: %v", name, file, told)
				}
			}
		}
	}
}

// TestNotesSayWhatANamespaceNeeds: in kube-system pods with hostPath volumes are admitted, and elsewhere perhaps
// none appears, which a DaemonSet does not say loudly.
func TestNotesSayWhatANamespaceNeeds(t *testing.T) {
	const label = "kubectl label namespace devices pod-security.kubernetes.io/enforce=privileged"
	r := usual("")
	if notes := render(t, r).Notes; strings.Contains(notes, "pod-security") {
		t.Errorf("of kube-system is said:\n%s", notes)
	}
	r.Namespace = "devices"
	if notes := render(t, r).Notes; !strings.Contains(notes, label) {
		t.Errorf("%q is not in:\n%s", label, notes)
	}
}

// TestLabelsAreNotInSelectors: labels that change from release to release restart no pod.
func TestLabelsAreNotInSelectors(t *testing.T) {
	values := "commonLabels: {team: a}\nkataDevicePlugin: {podLabels: {tier: b, app.kubernetes.io/name: stolen}}\n"
	for _, o := range render(t, usual(values)).Objects {
		if l := o.GetLabels(); l["team"] != "a" || l["app.kubernetes.io/managed-by"] != "Helm" || l["app.kubernetes.io/instance"] != "passthrough" {
			t.Errorf("%s has the labels %v", ID(o), l)
		}
	}
	template := daemonSets(render(t, usual(values)))["kata-device-plugin"].Spec.Template
	for label, want := range map[string]string{
		"team": "a", "tier": "b", "app.kubernetes.io/name": "kata-device-plugin", "helm.sh/chart": "", "app.kubernetes.io/version": "",
	} {
		if got := template.Labels[label]; got != want {
			t.Errorf("the pods have %s=%q, want %q", label, got, want)
		}
	}
}

// TestLongVersions: whatever a version is cut to, it is the value of a label.
func TestLongVersions(t *testing.T) {
	for n := range 70 {
		c, err := Load(chartDir)
		must(t, err)
		version := "1.2.3-" + strings.Repeat("a", n) + ".-b+c.d"
		c.Metadata.Version, c.Metadata.AppVersion = version, version
		made, err := Render(c, usual(""))
		must(t, err)
		for _, o := range made.Objects {
			for key, value := range o.GetLabels() {
				for _, complaint := range validation.IsValidLabelValue(value) {
					t.Fatalf("%s: %s=%s: %s", version, key, value, complaint)
				}
			}
		}
	}
}

// TestConfigChecksum: pods are restarted for their configuration by those who ask for it alone.
func TestConfigChecksum(t *testing.T) {
	sum := func(more string) string {
		ds := daemonSets(render(t, usual(only("nicDevicePlugin", more))))["nic-device-plugin"]
		return ds.Spec.Template.Annotations["checksum/config"]
	}
	one, two := sum(`config: "{}", restartOnConfigChange: true`), sum(`config: "{ }", restartOnConfigChange: true`)
	if len(one) != 64 || len(two) != 64 || one == two {
		t.Errorf("the checksums of two configurations are %q and %q", one, two)
	}
	for _, more := range []string{"", `config: "{}"`, "restartOnConfigChange: true"} {
		if got := sum(more); got != "" {
			t.Errorf("{%s} has a checksum, %s", more, got)
		}
	}
}

// TestMonitoring: what a value of the exporter's does to the objects of the operators.
func TestMonitoring(t *testing.T) {
	values := only("exporter", `fullnameOverride: own, podMonitor: {enabled: true, labels: {release: p}, interval: 1m,
    scheme: https, tlsConfig: {insecureSkipVerify: true}, basicAuth: {username: {name: s, key: u}}},
  prometheusRule: {enabled: true, runbookURL: "https://git.example.com/p"}, networkPolicy: {from: [{podSelector: {}}]}`)
	seen := 0
	for _, o := range render(t, usual(values)).Objects {
		switch o := o.(type) {
		case *networkingv1.NetworkPolicy:
			seen++
			if len(o.Spec.Ingress) != 1 || len(o.Spec.Ingress[0].From) != 1 || len(o.Spec.Ingress[0].Ports) != 1 {
				t.Errorf("let in is %+v", o.Spec.Ingress)
			}
		case *unstructured.Unstructured:
			seen++
			text, err := o.MarshalJSON()
			must(t, err)
			want := []string{`"release":"p"`, `"interval":"1m"`, `"scheme":"https"`, `"tlsConfig":{"insecureSkipVerify":true}`, `"basicAuth":{"username":{"key":"u","name":"s"}}`}
			if o.GetKind() == "PrometheusRule" {
				want = []string{`job=~\"(.*/)?own\"`, `"runbook_url":"https://git.example.com/p/docs/runbooks/PassthroughContested.md"`, "{{ $labels.node }}"}
			}
			for _, w := range want {
				if !strings.Contains(string(text), w) {
					t.Errorf("%s does not have %s", ID(o), w)
				}
			}
		}
	}
	if seen != 3 {
		t.Errorf("%d of 3 objects are there", seen)
	}
}

// TestKubeletDir: the driver's sockets have one path inside and outside, and it is told so.
func TestKubeletDir(t *testing.T) {
	sets := daemonSets(render(t, usual("kubeletDir: /data/kubelet\nnicDevicePlugin: {enabled: true}\ndraDriver: {enabled: true}\nexporter: {enabled: true}\n")))
	driver := sets["kata-dra-driver"].Spec.Template.Spec
	if got := driver.Containers[0].Args; len(got) != 1 || got[0] != "--kubelet-dir=/data/kubelet" {
		t.Errorf("the driver's arguments are %q", got)
	}
	mounts := map[string]string{}
	for _, m := range driver.Containers[0].VolumeMounts {
		mounts[m.Name] = m.MountPath
	}
	for name, ds := range sets {
		for _, v := range ds.Spec.Template.Spec.Volumes {
			moved := v.HostPath != nil && strings.HasPrefix(v.HostPath.Path, "/data/kubelet/")
			if follows := v.Name == "registry" || v.Name == "plugin" || v.Name == "pod-resources" || v.Name == "driver"; moved != follows {
				t.Errorf("%s: volume %s is at %v", name, v.Name, v.HostPath)
			}
			if moved && name == "kata-dra-driver" && mounts[v.Name] != v.HostPath.Path {
				t.Errorf("%s is %s outside and %s inside", v.Name, v.HostPath.Path, mounts[v.Name])
			}
		}
	}
}
