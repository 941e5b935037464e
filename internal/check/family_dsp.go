package check

import (
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// The family DSP: the workloads that run device plugins.
func pluginChecks() []Check {
	agents := []Need{needAgents}
	return []Check{
		{finding.NoNodeWanted(), agents, noNodeWanted},
		{finding.TaintNotTolerated(), []Need{needAgents, needNodes}, taintNotTolerated},
		{finding.HostPathMissing(), agents, hostPathMissing},
		{finding.HostPathElsewhere(), agents, hostPathElsewhere},
		{finding.PluginNotReady(), agents, pluginNotReady},
		{finding.PrivilegeMissing(), agents, privilegeMissing},
		{finding.CDINotMounted(), agents, cdiNotMounted},
		{finding.ImageTooOld(), agents, imageTooOld},
		{finding.SurgeAllowed(), agents, surgeAllowed},
		{finding.FlagUnknown(), []Need{needOwnAgents}, flagUnknown},
	}
}

// daemons goes through the agents that are DaemonSets.
func (w *World) daemons(do func(*Agent)) {
	for _, a := range w.agents {
		if a.Object.Kind == "DaemonSet" {
			do(a)
		}
	}
}

func noNodeWanted(w *World) []Finding {
	var all []Finding
	w.daemons(func(a *Agent) {
		status := a.Object.Get("status", "desiredNumberScheduled")
		switch {
		case a.Object.FromCluster && status.Text() == "0":
			f := found(a.ref(), status, "%s is to run on no node: its selectors and tolerations fit none", a.ref())
			all = append(all, w.unlessGiven(f, a))
		case !status.Exists() && w.complete("Node") && len(w.nodes) > 0:
			for _, n := range w.nodes {
				if n.deselected(a.Spec) == "" { // a taint is DSP002
					return
				}
			}
			f := found(a.ref(), a.Object.Value, "%s fits no node of the input", a.ref())
			f = f.because("node %s: %s", w.nodes[0].Name, w.nodes[0].refusesDaemon(a.Spec))
			all = append(all, w.unlessGiven(f, a))
		}
	})
	return all
}

// unlessGiven makes a note of a plugin without a node where each node is the DRA driver's: that is the end
// of a migration.
func (w *World) unlessGiven(f Finding, a *Agent) Finding {
	if !w.allGiven() || a.plugin != kataPlugin && a.plugin != nicPlugin {
		return f
	}
	return f.as(finding.Note).because("each node has the label %s=dra, which keeps the plugin off it", modeLabel).
		advise("nothing, if all nodes are meant to be the DRA driver's")
}

// taintNotTolerated is about nodes that have devices of the plugin. That it keeps away from
// others, such as the control plane, is as it should be.
func taintNotTolerated(w *World) []Finding {
	var all []Finding
	w.daemons(func(a *Agent) {
		mine := map[string]bool{}
		for _, p := range w.names.all {
			mine[p.Name] = mine[p.Name] || p.agent == a
		}
		for _, n := range w.nodes {
			taint, tainted := n.daemonTaint(a.Spec)
			if !tainted || n.deselected(a.Spec) != "" {
				continue
			}
			for _, name := range n.names() {
				if mine[name] {
					f := found(a.ref(), a.Object.Value, "%s does not run on node %s, which has the key %q: %s", a.ref(), n.Name,
						name, notTolerated(taint, true)).about(name)
					all = append(all, f.with(n.Object.Get("spec", "taints").Place(), "the taint is here"))
					break
				}
			}
		}
	})
	return all
}

// hostPathMissing says nothing of a workload without any path of the host: that is a part of
// one, such as a patch.
func hostPathMissing(w *World) []Finding {
	var all []Finding
	w.daemons(func(a *Agent) {
		paths := hostPaths(a.Workload)
		if a.plugin == unknownPlugin || len(paths) == 0 {
			return
		}
		missing := func(what string, is func(string) bool) {
			for _, p := range paths {
				if is(path.Clean(p.Text())) {
					return
				}
			}
			all = append(all, found(a.ref(), a.Spec.Get("volumes"), "%s runs %s and does not mount %s", a.ref(), a.what, what))
		}
		missing("kubelet's directory device-plugins", func(p string) bool {
			return slices.Contains([]string{"device-plugins", "plugins_registry"}, path.Base(p)) ||
				slices.Contains([]string{"/var/lib/kubelet", "/var/lib", "/var", "/"}, p)
		})
		if a.plugin == rdmaPlugin {
			missing("/dev of the host", func(p string) bool { return p == "/dev" || p == "/" || p == "/dev/infiniband" })
		}
	})
	return all
}

// hostPathElsewhere: the directory of device plugins never moves, the others follow kubelet's
// root directory.
func hostPathElsewhere(w *World) []Finding {
	const fixed, usual = "/var/lib/kubelet/device-plugins", "/var/lib/kubelet"
	root, by := usual, ""
	for _, n := range w.nodes {
		if strings.Contains(n.Object.Get("status", "nodeInfo", "kubeletVersion").Text(), "+k0s") {
			root, by = "/var/lib/k0s/kubelet", n.Name
		}
	}
	var all []Finding
	w.daemons(func(a *Agent) {
		for _, at := range hostPaths(a.Workload) {
			p := path.Clean(at.Text())
			switch path.Base(p) {
			case "device-plugins":
				if p != fixed {
					all = append(all, found(a.ref(), at, "%s mounts %s, and kubelet's directory of device plugins is "+
						"%s, whatever its root directory is", a.ref(), p, fixed))
				}
			case "plugins_registry", "pod-resources":
				if by != "" && path.Dir(p) != root {
					f := found(a.ref(), at, "%s mounts %s, and kubelet's root directory is %s", a.ref(), p, root)
					all = append(all, f.because("node %s runs k0s", by))
				}
			}
		}
	})
	return all
}

func pluginNotReady(w *World) []Finding {
	const many = 3
	var all []Finding
	w.daemons(func(a *Agent) {
		pods := w.podsOf(a)
		if status := a.Object.Get("status"); len(pods) == 0 && noneReady(status) {
			desired := status.Get("desiredNumberScheduled")
			all = append(all, foundKey(a.ref(), desired, "none of the %s pods of %s is ready", desired.Text(), a.ref()))
		}
		for _, p := range pods {
			for c := range p.Object.Get("status", "containerStatuses").Each() {
				restarts, _ := parseQuantity(c.Get("restartCount").Text()).whole()
				switch {
				case c.Get("ready").Text() == "false":
					all = append(all, foundKey(p.ref(), c.Get("ready"), "%s runs a device plugin on node %s and is not ready",
						p.ref(), p.node()))
				case restarts >= many:
					all = append(all, foundKey(p.ref(), c.Get("restartCount"),
						"%s runs a device plugin on node %s and has been restarted %d times", p.ref(), p.node(), restarts))
				}
			}
		}
	})
	return all
}

// noneReady says of a DaemonSet's status that there are to be pods, and none is ready.
func noneReady(status manifest.Value) bool {
	desired, ready := status.Get("desiredNumberScheduled"), status.Get("numberReady")
	return desired.Exists() && desired.Text() != "0" && (ready.Text() == "0" || !ready.Exists())
}

func privilegeMissing(w *World) []Finding {
	var all []Finding
	w.daemons(func(a *Agent) {
		context := a.Container.Get("securityContext")
		if len(hostPaths(a.Workload)) == 0 {
			return
		}
		switch a.plugin {
		case sriovPlugin, rdmaPlugin:
			ofPod := a.Spec.Get("securityContext", "seLinuxOptions")
			if context.Get("privileged").Text() != "true" && !context.Get("seLinuxOptions").Exists() && !ofPod.Exists() {
				all = append(all, found(a.ref(), a.Container, "%s runs %s, which is made to be privileged, and is not", a.ref(),
					a.what))
			}
		case nvidiaPlugin:
			if !a.Spec.Get("runtimeClassName").Exists() {
				f := found(a.ref(), a.Container, "%s runs %s without a runtimeClassName: unless the node's default "+
					"runtime brings the driver's library, it finds no device", a.ref(), a.what)
				all = append(all, f)
			}
		}
	})
	return all
}

// cdiNotMounted is about the old NIC plugins, which write specs only when they are told to.
func cdiNotMounted(w *World) []Finding {
	var all []Finding
	w.daemons(func(a *Agent) {
		_, at := flag(a.Container, "use-cdi")
		if !switched(a.Container, "use-cdi") {
			return
		}
		mounts := a.mounts(func(v manifest.Value) bool {
			p := path.Clean(v.Get("hostPath", "path").Text())
			return p == "/var/run/cdi" || p == "/run/cdi" || p == "/etc/cdi" || p == "/var/run" || p == "/run"
		})
		if len(mounts) == 0 {
			all = append(all, found(a.ref(), at, "%s is to write CDI specs and does not mount the host's CDI directory",
				a.ref()))
		}
		for _, m := range mounts {
			if ro := m.Mount.Get("readOnly"); ro.Text() == "true" {
				all = append(all, foundKey(a.ref(), ro,
					"%s is to write CDI specs and mounts the host's CDI directory read-only", a.ref()))
			}
		}
	})
	return all
}

// surgeAllowed: two instances with one socket are in each other's way.
func surgeAllowed(w *World) []Finding {
	var all []Finding
	w.daemons(func(a *Agent) {
		surge := a.Object.Get("spec", "updateStrategy", "rollingUpdate", "maxSurge")
		if n := strings.TrimSuffix(surge.Text(), "%"); n != "" && n != "0" {
			all = append(all, foundKey(a.ref(), surge,
				"%s lets two instances of a device plugin run on one node while it is updated", a.ref()))
		}
	})
	return all
}
