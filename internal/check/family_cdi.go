package check

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/cdispec"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/nodeconfig"
)

// The family CDI: the directories with specs of captured nodes.
func specChecks() []Check {
	dirs, specs := []Need{needSpecDirs}, []Need{needSpecTexts}
	return []Check{
		{finding.SpecsUnlisted(), []Need{needSpecsAsked}, specsUnlisted},
		{finding.SpecsLoose(), dirs, specsLoose},
		{finding.SpecPassedOver(), dirs, specPassedOver},
		{finding.SpecRejected(), specs, specRejected},
		{finding.SpecTooNew(), specs, specTooNew},
		{finding.SpecConflict(), specs, specConflict},
		{finding.SpecShadowed(), specs, specShadowed},
		{finding.Unresolvable(), []Need{needSpecTexts, needNames}, unresolvable},
		{finding.SpecStale(), specs, specStale},
		{finding.NodeShared(), specs, nodeShared},
		{finding.CDIOff(), []Need{needSpecDirs, needRuntime}, cdiOff},
		{finding.SpecContested(), []Need{needSpecWriters}, specContested},
		{finding.SpecOld(), []Need{needSpecTimes}, specOld},
		{finding.SpecPrivate(), []Need{needSpecDirs}, specPrivate},
	}
}

// asked says whether the capture knows anything of a CDI directory.
func (n *captured) asked() bool {
	return slices.ContainsFunc(cdispec.Dirs(), func(dir string) bool {
		_, err := n.c.Files(dir)
		return !errors.Is(err, capture.ErrNotCaptured)
	})
}

// hasSpecDirs says whether it is known which specs there are.
func (n *captured) hasSpecDirs() bool {
	_, known := n.specs()
	return known
}

// hasSpecTexts says whether it is known what all specs say, or why nobody can read them.
func (n *captured) hasSpecTexts() bool {
	specs, known := n.specs()
	return known && !slices.ContainsFunc(specs, func(s *spec) bool { return s.unread })
}

func specsUnlisted(w *World) []Finding {
	return w.onNodes((*captured).asked, func(n *captured) []Finding {
		var all []Finding
		missing := 0
		for _, dir := range cdispec.Dirs() {
			_, err := n.c.Files(dir)
			switch {
			case err == nil || errors.Is(err, capture.ErrNotCaptured):
			case errors.Is(err, fs.ErrNotExist):
				missing++
			default:
				all = append(all, n.found("%s of node %s cannot be listed: %s", dir, n.name, cause(err)))
			}
		}
		if missing == len(cdispec.Dirs()) {
			all = append(all, n.found("node %s has no CDI directory", n.name).as(finding.Note).advise(
				"nothing, if nothing on the node hands out CDI devices"))
		}
		return all
	})
}

// cause is what the operating system said.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// specsLoose: who may write to a directory may replace what is in it.
func specsLoose(w *World) []Finding {
	return w.onNodes((*captured).hasSpecDirs, func(n *captured) []Finding {
		var all []Finding
		for _, dir := range cdispec.Dirs() {
			if e, ok := n.c.Entry(dir); ok && looseMode(e.Perm) != "" {
				all = append(all, n.found("the CDI directory %s of node %s: %s", dir, n.name, looseMode(e.Perm)))
			}
			entries, _ := n.dir(dir)
			for _, e := range entries {
				if cdispec.Named(e.Path) && e.Kind == capture.File && looseMode(e.Perm) != "" {
					all = append(all, n.found("the CDI spec %s of node %s: %s", e.Path, n.name, looseMode(e.Perm)))
				}
			}
		}
		return all
	})
}

// specPassedOver: locks of our own programs are no specs, and nobody takes them for one.
func specPassedOver(w *World) []Finding {
	return w.onNodes((*captured).hasSpecDirs, func(n *captured) []Finding {
		var all []Finding
		for _, dir := range cdispec.Dirs() {
			entries, _ := n.dir(dir)
			for _, e := range entries {
				name := path.Base(e.Path)
				switch {
				case e.Kind == capture.Dir:
					all = append(all, n.found("%s of node %s is a directory: specs in it are not read", e.Path, n.name))
				case cdispec.Named(name) || e.Kind == capture.Lock || strings.HasPrefix(name, "kata.") && path.Ext(name) == ".lock":
				default:
					all = append(all, n.found("%s of node %s is not read: its name ends neither in .json nor in .yaml", e.Path,
						n.name))
				}
			}
		}
		return all
	})
}

// specPrivate says nothing of files whose mode nobody asked for.
func specPrivate(w *World) []Finding {
	return w.eachSpec(func(n *captured, s *spec) []Finding {
		if s.mode == nil || !cdispec.Private(fs.FileMode(s.mode.Mode)) {
			return nil
		}
		return []Finding{n.found("not everybody may read the CDI spec %s of node %s: its mode is %04o, and it belongs to user %d",
			s.entry.Path, n.name, s.mode.Mode, s.mode.UID)}
	})
}

func specRejected(w *World) []Finding {
	return w.eachSpec(func(n *captured, s *spec) []Finding {
		if s.Err == nil {
			return nil
		}
		return []Finding{n.found("the CDI spec %s of node %s is refused: %s", s.entry.Path, n.name, s.Err)}
	})
}

// eachSpec goes through the specs of all nodes.
func (w *World) eachSpec(do func(*captured, *spec) []Finding) []Finding {
	return w.onNodes((*captured).hasSpecDirs, func(n *captured) []Finding {
		var all []Finding
		specs, _ := n.specs()
		for _, s := range specs {
			all = append(all, do(n, s)...)
		}
		return all
	})
}

// specTooNew is about nodes with Kata, which its settings show: other runtimes read newer versions.
func specTooNew(w *World) []Finding {
	const newest = "0.6.0"
	return w.eachSpec(func(n *captured, s *spec) []Finding {
		if s.Err != nil || s.unread || s.Version() <= slices.Index(cdispec.Versions(), newest) ||
			!slices.ContainsFunc(nodeconfig.KataDirs(), n.lists) {
			return nil
		}
		f := n.found("the CDI spec %s of node %s declares version %s, and the Go shim of Kata reads no later one than %s",
			s.entry.Path, n.name, s.Get("cdiVersion").Text(), newest)
		return []Finding{f.because("the node has the settings of Kata")}
	})
}

// definitions are the specs that define a device, by qualified name, in each directory.
type definitions map[string][2][]*spec

func (n *captured) definitions() definitions {
	all := definitions{}
	specs, _ := n.specs()
	for _, s := range specs {
		if s.Err != nil {
			continue
		}
		for _, d := range s.Devices {
			at := 0
			if s.last {
				at = 1
			}
			both := all[d.Name]
			both[at] = append(both[at], s)
			all[d.Name] = both
		}
	}
	return all
}

// resolves says whether a name stands for a device: one of the last directory that has it. Two
// there cancel each other.
func (d definitions) resolves(name string) bool {
	both := d[name]
	if len(both[1]) > 0 {
		return len(both[1]) == 1
	}
	return len(both[0]) == 1
}

func paths(specs []*spec) string {
	var all []string
	for _, s := range specs {
		all = append(all, s.entry.Path)
	}
	return strings.Join(all, " and ")
}
