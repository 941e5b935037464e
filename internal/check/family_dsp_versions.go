package check

import (
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/nodeconfig"
)

// feature is what a plugin can do since some version, as far as is known: that is the first release after the change
// was merged, and nobody has run the images before it.
type feature struct {
	plugin Plugin
	since  nodeconfig.Release
	// flag is given, or a selector is there that the plugin passes over before.
	flag, selector string
}

// features are those that are known.
func features() []feature {
	return []feature{
		{plugin: sriovPlugin, since: nodeconfig.Release{Major: 3, Minor: 6}, flag: "use-cdi"},
		{plugin: sriovPlugin, since: nodeconfig.Release{Major: 3, Minor: 6}, selector: "acpiIndexes"},
	}
}

// imageTooOld is about images whose tag is a version.
func imageTooOld(w *World) []Finding {
	var all []Finding
	for _, a := range w.agents {
		image := a.Container.Get("image")
		have, known := versionOf(image.Text())
		for _, f := range features() {
			if !known || f.plugin != a.plugin || have.Compare(f.since) >= 0 {
				continue
			}
			for _, at := range w.usesOf(a, f) {
				one := found(a.ref(), image, "%s runs version %d.%d of %s, and uses %s, which that version is not known to have", a.ref(), have.Major,
					have.Minor, a.what, f.name())
				all = append(all, one.with(at.Place(), "it is used here").
					because("it was merged before %d.%d, which by its date is the first with it", f.since.Major, f.since.Minor))
			}
		}
	}
	return all
}

func (f feature) name() string {
	if f.flag != "" {
		return "--" + f.flag
	}
	return "the selector " + f.selector
}

// usesOf are the places at which an agent, or the configuration that it reads, uses a feature.
func (w *World) usesOf(a *Agent, f feature) []manifest.Value {
	if f.flag != "" {
		if _, at := flag(a.Container, f.flag); switched(a.Container, f.flag) {
			return []manifest.Value{at}
		}
		return nil
	}
	var all []manifest.Value
	for _, c := range w.configs {
		if !slices.Contains(c.Agents, a) {
			continue
		}
		for _, p := range c.Pools {
			for _, s := range p.selectors() {
				if at := s.GetFold(f.selector); at.Len() > 0 {
					all = append(all, at)
				}
			}
		}
	}
	return all
}

// versionOf is the version in the tag of an image, and false where the tag is none.
func versionOf(image string) (nodeconfig.Release, bool) {
	name, _, _ := strings.Cut(path.Base(image), "@")
	_, tag, _ := strings.Cut(name, ":")
	return nodeconfig.ParseRelease(tag)
}
