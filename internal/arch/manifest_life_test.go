package arch

import "fmt"

// lifeRules are about start, health, upgrade and end.
func lifeRules(p plugin) []manifestRule {
	socket := "-addr=unix:///run/" + p.name + "/health.sock"
	ready := []string{"/grpc_health_probe", socket}
	alive := []string{"/grpc_health_probe", socket, "-service=liveness"}
	return []manifestRule{updateRule(p), {
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
				same("requests", r.Requests, map[string]string{"cpu": "10m", "memory": p.request}),
				same("limits", r.Limits, map[string]string{"memory": p.limit}),
			)
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.container().Resources.Limits["cpu"] = "100m" },
			func(d *deployment) { d.container().Resources.Limits = nil },
			func(d *deployment) { d.container().Resources.Requests = nil },
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

// updateRule is about how one version takes over from another.
func updateRule(p plugin) manifestRule {
	why := "two copies on one node would wait for each other"
	none, some := "maxSurge", "maxUnavailable"
	if p.together != "" {
		why, none, some = p.together, some, none
	}
	return manifestRule{
		name: "rolling update",
		why:  why + ", and a bad version must not reach every node",
		check: func(d *deployment) error {
			u := d.DaemonSet.Spec.UpdateStrategy
			is := map[string]string{"maxSurge": fmt.Sprint(u.RollingUpdate.MaxSurge), "maxUnavailable": fmt.Sprint(u.RollingUpdate.MaxUnavailable)}
			if u.Type != "RollingUpdate" || is[none] != "0" {
				return fmt.Errorf("update strategy %s with %s %s, want RollingUpdate with 0", u.Type, none, is[none])
			}
			if m := is[some]; m == "0" || m == "100%" || m == "<nil>" {
				return fmt.Errorf("%s is %s, want some nodes but not all", some, m)
			}
			if d.DaemonSet.Spec.MinReadySeconds < 1 {
				return fmt.Errorf("minReadySeconds is %d: a pod that is ready for a moment would do", d.DaemonSet.Spec.MinReadySeconds)
			}
			return nil
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.DaemonSet.Spec.UpdateStrategy.Type = "OnDelete" },
			func(d *deployment) { *limit(d, none) = 1 },
			func(d *deployment) { *limit(d, some) = "100%" },
			func(d *deployment) { *limit(d, some) = nil },
			func(d *deployment) { d.DaemonSet.Spec.MinReadySeconds = 0 },
		},
	}
}

// limit is one of the two limits of a rolling update.
func limit(d *deployment, name string) *any {
	u := &d.DaemonSet.Spec.UpdateStrategy.RollingUpdate
	if name == "maxSurge" {
		return &u.MaxSurge
	}
	return &u.MaxUnavailable
}
