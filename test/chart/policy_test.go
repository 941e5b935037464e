package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// allowance is what a program may have beyond nothing at all. "docs/install.md" lists the same.
type allowance struct {
	hostNetwork bool
	token       bool
	writable    []string // directories of the host
}

func allowances() map[string]allowance {
	return map[string]allowance{
		"kata-device-plugin": {writable: []string{"/var/lib/kubelet/device-plugins", "/var/run/cdi"}},
		"nic-device-plugin": {hostNetwork: true,
			writable: []string{"/var/lib/kubelet/device-plugins", "/var/run/cdi", "/var/run/k8s.cni.cncf.io/devinfo/dp"}},
		"kata-dra-driver": {token: true,
			writable: []string{"/var/lib/kubelet/plugins/vfio.katacontainers.io", "/var/lib/kubelet/plugins_registry", "/var/run/cdi"}},
		"device-exporter": {},
	}
}

// combinations are values that change what a pod is like, each of them for each component.
func combinations() map[string]string {
	all := map[string]string{}
	for _, c := range components() {
		all[c.program] = only(c.key, "")
		for name, more := range map[string]string{
			"account":   "serviceAccount: {create: true, name: other}",
			"selinux":   "seLinuxOptions: {type: container_device_plugin_t}",
			"scheduled": "priorityClassName: '', tolerations: [], nodeSelector: {pool: a}, podLabels: {a: b}, podAnnotations: {a: b}",
			"resources": "resources: {requests: {cpu: 1, memory: 1Gi}, limits: {memory: 1Gi, cpu: 2}}",
			"renamed":   "fullnameOverride: objects, nameOverride: pods",
		} {
			all[c.program+" "+name] = only(c.key, more)
		}
	}
	all["nic-device-plugin configured"] = only("nicDevicePlugin", "config: '{\"resourceList\": []}', restartOnConfigChange: true, extraArgs: [--resource-prefix=a]")
	all["kata-dra-driver web"] = only("draDriver", "webConfigSecret: web, extraArgs: [--types=gpu], networkPolicy: {enabled: false}")
	all["device-exporter web"] = only("exporter", "webConfigSecret: web, extraArgs: [--settle=1m]")
	all["device-exporter NIC rules"] = only("exporter", "nicRules: {enabled: true}")
	all["everything"] = "nicDevicePlugin: {enabled: true}\ndraDriver: {enabled: true}\nexporter: {enabled: true}\n"
	return all
}

// TestPodsHaveNoMore: whatever values say, a pod has what its program needs and no more.
func TestPodsHaveNoMore(t *testing.T) {
	for name, values := range combinations() {
		t.Run(name, func(t *testing.T) {
			sets := daemonSets(render(t, usual(values)))
			if len(sets) == 0 {
				t.Fatal("there is no DaemonSet")
			}
			for _, ds := range sets {
				program := ds.Spec.Template.Spec.Containers[0].Name
				allowed, known := allowances()[program]
				if !known {
					t.Fatalf("nobody says what %s may have", program)
				}
				allowed.hostNetwork = allowed.hostNetwork || strings.HasSuffix(name, "NIC rules")
				for _, complaint := range beyond(ds, allowed) {
					t.Errorf("%s: %s", ds.Name, complaint)
				}
			}
		})
	}
}

// beyond says what a DaemonSet has that is not allowed.
func beyond(ds *appsv1.DaemonSet, allowed allowance) (found []string) {
	complain := func(bad bool, format string, args ...any) {
		if bad {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	pod := &ds.Spec.Template.Spec
	complain(pod.HostNetwork && !allowed.hostNetwork, "hostNetwork")
	complain(pod.HostPID || pod.HostIPC || pod.ShareProcessNamespace != nil, "a namespace of the host's or another's")
	complain(pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken != allowed.token,
		"automountServiceAccountToken is not %v", allowed.token)
	complain(pod.EnableServiceLinks == nil || *pod.EnableServiceLinks, "enableServiceLinks is on")
	complain(len(pod.InitContainers) > 0 || len(pod.Containers) != 1 || len(pod.EphemeralContainers) > 0, "there is more than one container")
	complain(pod.SecurityContext != nil, "the pod has a security context beside the container's")
	for _, container := range pod.Containers {
		found = append(found, beyondContainer(&container)...)
		found = append(found, beyondMounts(pod, &container, allowed)...)
	}
	for key, value := range ds.Spec.Selector.MatchLabels {
		complain(ds.Spec.Template.Labels[key] != value, "the selector wants %s=%s, which the pods do not have", key, value)
	}
	complain(len(ds.Spec.Selector.MatchLabels) != 1, "the selector is %v, and a label more or less makes an upgrade impossible", ds.Spec.Selector.MatchLabels)
	return found
}

func beyondContainer(c *corev1.Container) (found []string) {
	s := c.SecurityContext
	if s == nil || s.Privileged == nil || s.AllowPrivilegeEscalation == nil || s.ReadOnlyRootFilesystem == nil || s.Capabilities == nil || s.SeccompProfile == nil {
		return []string{"the security context leaves something open"}
	}
	if *s.Privileged || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem {
		found = append(found, "privileged, privilege escalation, or a root that can be written")
	}
	if len(s.Capabilities.Add) > 0 || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		found = append(found, "capabilities that are not all dropped")
	}
	if s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		found = append(found, "another seccomp profile than the runtime's")
	}
	if c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
		found = append(found, "no request or limit of memory")
	}
	for _, p := range c.Ports {
		if p.HostPort != 0 {
			found = append(found, "a port of the host's")
		}
	}
	return found
}

// beyondMounts holds mounts against what may be written, and volumes against kinds that need no API.
func beyondMounts(pod *corev1.PodSpec, c *corev1.Container, allowed allowance) (found []string) {
	volumes := map[string]corev1.Volume{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = v
		if v.HostPath == nil && v.EmptyDir == nil && v.ConfigMap == nil && v.Secret == nil {
			found = append(found, "volume "+v.Name+" is of another kind")
		}
	}
	var written []string
	for _, m := range c.VolumeMounts {
		v, there := volumes[m.Name]
		switch {
		case !there:
			found = append(found, "mount "+m.Name+" has no volume")
		case m.SubPath != "" || m.MountPropagation != nil:
			found = append(found, "mount "+m.Name+" has a sub-path, or propagates")
		case v.HostPath != nil && !m.ReadOnly:
			written = append(written, v.HostPath.Path)
		}
	}
	slices.Sort(written)
	if !slices.Equal(written, allowed.writable) {
		found = append(found, fmt.Sprintf("written can be %v, want %v", written, allowed.writable))
	}
	return found
}

// TestRightsOfTheDriver: of all components only the driver has rights in the API, and those in test/policy.
func TestRightsOfTheDriver(t *testing.T) {
	for name, values := range combinations() {
		var granted []string
		for _, o := range render(t, usual(values)).Objects {
			if role, ok := o.(*rbacv1.ClusterRole); ok {
				for _, rule := range role.Rules {
					granted = append(granted, fmt.Sprint(rule.APIGroups, rule.Resources, rule.Verbs))
				}
			}
		}
		var want []string
		if strings.HasPrefix(name, "kata-dra-driver") || name == "everything" {
			want = []string{
				"[resource.k8s.io] [resourceclaims] [get]",
				"[resource.k8s.io] [resourceslices] [get list watch create update patch delete]",
				"[] [nodes] [get]", "[] [events] [create patch]",
			}
		}
		if !slices.Equal(granted, want) {
			t.Errorf("%s: granted is %q, want %q", name, granted, want)
		}
	}
}
