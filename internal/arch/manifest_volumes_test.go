package arch

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// volumeRules are about what the plugin sees of the host and of the cluster.
func volumeRules(p plugin) []manifestRule {
	return []manifestRule{hostPathRule(p), configRule(p), memoryRule("/run/" + p.name), volumeKindRule()}
}

// hostPathRule wants the directories of a plugin's row, as they are there.
func hostPathRule(p plugin) manifestRule {
	var want []string
	breaks := []func(*deployment){func(d *deployment) { addHostPath(d, "sys", "/sys") }}
	for _, h := range p.hostPaths {
		want = append(want, h.String())
		breaks = append(breaks,
			func(d *deployment) { m := mountAt(d, h.at); m.ReadOnly = !m.ReadOnly },
			func(d *deployment) { mountAt(d, h.at).RecursiveReadOnly = "Disabled" },
			func(d *deployment) { mountAt(d, h.at).MountPath = "/elsewhere" },
			func(d *deployment) { mountAt(d, h.at).SubPath = "x" },
			func(d *deployment) { mountAt(d, h.at).MountPropagation = "HostToContainer" },
			func(d *deployment) { v := volumeOf(d, h.path); v.HostPath.Path = path.Dir(v.HostPath.Path) },
			func(d *deployment) { volumeOf(d, h.path).HostPath.Path += "/devices" },
			func(d *deployment) { volumeOf(d, h.path).HostPath.Type = "" },
			func(d *deployment) { drop(d, h.at) },
		)
	}
	slices.Sort(want)
	return manifestRule{
		name:   "host paths",
		why:    "the directories of its row are all that it needs, and it writes to no other",
		check:  func(d *deployment) error { return same("host paths", mounts(d), want) },
		breaks: breaks,
	}
}

// configRule wants the ConfigMaps of a plugin's row, and none else.
func configRule(p plugin) manifestRule {
	var want []string
	breaks := []func(*deployment){func(d *deployment) {
		d.pod().Volumes = append(d.pod().Volumes, volume{Name: "more", ConfigMap: &configMap{Name: "more"}})
	}}
	yes, no := true, false
	for _, c := range p.configMaps {
		want = append(want, c.name+" (optional true) at "+c.at+" ro")
		breaks = append(breaks,
			func(d *deployment) { mountAt(d, c.at).ReadOnly = false },
			func(d *deployment) { mountAt(d, c.at).SubPath = "config.json" }, // it would never change
			func(d *deployment) { mountAt(d, c.at).MountPath = "/elsewhere" },
			func(d *deployment) { configMapOf(d, c.name).Name = "other" },
			func(d *deployment) { configMapOf(d, c.name).Optional = nil },
			func(d *deployment) { configMapOf(d, c.name).Optional = &no },
			func(d *deployment) { drop(d, c.at) },
		)
	}
	slices.Sort(want)
	return manifestRule{
		name: "configuration",
		why:  "a plugin must start without a configuration and follow each change of it: optional, and mounted as a directory",
		check: func(d *deployment) error {
			var got []string
			for _, v := range d.pod().Volumes {
				if v.ConfigMap != nil {
					got = append(got, fmt.Sprintf("%s (optional %t) %s", v.ConfigMap.Name, is(v.ConfigMap.Optional, yes), where(d, v.Name)))
				}
			}
			slices.Sort(got)
			return same("ConfigMaps", got, want)
		},
		breaks: breaks,
	}
}

func memoryRule(run string) manifestRule {
	memory := func(d *deployment) *volume {
		m := mountAt(d, run)
		for i, v := range d.pod().Volumes {
			if m != nil && v.Name == m.Name && v.EmptyDir != nil {
				return &d.pod().Volumes[i]
			}
		}
		return nil
	}
	return manifestRule{
		name: "in-memory volume",
		why:  "the health socket needs a place that can be written to, and no disk",
		check: func(d *deployment) error {
			if v := memory(d); v == nil || v.EmptyDir.Medium != "Memory" || v.EmptyDir.SizeLimit == "" || mountAt(d, run).ReadOnly {
				return fmt.Errorf("there is no emptyDir in memory with a size limit at %s", run)
			}
			return nil
		},
		breaks: []func(*deployment){
			func(d *deployment) { memory(d).EmptyDir.Medium = "" },
			func(d *deployment) { memory(d).EmptyDir.SizeLimit = "" },
			func(d *deployment) { mountAt(d, run).ReadOnly = true },
			func(d *deployment) { mountAt(d, run).MountPath = "/tmp" },
		},
	}
}

func volumeKindRule() manifestRule {
	return manifestRule{
		name: "volumes",
		why:  "what is neither a host path nor a ConfigMap nor the one in memory has no rule, and what is mounted nowhere is a mistake",
		check: func(d *deployment) error {
			memory := 0
			for _, v := range d.pod().Volumes {
				if v.EmptyDir != nil {
					memory++
				}
				if where(d, v.Name) == nowhere {
					return fmt.Errorf("the volume %s is mounted nowhere", v.Name)
				}
			}
			return same("volumes in memory", memory, 1)
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.pod().Volumes = append(d.pod().Volumes, volume{Name: "spare"}) },
			func(d *deployment) {
				more := d.pod().Volumes[len(d.pod().Volumes)-1]
				more.Name = "more"
				d.pod().Volumes = append(d.pod().Volumes, more)
				d.container().VolumeMounts = append(d.container().VolumeMounts, volumeMount{Name: "more", MountPath: "/more"})
			},
		},
	}
}

// mounts describes every host path with where and how it is mounted, in a fixed order.
func mounts(d *deployment) []string {
	var list []string
	for _, v := range d.pod().Volumes {
		if v.HostPath != nil {
			list = append(list, fmt.Sprintf("%s (%s) %s", v.HostPath.Path, v.HostPath.Type, where(d, v.Name)))
		}
	}
	slices.Sort(list)
	return list
}

const nowhere = "nowhere"

// where describes how a volume is mounted.
func where(d *deployment, name string) string {
	var all []string
	for _, m := range d.container().VolumeMounts {
		if m.Name == name {
			words := []string{"at", m.MountPath, mode(m.ReadOnly), m.RecursiveReadOnly, m.MountPropagation, m.SubPath}
			all = append(all, strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "))
		}
	}
	if len(all) == 0 {
		return nowhere
	}
	return strings.Join(all, ", ")
}

func mode(readOnly bool) string {
	if readOnly {
		return "ro"
	}
	return "rw"
}

func mountAt(d *deployment, path string) *volumeMount {
	for i, m := range d.container().VolumeMounts {
		if m.MountPath == path {
			return &d.container().VolumeMounts[i]
		}
	}
	return nil
}

// drop takes a mount away.
func drop(d *deployment, path string) {
	c := d.container()
	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m volumeMount) bool { return m.MountPath == path })
}

func volumeOf(d *deployment, hostPath string) *volume {
	for i, v := range d.pod().Volumes {
		if v.HostPath != nil && v.HostPath.Path == hostPath {
			return &d.pod().Volumes[i]
		}
	}
	return nil
}

func configMapOf(d *deployment, name string) *configMap {
	for _, v := range d.pod().Volumes {
		if v.ConfigMap != nil && v.ConfigMap.Name == name {
			return v.ConfigMap
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
