package check

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

func specConflict(w *World) []Finding {
	return w.onNodes((*captured).hasSpecDirs, func(n *captured) []Finding {
		var all []Finding
		byFiles := map[string][]string{}
		for name, both := range n.definitions() {
			for _, specs := range both {
				if len(specs) > 1 {
					byFiles[paths(specs)] = append(byFiles[paths(specs)], name)
				}
			}
		}
		for _, files := range slices.Sorted(maps.Keys(byFiles)) {
			names := byFiles[files]
			slices.Sort(names)
			all = append(all, n.found("%s of node %s both define %s, which resolves to nothing", files, n.name, few(names)))
		}
		return all
	})
}

func specShadowed(w *World) []Finding {
	return w.onNodes((*captured).hasSpecDirs, func(n *captured) []Finding {
		var all []Finding
		defined := n.definitions()
		for _, name := range slices.Sorted(maps.Keys(defined)) {
			if both := defined[name]; len(both[0]) > 0 && len(both[1]) > 0 {
				all = append(all, n.found("%s of node %s comes from %s, and no more from %s", name, n.name, paths(both[1]),
					paths(both[0])))
			}
		}
		return all
	})
}

// given is a CDI name that a container was given, with who.
type given struct{ name, by string }

// given lists the names that containers of the node have by kubelet's record and word.
func (w *World) given(n *captured) []given {
	var all []given
	pods := w.byUID(n)
	if n.record != nil {
		for _, g := range n.record.Data.PodDeviceEntries {
			by := "container " + g.ContainerName + " of " + cmp.Or(pods[g.PodUID], "the pod with UID "+g.PodUID)
			if g.Answer == nil {
				continue
			}
			for _, name := range g.Answer.CDI {
				all = append(all, given{name, by})
			}
			for _, names := range g.Answer.Annotations {
				for name := range strings.SplitSeq(names, ",") {
					all = append(all, given{name, by})
				}
			}
		}
	}
	if n.pods != nil {
		for _, p := range n.pods.Pods {
			for _, c := range p.Containers {
				for _, claim := range c.Claims {
					for _, d := range claim.Devices {
						for _, name := range d.CDI {
							all = append(all, given{name, "container " + c.Name + " of pod " + p.Namespace + "/" + p.Name})
						}
					}
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b given) int { return strings.Compare(a.name, b.name) })
	return all
}

// byUID are the names of the pods on a captured node, which kubelet's record does not have. What has other
// words for names may have others for UIDs.
func (w *World) byUID(n *captured) map[string]string {
	all := map[string]string{}
	for ref, p := range w.podOf {
		if uid := p.Meta.Get("uid").Text(); uid != "" && n.hasNames() && p.node() == n.name {
			all[uid] = ref.String()
		}
	}
	return all
}

// unresolvable: of a spec that nobody read it is not known which names it has.
func unresolvable(w *World) []Finding {
	has := func(n *captured) bool { return n.hasSpecTexts() && (n.hasRecord() || n.hasHolders()) }
	return w.onNodes(has, func(n *captured) []Finding {
		specs, _ := n.specs()
		defined := n.definitions()
		var all []Finding
		seen := map[string]bool{}
		for _, g := range w.given(n) {
			if seen[g.name] || g.name == "" || defined.resolves(g.name) {
				continue
			}
			seen[g.name] = true
			f := n.found("%s of node %s has the CDI device %s, which no spec of the node defines", g.by, n.name, g.name)
			kind, _, _ := strings.Cut(g.name, "=")
			for _, s := range specs {
				if s.Class == kind && s.Err == nil && len(s.Devices) > 0 {
					f = f.because("%s has %s", s.entry.Path, counted(len(s.Devices),
						"device")+" of that kind, the first is "+s.Devices[0].Name)
				}
			}
			all = append(all, f)
		}
		return all
	})
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
