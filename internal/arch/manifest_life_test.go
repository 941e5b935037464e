package arch

import (
	"fmt"
	"slices"
	"strings"
)

// volumeRules are about what the plugin sees of the host.
func volumeRules() []manifestRule {
	const plugins, vfio, cdi, run = "/var/lib/kubelet/device-plugins", "/dev/vfio", "/var/run/cdi", "/run/kata-device-plugin"
	return []manifestRule{{
		name: "host paths",
		why:  "these three directories are all that it needs, and of these it writes to two",
		check: func(d *deployment) error {
			return same("host paths", mounts(d), []string{
				vfio + " (DirectoryOrCreate) at " + vfio + " ro",
				plugins + " (Directory) at " + plugins + " rw",
				cdi + " (DirectoryOrCreate) at " + cdi + " rw",
			})
		},
		breaks: []func(*deployment){
			func(d *deployment) { mountAt(d, vfio).ReadOnly = false },
			func(d *deployment) { mountAt(d, vfio).MountPath = "/host/dev/vfio" },
			func(d *deployment) { mountAt(d, vfio).MountPropagation = "HostToContainer" },
			func(d *deployment) { volumeOf(d, vfio).HostPath.Path = "/dev" },
			func(d *deployment) { volumeOf(d, vfio).HostPath.Path = "/dev/vfio/devices" },
			func(d *deployment) { volumeOf(d, plugins).HostPath.Type = "DirectoryOrCreate" },
			func(d *deployment) { volumeOf(d, cdi).HostPath.Type = "" },
			func(d *deployment) { addHostPath(d, "sys", "/sys") },
			func(d *deployment) { d.container().VolumeMounts = d.container().VolumeMounts[1:] },
		},
	}, {
		name: "in-memory volume",
		why:  "the health socket needs a place that can be written to, and no disk",
		check: func(d *deployment) error {
			m := mountAt(d, run)
			for _, v := range d.pod().Volumes {
				if m != nil && v.Name == m.Name && v.EmptyDir != nil && v.EmptyDir.Medium == "Memory" && v.EmptyDir.SizeLimit != "" && !m.ReadOnly {
					return nil
				}
			}
			return fmt.Errorf("there is no emptyDir in memory with a size limit at %s", run)
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.pod().Volumes[3].EmptyDir.Medium = "" },
			func(d *deployment) { d.pod().Volumes[3].EmptyDir.SizeLimit = "" },
			func(d *deployment) { mountAt(d, run).MountPath = "/tmp" },
		},
	}}
}

// lifeRules are about start, health, upgrade and end.
func lifeRules() []manifestRule {
	const socket = "-addr=unix:///run/kata-device-plugin/health.sock"
	ready := []string{"/grpc_health_probe", socket}
	alive := []string{"/grpc_health_probe", socket, "-service=liveness"}
	return []manifestRule{{
		name: "probes",
		why:  "alive is about the process alone, since a restart mends nothing else; ready is everything it is there for",
		check: func(d *deployment) error {
			c := d.container()
			for _, p := range []struct {
				name    string
				probe   *probe
				command []string
			}{{"startupProbe", c.StartupProbe, alive}, {"livenessProbe", c.LivenessProbe, alive}, {"readinessProbe", c.ReadinessProbe, ready}} {
				if p.probe == nil {
					return fmt.Errorf("there is no %s", p.name)
				}
				if err := same("command of "+p.name, p.probe.Exec.Command, p.command); err != nil {
					return err
				}
				// The probe waits a second for the connection and a second for the answer.
				if p.probe.TimeoutSeconds < 3 {
					return fmt.Errorf("%s gives up after %d s, before the probe program does", p.name, p.probe.TimeoutSeconds)
				}
			}
			return nil
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.container().StartupProbe = nil },
			func(d *deployment) { d.container().LivenessProbe.Exec.Command = ready },
			func(d *deployment) { d.container().ReadinessProbe.Exec.Command = alive },
			func(d *deployment) { d.container().ReadinessProbe.TimeoutSeconds = 1 },
		},
	}, {
		name: "patience",
		why:  "a busy node must not make a plugin that works restart",
		check: func(d *deployment) error {
			for name, p := range map[string]*probe{"startupProbe": d.container().StartupProbe, "livenessProbe": d.container().LivenessProbe} {
				if s := p.PeriodSeconds * p.FailureThreshold; s < 60 {
					return fmt.Errorf("%s kills after %d s, want at least 60", name, s)
				}
			}
			return nil
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.container().LivenessProbe.FailureThreshold = 1 },
			func(d *deployment) { d.container().StartupProbe.PeriodSeconds = 1 },
		},
	}, {
		name: "resources",
		why:  "it must fit on a full node, a leak must not take the node down, and a CPU limit would only make pods wait",
		check: func(d *deployment) error {
			r := d.container().Resources
			return first(
				same("requests", r.Requests, map[string]string{"cpu": "10m", "memory": "20Mi"}),
				same("limits", r.Limits, map[string]string{"memory": "64Mi"}),
			)
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.container().Resources.Limits["cpu"] = "100m" },
			func(d *deployment) { d.container().Resources.Limits = nil },
			func(d *deployment) { d.container().Resources.Requests = nil },
		},
	}, {
		name: "rolling update",
		why:  "two copies on one node would wait for each other, and a bad version must not reach every node",
		check: func(d *deployment) error {
			u := d.DaemonSet.Spec.UpdateStrategy
			surge := fmt.Sprint(u.RollingUpdate.MaxSurge)
			if u.Type != "RollingUpdate" || surge != "0" {
				return fmt.Errorf("update strategy %s with maxSurge %s, want RollingUpdate with 0", u.Type, surge)
			}
			if m := fmt.Sprint(u.RollingUpdate.MaxUnavailable); m == "0" || m == "100%" || m == "<nil>" {
				return fmt.Errorf("maxUnavailable is %s, want some nodes but not all", m)
			}
			if d.DaemonSet.Spec.MinReadySeconds < 1 {
				return fmt.Errorf("minReadySeconds is %d: a pod that is ready for a moment would do", d.DaemonSet.Spec.MinReadySeconds)
			}
			return nil
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.DaemonSet.Spec.UpdateStrategy.Type = "OnDelete" },
			func(d *deployment) { d.DaemonSet.Spec.UpdateStrategy.RollingUpdate.MaxSurge = 1 },
			func(d *deployment) { d.DaemonSet.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = "100%" },
			func(d *deployment) { d.DaemonSet.Spec.MinReadySeconds = 0 },
		},
	}, {
		name: "end",
		why:  "it exits within a second, and a node that shuts down has few of them",
		check: func(d *deployment) error {
			if g := d.pod().TerminationGracePeriodSeconds; g == nil || *g < 2 || *g > 10 {
				return fmt.Errorf("terminationGracePeriodSeconds is %s, want 2 to 10", show(g))
			}
			return nil
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.pod().TerminationGracePeriodSeconds = nil },
			func(d *deployment) { *d.pod().TerminationGracePeriodSeconds = 30 },
		},
	}}
}

// mounts describes every host path with where and how it is mounted, in a fixed order.
func mounts(d *deployment) []string {
	var list []string
	for _, v := range d.pod().Volumes {
		if v.HostPath == nil {
			continue
		}
		where := "nowhere"
		for _, m := range d.container().VolumeMounts {
			if m.Name == v.Name {
				mode := map[bool]string{true: "ro", false: "rw"}[m.ReadOnly]
				where = strings.TrimSpace("at " + m.MountPath + " " + mode + " " + m.MountPropagation)
			}
		}
		list = append(list, fmt.Sprintf("%s (%s) %s", v.HostPath.Path, v.HostPath.Type, where))
	}
	slices.Sort(list)
	return list
}

func mountAt(d *deployment, path string) *volumeMount {
	for i, m := range d.container().VolumeMounts {
		if m.MountPath == path {
			return &d.container().VolumeMounts[i]
		}
	}
	return nil
}

func volumeOf(d *deployment, hostPath string) *volume {
	for i, v := range d.pod().Volumes {
		if v.HostPath != nil && v.HostPath.Path == hostPath {
			return &d.pod().Volumes[i]
		}
	}
	return nil
}

func addHostPath(d *deployment, name, path string) {
	v := d.pod().Volumes[0]
	v.Name = name
	host := *v.HostPath
	host.Path = path
	v.HostPath = &host
	d.pod().Volumes = append(d.pod().Volumes, v)
	d.container().VolumeMounts = append(d.container().VolumeMounts, volumeMount{Name: name, MountPath: path})
}
