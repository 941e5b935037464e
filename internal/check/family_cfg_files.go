package check

import (
	"path"
	"slices"
	"strings"
	"time"

	"kata-device-plugin/internal/manifest"
)

// configElsewhere: the plugin opens a file that the ConfigMap does not become. Where another ConfigMap
// of the input becomes it, the plugin reads that one.
func configElsewhere(w *World) []Finding {
	var all []Finding
	for _, c := range w.configs {
		for _, a := range c.Agents {
			files, at := a.configFiles()
			if len(files) == 0 || strings.Contains(files[0], "$") || w.becomes(a, files) { // $: a key for each node
				continue
			}
			for _, m := range a.configMaps() {
				if what := m.missed(c.At.Key(), files); m.configMap == c.Object.Name && what != "" {
					f := found(a.ref(), at, "%s reads %s, %s", a.ref(), strings.Join(files, " or "), what)
					all = append(all, f.with(m.mount.Place(), "%s is mounted here", c.Owner).with(c.At.KeyPlace(),
						"the configuration is here"))
				}
			}
		}
	}
	return all
}

// missed says why none of some files is what a mounted ConfigMap makes of a key, "" where the mount is
// another part of the volume.
func (m mounted) missed(key string, files []string) string {
	at := m.path(key)
	beside := slices.ContainsFunc(files, func(file string) bool { return path.Dir(file) == path.Dir(at) })
	switch {
	case m.file(key) == "":
		return "and the volume leaves out the key " + key
	case at == "":
		return ""
	case m.file(key) != key:
		return "and the configuration is at " + at
	case beside && m.mount.Get("subPath").Text() == "":
		return "and the key of the configuration is " + key
	}
	return "and the configuration is mounted at " + path.Clean(m.mount.Get("mountPath").Text())
}

// configNewer: the two old plugins read their file once.
func configNewer(w *World) []Finding {
	var all []Finding
	for _, c := range w.configs {
		changed := modified(c.Object)
		if changed.IsZero() || c.ours() {
			continue
		}
		for _, a := range c.Agents {
			for _, p := range w.podsOf(a) {
				started, err := time.Parse(time.RFC3339, p.Object.Get("status", "startTime").Text())
				if err != nil || !started.Before(changed) {
					continue
				}
				f := foundKey(c.Owner, c.At, "%s was changed at %s, after %s had started: the plugin reads its "+
					"configuration once",
					c.Owner, changed.Format(time.RFC3339), p.ref())
				all = append(all, f.with(p.Object.Get("status", "startTime").Place(), "started here").advise("restart %s",
					a.ref()))
				break
			}
		}
	}
	return all
}

// modified is when an object was last changed, as far as the API server kept it.
func modified(o *manifest.Object) time.Time {
	var last time.Time
	for m := range o.Get("metadata", "managedFields").Each() {
		if t, err := time.Parse(time.RFC3339, m.Get("time").Text()); err == nil && t.After(last) {
			last = t
		}
	}
	return last
}

// podsOf are the live pods of an agent's DaemonSet.
func (w *World) podsOf(a *Agent) []*Workload { return w.owned[a.ref()] }
