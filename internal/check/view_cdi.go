package check

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/cdispec"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// Unresolved are the errors of the checks of a captured node about what a CDI name stands for there. Such
// a finding names a spec or a device node, where whoever asks has the name of a device.
func (v *View) Unresolved(node, name string) []Finding {
	var all []Finding
	for _, n := range v.captured {
		if n.name != node || !n.hasSpecDirs() {
			continue
		}
		for _, k := range []finding.Kind{finding.Unresolvable(), finding.SpecConflict(), finding.CDIOff(), finding.SpecStale()} {
			for _, f := range v.Findings(k.ID) {
				if f.Severity == finding.Error && f.Object == n.ref() && n.concerns(f, name) {
					all = append(all, f)
				}
			}
		}
	}
	return all
}

// concerns says whether a finding about the node's specs is about a CDI name.
func (n *captured) concerns(f Finding, name string) bool {
	if f.ID == finding.Unresolvable().ID {
		return slices.Contains(strings.FieldsFunc(f.Message, func(c rune) bool { return c == ' ' || c == ',' }), name)
	}
	both := n.definitions()[name]
	specs := both[1] // those of the directory that wins
	if len(specs) == 0 {
		specs = both[0]
	}
	return slices.ContainsFunc(specs, func(s *spec) bool {
		switch {
		case !strings.Contains(f.Message, s.entry.Path):
			return false
		case f.ID == finding.SpecConflict().ID:
			return len(specs) > 1
		case f.ID == finding.SpecStale().ID:
			return n.staleIn(f, s, name)
		}
		return true
	})
}

// staleIn says whether a finding about a spec is about the edits of one of its devices, or about those that
// all of them have.
func (n *captured) staleIn(f Finding, s *spec, name string) bool {
	edits := []manifest.Value{s.Get("containerEdits")}
	for _, d := range s.Devices {
		if d.Name == name {
			edits = append(edits, d.Get("containerEdits"))
		}
	}
	for _, e := range edits {
		for node := range e.Get("deviceNodes").Each() {
			if why := cdispec.Stale(node, n.c.Dev()); why != "" && strings.HasSuffix(f.Message, why) {
				return true
			}
		}
		for m := range e.Get("mounts").Each() {
			if strings.HasSuffix(f.Message, "the host has no "+m.Get("hostPath").Text()) {
				return true
			}
		}
	}
	return false
}
