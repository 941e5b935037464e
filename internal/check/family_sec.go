package check

import (
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// The family SEC: who may change what nodes hand out, and what agents may do on a node.
func boundaryChecks() []Check {
	return []Check{
		{finding.MayWriteClasses(), []Need{needRoles}, mayWriteClasses},
		{finding.MayWriteSlices(), []Need{needRoles}, mayWriteSlices},
		{finding.MayConfigure(), []Need{needRoles, needConfigs}, mayConfigure},
		{finding.TooPrivileged(), []Need{needDeviceAgents}, tooPrivileged},
		{finding.WideHostPath(), []Need{needDeviceAgents}, wideHostPath},
		{finding.FloatingImage(), []Need{needDeviceAgents}, floatingImage},
		{finding.OpenSocket(), []Need{needSockets}, openSocket},
		{finding.MoreRights(), []Need{needOwnAgents, needRoles}, moreRights},
		{finding.TokenMounted(), []Need{needOwnAgents}, tokenMounted},
	}
}

// limits are what an agent is made to do with: what it has beyond that it does not need.
type limits struct {
	image string
	// flag makes of the program one with other needs.
	flag string
	// privileged and hostNetwork are what its own manifest has.
	privileged, hostNetwork bool
	// ours: it needs no more than the directories in writes and looksAt, and no capabilities.
	ours            bool
	writes, looksAt []string
}

// deviceLimits are those of the agents whose manifests are known. Of others nobody knows what
// they need.
func deviceLimits() []limits {
	const plugins, cdi, vfio, pods = pluginsDir, "/var/run/cdi", "/dev/vfio", "/var/lib/kubelet/pod-resources"
	const staticCDI = "/etc/cdi" // of people; only who judges all specs needs it
	const driver, devinfo = "/var/lib/kubelet/plugins/" + draname.Driver, "/var/run/k8s.cni.cncf.io/devinfo/dp"
	return []limits{
		{image: "kata-device-plugin", ours: true, writes: []string{plugins, cdi}, looksAt: []string{vfio}},
		{image: "nic-device-plugin", ours: true, hostNetwork: true, writes: []string{plugins, cdi, devinfo},
			looksAt: []string{pods, "/dev"}},
		{image: "kata-dra-driver", ours: true, writes: []string{"/var/lib/kubelet/plugins_registry", driver, cdi},
			looksAt: []string{pods, vfio}},
		{image: "device-exporter", flag: "nic-config-file", ours: true, hostNetwork: true,
			looksAt: []string{plugins, pods, driver, cdi, staticCDI, vfio, "/dev"}},
		{image: "device-exporter", ours: true, looksAt: []string{plugins, pods, driver, cdi, staticCDI, vfio}},
		{image: "sriov-network-device-plugin", privileged: true, hostNetwork: true},
		{image: "k8s-rdma-shared-dev-plugin", privileged: true, hostNetwork: true},
		{image: "k8s-device-plugin", privileged: true},
	}
}

// deviceAgent is a workload with an agent for devices, and what is known of the agent.
type deviceAgent struct {
	*Agent
	limits
	known bool
}

// deviceAgents finds them by their images, and by what they mount of kubelet.
func (w *World) deviceAgents() []deviceAgent {
	all := deviceLimits()
	var agents []deviceAgent
	for _, p := range w.workloads {
		if !p.Template {
			continue
		}
		registers := slices.ContainsFunc(hostPaths(p), registryPath)
		for _, c := range p.Containers {
			name := imageName(c.Get("image").Text())
			at := slices.IndexFunc(all, func(l limits) bool { return l.image == name && (l.flag == "" || hasFlag(c.Value, l.flag)) })
			if at < 0 && !registers {
				continue
			}
			one := deviceAgent{Agent: &Agent{Workload: p, Container: c.Value}, known: at >= 0}
			if one.known {
				one.limits = all[at]
			}
			agents = append(agents, one)
		}
	}
	return agents
}

// hasFlag says whether a container is started with a flag.
func hasFlag(container manifest.Value, name string) bool {
	_, at := flag(container, name)
	return at.Exists()
}

// imageName is an image's name without registry, tag, digest and architecture.
func imageName(image string) string {
	name, _, _ := strings.Cut(path.Base(image), "@")
	name, _, _ = strings.Cut(name, ":")
	return strings.TrimSuffix(strings.TrimSuffix(name, "-amd64"), "-arm64")
}

// tooPrivileged is about the agents whose needs are known.
func tooPrivileged(w *World) []Finding {
	var all []Finding
	seen := map[Ref]bool{}
	for _, a := range w.deviceAgents() {
		if !a.known {
			continue
		}
		context := a.Container.Get("securityContext")
		if v := context.Get("privileged"); v.Text() == "true" && !a.privileged {
			all = append(all, foundKey(a.ref(), v, "%s runs %s privileged, which it does not need", a.ref(), a.image))
		}
		for c := range context.Get("capabilities", "add").Each() {
			if a.ours {
				all = append(all, found(a.ref(), c, "%s gives %s the capability %s, which it does not need", a.ref(),
					a.image, c.Text()))
			}
		}
		for _, key := range []string{"hostNetwork", "hostPID", "hostIPC"} {
			v := a.Spec.Get(key)
			if v.Text() == "true" && !seen[a.ref()] && (key != "hostNetwork" || !a.hostNetwork) {
				all = append(all, foundKey(a.ref(), v, "%s runs %s with %s, which it does not need", a.ref(), a.image, key))
			}
		}
		seen[a.ref()] = true
	}
	return all
}

// floatingImage: a manifest without a tag gets one from whoever deploys it, and a tag may be moved.
// Both are said to who wants to know everything.
func floatingImage(w *World) []Finding {
	var all []Finding
	for _, a := range w.deviceAgents() {
		image := a.Container.Get("image")
		_, tag, tagged := strings.Cut(path.Base(image.Text()), ":")
		switch {
		case image.Text() == "" || strings.Contains(image.Text(), "@sha256:"):
		case tag == "latest" || !tagged && a.Object.FromCluster:
			all = append(all, found(a.ref(), image, "%s runs the image %s, which is another one tomorrow", a.ref(),
				image.Text()))
		case w.o.Verbose && !tagged:
			all = append(all, found(a.ref(), image, "%s has the image %s without a tag", a.ref(), image.Text()))
		case w.o.Verbose:
			all = append(all, found(a.ref(), image, "%s runs the image %s, whose tag may be moved", a.ref(), image.Text()))
		}
	}
	return all
}
