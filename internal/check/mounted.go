package check

import (
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/manifest"
)

// NICConfigFiles are where nic-device-plugin looks for its configuration unless it is told where.
func NICConfigFiles() []string {
	return []string{"/etc/nic-device-plugin/config.json", "/etc/pcidp/config.json", "/k8s-rdma-shared-dev-plugin/config.json"}
}

// configFiles are those that an agent reads, of which it need not have each unless it is told of one.
// at is where that is said. There are none of a program that is not known.
func (a *Agent) configFiles() (files []string, at manifest.Value) {
	if file, at := flag(a.Container, "config-file"); file != "" {
		return []string{path.Clean(file)}, at
	}
	switch {
	case a.plugin == nicPlugin:
		files = NICConfigFiles()
	case a.config != "":
		files = []string{a.config}
	}
	return files, a.Container.Get("image")
}

// mounted is a ConfigMap that a container has as files: as a volume, or as a part of one.
type mounted struct {
	configMap    string
	mount, items manifest.Value
}

// configMaps are those that the agent has as files.
func (a *Agent) configMaps() []mounted {
	var all []mounted
	for _, v := range a.mounts(func(manifest.Value) bool { return true }) {
		add := func(of manifest.Value) {
			if name := of.Get("name").Text(); name != "" {
				all = append(all, mounted{name, v.Mount, of.Get("items")})
			}
		}
		add(v.Volume.Get("configMap"))
		for s := range v.Volume.Get("projected", "sources").Each() {
			add(s.Get("configMap"))
		}
	}
	return all
}

// file is what a key is called in the volume, "" where the volume leaves it out.
func (m mounted) file(key string) string {
	if m.items.Len() == 0 {
		return key
	}
	for item := range m.items.Each() {
		if item.Get("key").Text() == key {
			return path.Clean(item.Get("path").Text())
		}
	}
	return ""
}

// path is where the container has a key, "" where it does not.
func (m mounted) path(key string) string {
	at, sub, file := path.Clean(m.mount.Get("mountPath").Text()), m.mount.Get("subPath").Text(), m.file(key)
	switch rest, below := strings.CutPrefix(file, path.Clean(sub)+"/"); {
	case file == "" || m.mount.Get("subPathExpr").Exists():
		return ""
	case sub == "":
		return path.Join(at, file)
	case path.Clean(sub) == file:
		return at
	case below:
		return path.Join(at, rest)
	}
	return "" // the mount is another part of the volume
}

// reads says whether the agent has a ConfigMap as files.
func (a *Agent) reads(o *manifest.Object, namespace string) bool {
	return a.Namespace == namespace && slices.ContainsFunc(a.configMaps(), func(m mounted) bool { return m.configMap == o.Name })
}

// becomes says whether a ConfigMap of the input becomes one of some files of the agent.
func (w *World) becomes(a *Agent, files []string) bool {
	return slices.ContainsFunc(a.configMaps(), func(m mounted) bool {
		for _, o := range w.kinds["ConfigMap"] {
			if o.Name != m.configMap || w.namespace(o) != a.Namespace {
				continue
			}
			for data := range o.Get("data").Entries() {
				if slices.Contains(files, m.path(data.Key())) {
					return true
				}
			}
		}
		return false
	})
}
