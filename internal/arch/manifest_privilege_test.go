package arch

import (
	"fmt"
	"slices"
)

// privilegeRules are about what the plugin may do beyond what it does.
func privilegeRules(p plugin) []manifestRule {
	yes, no, one := true, false, 1
	return []manifestRule{credentialRule(p), inputRule(p), {
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
	}}
}

// credentialRule is about what the program may say to the API server.
func credentialRule(p plugin) manifestRule {
	yes, no := true, false
	if p.api == "" {
		return manifestRule{
			name: "no API credential",
			why:  "it does not talk to the API server",
			check: func(d *deployment) error {
				return first(
					same("automountServiceAccountToken", show(d.pod().AutomountServiceAccountToken), "false"),
					same("serviceAccountName", d.pod().ServiceAccountName, ""),
					same("objects for the API server", d.API, apiObjects{}),
				)
			},
			breaks: []func(*deployment){
				func(d *deployment) { d.pod().AutomountServiceAccountToken = nil },
				func(d *deployment) { d.pod().ServiceAccountName = p.name },
				func(d *deployment) { d.API.Roles = []clusterRole{{}} },
			},
		}
	}
	return manifestRule{
		name: "API credential",
		why:  "it needs " + p.api + "; the account is its own, and no other pod gets the token without asking",
		check: func(d *deployment) error {
			if len(d.API.Accounts) != 1 {
				return fmt.Errorf("there are %d service accounts, want 1", len(d.API.Accounts))
			}
			a := d.API.Accounts[0]
			return first(
				same("automountServiceAccountToken of the pod", show(d.pod().AutomountServiceAccountToken), "true"),
				same("serviceAccountName", d.pod().ServiceAccountName, p.name),
				same("account", a.APIVersion+" "+a.Kind+" "+a.Metadata.Name, "v1 ServiceAccount "+p.name),
				same("automountServiceAccountToken of the account", show(a.AutomountServiceAccountToken), "false"),
			)
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.pod().AutomountServiceAccountToken = nil },
			func(d *deployment) { d.pod().ServiceAccountName = "default" },
			func(d *deployment) { d.API.Accounts = nil },
			func(d *deployment) { d.API.Accounts[0].Metadata.Name = "other" },
			func(d *deployment) { d.API.Accounts[0].AutomountServiceAccountToken = nil },
			func(d *deployment) { d.API.Accounts[0].AutomountServiceAccountToken = &yes },
			func(d *deployment) { d.pod().AutomountServiceAccountToken = &no },
		},
	}
}

// inputRule is about what the program is told, and where it can be asked.
func inputRule(p plugin) manifestRule {
	var env []envVar
	for _, e := range p.env {
		v := envVar{Name: e.name}
		v.ValueFrom.FieldRef.FieldPath = e.field
		env = append(env, v)
	}
	var ports []containerPort
	for _, o := range p.ports {
		ports = append(ports, containerPort{Name: o.name, ContainerPort: o.number})
	}
	rule := manifestRule{
		name: "input",
		why:  "what is not in its row it is not told: no other arguments, no other environment, no other port, and none of the host's",
		check: func(d *deployment) error {
			c := d.container()
			if len(c.Command)+len(c.EnvFrom) > 0 {
				return fmt.Errorf("command %q, envFrom %v; want none", c.Command, c.EnvFrom)
			}
			return first(
				same("env", c.Env, env),
				same("ports", c.Ports, ports),
				same("args", slices.Concat([]string{}, c.Args), slices.Concat([]string{}, p.args)),
				same("enableServiceLinks", show(d.pod().EnableServiceLinks), "false"),
			)
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.container().Command = []string{"/" + p.name} },
			func(d *deployment) { d.container().Args = append(d.container().Args, "-v") },
			func(d *deployment) { d.container().Env = append(d.container().Env, envVar{Name: "POD_NAME"}) },
			func(d *deployment) { d.container().EnvFrom = []any{map[string]any{}} },
			func(d *deployment) {
				d.container().Ports = append(d.container().Ports, containerPort{ContainerPort: 8080})
			},
			func(d *deployment) { d.pod().EnableServiceLinks = nil },
		},
	}
	for i := range p.env {
		rule.breaks = append(rule.breaks, func(d *deployment) { d.container().Env[i].Value = "fixed" })
	}
	for i := range p.ports {
		rule.breaks = append(rule.breaks, func(d *deployment) { d.container().Ports[i].HostPort = p.ports[i].number })
	}
	return rule
}
