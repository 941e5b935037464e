package arch

import (
	"fmt"
	"slices"
)

// privilegeRules are about what the plugin may do beyond what it does.
func privilegeRules(p plugin) []manifestRule {
	yes, no, one := true, false, 1
	return []manifestRule{{
		name: "one container",
		why:  "every rule about the container would have to hold for the others too",
		check: func(d *deployment) error {
			if n, m := len(d.pod().Containers), len(d.pod().InitContainers); n != 1 || m != 0 {
				return fmt.Errorf("there are %d containers and %d init containers, want 1 and 0", n, m)
			}
			return nil
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.pod().Containers = append(d.pod().Containers, container{Name: "sidecar"}) },
			func(d *deployment) { d.pod().InitContainers = []container{{Name: "setup"}} },
		},
	}, {
		name: "user",
		why:  "kubelet's directory is 0750 root, and the peer check of the plugin's sockets compares uids: say so, not by default",
		check: func(d *deployment) error {
			s := d.container().SecurityContext
			if !is(s.RunAsUser, 0) || !is(s.RunAsGroup, 0) || !is(s.RunAsNonRoot, false) {
				return fmt.Errorf("runAsUser %s, runAsGroup %s, runAsNonRoot %s; want 0, 0, false",
					show(s.RunAsUser), show(s.RunAsGroup), show(s.RunAsNonRoot))
			}
			return nil
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.container().SecurityContext.RunAsUser = nil },
			func(d *deployment) { d.container().SecurityContext.RunAsGroup = &one },
			func(d *deployment) { d.container().SecurityContext.RunAsNonRoot = &yes },
		},
	}, {
		name: "no capability",
		why:  "it reads directories and writes files as their owner: that takes none",
		check: func(d *deployment) error {
			c := d.container().SecurityContext.Capabilities
			return first(same("capabilities.drop", c.Drop, []string{"ALL"}), same("capabilities.add", len(c.Add), 0))
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.container().SecurityContext.Capabilities.Drop = nil },
			func(d *deployment) { d.container().SecurityContext.Capabilities.Drop = []string{"NET_RAW"} },
			func(d *deployment) { d.container().SecurityContext.Capabilities.Add = []string{"SYS_ADMIN"} },
		},
	}, {
		name: "no escalation",
		why:  "uid 0 without capabilities must not gain them by executing a file",
		check: func(d *deployment) error {
			s := d.container().SecurityContext
			if !is(s.AllowPrivilegeEscalation, false) || !is(s.Privileged, false) {
				return fmt.Errorf("allowPrivilegeEscalation %s, privileged %s; want false, false", show(s.AllowPrivilegeEscalation), show(s.Privileged))
			}
			return nil
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.container().SecurityContext.AllowPrivilegeEscalation = nil },
			func(d *deployment) { d.container().SecurityContext.Privileged = &yes },
		},
	}, {
		name: "read-only root",
		why:  "what it writes is in the two directories that it is there for",
		check: func(d *deployment) error {
			return same("readOnlyRootFilesystem", show(d.container().SecurityContext.ReadOnlyRootFilesystem), "true")
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.container().SecurityContext.ReadOnlyRootFilesystem = nil },
			func(d *deployment) { d.container().SecurityContext.ReadOnlyRootFilesystem = &no },
		},
	}, {
		name: "seccomp",
		why:  "the runtime's filter is not the default everywhere",
		check: func(d *deployment) error {
			return same("seccompProfile", d.container().SecurityContext.SeccompProfile.Type, "RuntimeDefault")
		},
		breaks: []func(*deployment){func(d *deployment) { d.container().SecurityContext.SeccompProfile.Type = "Unconfined" }},
	}, {
		name: "no host namespaces",
		why:  "kubelet is reached through a directory and devices through sysfs; absent, not false, so that nobody has a line to flip",
		check: func(d *deployment) error {
			return first(same("hostPID", show(d.pod().HostPID), "absent"), same("hostIPC", show(d.pod().HostIPC), "absent"))
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.pod().HostPID = &yes },
			func(d *deployment) { d.pod().HostIPC = &no },
		},
	}, {
		name: "host's user namespace",
		why:  "uid 0 of another user namespace could not write to kubelet's directory",
		check: func(d *deployment) error {
			return same("hostUsers", show(d.pod().HostUsers), "absent")
		},
		breaks: []func(*deployment){func(d *deployment) { d.pod().HostUsers = &no }},
	}, {
		name: "no API credential",
		why:  "it does not talk to the API server",
		check: func(d *deployment) error {
			return first(
				same("automountServiceAccountToken", show(d.pod().AutomountServiceAccountToken), "false"),
				same("serviceAccountName", d.pod().ServiceAccountName, ""),
			)
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.pod().AutomountServiceAccountToken = nil },
			func(d *deployment) { d.pod().ServiceAccountName = p.name },
		},
	}, {
		name: "input",
		why:  "what is not in its row it is not told: no other arguments, no environment, no port",
		check: func(d *deployment) error {
			c := d.container()
			if len(c.Command)+len(c.Env)+len(c.EnvFrom)+len(c.Ports) > 0 {
				return fmt.Errorf("command %q, env %v, envFrom %v, ports %v; want none", c.Command, c.Env, c.EnvFrom, c.Ports)
			}
			return first(
				same("args", slices.Concat([]string{}, c.Args), slices.Concat([]string{}, p.args)),
				same("enableServiceLinks", show(d.pod().EnableServiceLinks), "false"),
			)
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.container().Command = []string{"/" + p.name} },
			func(d *deployment) { d.container().Args = append(d.container().Args, "-v") },
			func(d *deployment) { d.container().Env = []any{map[string]any{"name": "NODE_NAME"}} },
			func(d *deployment) { d.container().EnvFrom = []any{map[string]any{}} },
			func(d *deployment) { d.container().Ports = []any{map[string]any{"containerPort": 8080.0}} },
			func(d *deployment) { d.pod().EnableServiceLinks = nil },
		},
	}}
}

// networkRules are about which network the plugin is in, and what it may do there.
func networkRules(p plugin) []manifestRule {
	yes, no := true, false
	if p.hostNetwork != "" {
		return []manifestRule{{
			name: "host network",
			why:  "it needs " + p.hostNetwork + "; it looks no name up; and a NetworkPolicy, which does not bind it there, would look like a protection",
			check: func(d *deployment) error {
				return first(
					same("hostNetwork", show(d.pod().HostNetwork), "true"),
					same("dnsPolicy", d.pod().DNSPolicy, "Default"),
					same("there is a NetworkPolicy", d.NetworkPolicy != nil, false),
				)
			},
			breaks: []func(*deployment){
				func(d *deployment) { d.pod().HostNetwork = nil },
				func(d *deployment) { d.pod().HostNetwork = &no },
				func(d *deployment) { d.pod().DNSPolicy = "ClusterFirstWithHostNet" },
				func(d *deployment) { d.NetworkPolicy = &networkPolicy{} },
			},
		}}
	}
	return []manifestRule{{
		name: "no network",
		why:  "it opens no TCP or UDP socket, so the network may as well refuse them; hostNetwork absent, not false, so that nobody has a line to flip",
		check: func(d *deployment) error {
			n := d.NetworkPolicy
			if n == nil {
				return fmt.Errorf("there is no NetworkPolicy")
			}
			return first(
				same("hostNetwork", show(d.pod().HostNetwork), "absent"),
				same("dnsPolicy", d.pod().DNSPolicy, ""),
				same("kind", n.APIVersion+" "+n.Kind, "networking.k8s.io/v1 NetworkPolicy"),
				same("pods", n.Spec.PodSelector.MatchLabels, map[string]string{"app.kubernetes.io/name": p.name}),
				same("policyTypes", n.Spec.PolicyTypes, []string{"Ingress", "Egress"}),
				same("rules", len(n.Spec.Ingress)+len(n.Spec.Egress), 0),
			)
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.pod().HostNetwork = &yes },
			func(d *deployment) { d.pod().HostNetwork = &no },
			func(d *deployment) { d.pod().DNSPolicy = "None" },
			func(d *deployment) { d.NetworkPolicy = nil },
			func(d *deployment) { d.NetworkPolicy.Spec.PodSelector.MatchLabels = nil },
			func(d *deployment) { d.NetworkPolicy.Spec.PolicyTypes = []string{"Ingress"} },
			func(d *deployment) { d.NetworkPolicy.Spec.Egress = []any{map[string]any{}} },
		},
	}}
}
