package check

import (
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/manifest"
)

// Plugin says which program a workload runs.
type Plugin uint8

// The device plugins that are known by the names of their images.
const (
	unknownPlugin Plugin = iota
	sriovPlugin          // the SR-IOV network device plugin
	rdmaPlugin           // the RDMA shared device plugin
	nicPlugin            // nic-device-plugin
	kataPlugin           // kata-device-plugin
	nvidiaPlugin         // the GPU vendor's plugin for containers
)

// program is what is known of a plugin.
type program struct {
	image  string
	plugin Plugin
	what   string
	// config is the file that it reads unless it is told otherwise.
	config string
	// resources are names that are compiled in.
	resources []string
	// patterns are beginnings of names that its settings make.
	patterns []string
}

func programs() []program {
	return []program{
		{image: "sriov-network-device-plugin", plugin: sriovPlugin, what: "the SR-IOV network device plugin",
			config: "/etc/pcidp/config.json"},
		{image: "k8s-rdma-shared-dev-plugin", plugin: rdmaPlugin, what: "the RDMA shared device plugin",
			config: "/k8s-rdma-shared-dev-plugin/config.json"},
		{image: "nic-device-plugin", plugin: nicPlugin, what: "nic-device-plugin"},
		{image: "kata-device-plugin", plugin: kataPlugin, what: "kata-device-plugin", resources: []string{"nvidia.com/gpu",
			"nvidia.com/nvswitch"}},
		{image: "k8s-device-plugin", plugin: nvidiaPlugin, what: "the NVIDIA device plugin",
			resources: []string{"nvidia.com/gpu"}, patterns: []string{"nvidia.com/gpu.", "nvidia.com/mig-"}},
	}
}

// Agent is a workload that runs a device plugin.
type Agent struct {
	*Workload
	program
	Container manifest.Value
	// Prefix is what --resource-prefix says, and where; it is "" without one, and unknownPrefix where it
	// comes from what the container has in its environment and the input does not show.
	Prefix   string
	PrefixAt manifest.Value
}

// findAgents finds the workloads with a device plugin: by the image, or by the directory of
// kubelet that they can write to. Pods are not asked: the DaemonSet says the same once.
func (w *World) findAgents() []*Agent {
	var all []*Agent
	for _, p := range w.workloads {
		if !p.Template {
			continue
		}
		for _, c := range p.Containers {
			known, ok := programOf(c.Get("image").Text())
			a := &Agent{Workload: p, program: known, Container: c.Value}
			if !ok && !a.servesPlugins() {
				continue
			}
			a.Prefix, a.PrefixAt = flag(c.Value, "resource-prefix")
			a.Prefix = expanded(c.Value, a.Prefix, unknownPrefix)
			if ok || a.Prefix != "" || len(p.Containers) == 1 {
				all = append(all, a)
			}
		}
	}
	return all
}

func programOf(image string) (program, bool) {
	name, _, _ := strings.Cut(path.Base(image), "@")
	name, _, _ = strings.Cut(name, ":")
	for _, p := range programs() {
		if name == p.image || name == p.image+"-amd64" || name == p.image+"-arm64" {
			return p, true
		}
	}
	return program{}, false
}

// servesPlugins says whether a container can make a socket where kubelet looks for device plugins. Who
// only reads there, as an exporter does, is none. Drivers of DRA and CSI mount plugins_registry, too,
// and are no device plugins.
func (a *Agent) servesPlugins() bool {
	mounts := a.mounts(func(v manifest.Value) bool {
		return path.Base(path.Clean(v.Get("hostPath", "path").Text())) == "device-plugins"
	})
	return slices.ContainsFunc(mounts, func(m volume) bool { return m.Mount.Get("readOnly").Text() != "true" })
}

// ServesPlugins says whether a container of a workload can.
func (w *Workload) ServesPlugins() bool {
	return slices.ContainsFunc(w.Containers, func(c Container) bool {
		return (&Agent{Workload: w, Container: c.Value}).servesPlugins()
	})
}

// hostPaths are the paths of the host that a workload mounts.
func hostPaths(p *Workload) []manifest.Value {
	var all []manifest.Value
	for v := range p.Spec.Get("volumes").Each() {
		if at := v.Get("hostPath", "path"); at.Text() != "" {
			all = append(all, at)
		}
	}
	return all
}

// flag finds the value of a flag among a container's command and arguments: behind one or two
// hyphens, with = or as the next argument, also within a line for a shell.
func flag(container manifest.Value, name string) (string, manifest.Value) {
	var words []string
	var places []manifest.Value
	for _, list := range []string{"command", "args"} {
		for item := range container.Get(list).Each() {
			for word := range strings.FieldsSeq(item.Text()) {
				words, places = append(words, strings.Trim(word, `"'`)), append(places, item)
			}
		}
	}
	value, at := "", manifest.Value{}
	for i, word := range words {
		bare := strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-")
		if bare == word {
			continue
		}
		if set, ok := strings.CutPrefix(bare, name+"="); ok {
			value, at = set, places[i]
		} else if bare == name {
			value, at = "", places[i]
			if i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
				value = words[i+1]
			}
		}
	}
	return value, at
}

// expanded is an argument with what the container has in its environment, as kubelet puts it there, or
// what stands for it where that is not in the container's own text.
func expanded(container manifest.Value, text, instead string) string {
	const most = 8 // a variable may be made of others
	for range most {
		_, rest, ok := strings.Cut(text, "$(")
		name, _, closed := strings.Cut(rest, ")")
		if !ok || !closed {
			break
		}
		value, known := "", false
		for e := range container.Get("env").Each() {
			if e.Get("name").Text() == name && e.Get("value").Exists() {
				value, known = e.Get("value").Text(), true
			}
		}
		if !known {
			return instead
		}
		text = strings.Replace(text, "$("+name+")", value, 1)
	}
	if strings.Contains(text, "$") { // for a shell
		return instead
	}
	return text
}

// switched says whether a flag without a value, or with the value true, is given.
func switched(container manifest.Value, name string) bool {
	value, at := flag(container, name)
	return at.Exists() && value != "false"
}

// volume is where a workload mounts a volume that a condition holds for.
type volume struct {
	Volume, Mount manifest.Value
}

// mounts finds the volumes of a container, with how they are mounted.
func (a *Agent) mounts(is func(manifest.Value) bool) []volume {
	var all []volume
	for v := range a.Spec.Get("volumes").Each() {
		if !is(v) {
			continue
		}
		for m := range a.Container.Get("volumeMounts").Each() {
			if m.Get("name").Text() == v.Get("name").Text() {
				all = append(all, volume{v, m})
			}
		}
	}
	return all
}

// apart says whether two agents cannot be on one node: their selectors want different values
// of one label.
func (a *Agent) apart(b *Agent) bool {
	for want := range a.Spec.Get("nodeSelector").Entries() {
		if other := b.Spec.Get("nodeSelector", want.Key()); other.Exists() && other.Text() != want.Text() {
			return true
		}
	}
	return false
}
