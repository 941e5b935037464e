package check

import (
	"path"
	"strings"
	"time"

	"kata-device-plugin/internal/manifest"
)

// sweep is what a plugin with CDI removes from the directories of specs, when it starts and when it
// ends: every file whose name begins so, whoever wrote it.
type sweep struct {
	plugin    Plugin
	beginning string
	// kind is that of its own specs, "" where each resource has one of its own.
	kind string
}

func sweeps() []sweep {
	return []sweep{
		{sriovPlugin, "sriov-dp-", ""},
		{rdmaPlugin, "nvidia.com", "nvidia.com/net-rdma"},
	}
}

// specContested is about plugins that may be on one node, and about what they have left on one.
func specContested(w *World) []Finding {
	var all []Finding
	w.sweepers(func(a, b *Agent, s sweep) {
		f := found(b.ref(), b.useCDI(), "%s and %s both write CDI specs, and each removes those of the other: all that begin with %s",
			a.ref(), b.ref(), s.beginning)
		all = append(all, f.with(a.useCDI().Place(), "%s does so, too", a.ref()))
	})
	return append(all, w.onNodes((*captured).hasSpecTexts, func(n *captured) []Finding { return n.swept() })...)
}

func (a *Agent) useCDI() manifest.Value {
	_, at := flag(a.Container, "use-cdi")
	return at
}

// sweepers goes through the pairs of plugins of one sort with CDI that may meet.
func (w *World) sweepers(do func(a, b *Agent, s sweep)) {
	for _, s := range sweeps() {
		for i, a := range w.agents {
			for _, b := range w.agents[i+1:] {
				if a.plugin == s.plugin && b.plugin == s.plugin && a.ref() != b.ref() && !a.apart(b) &&
					switched(a.Container, "use-cdi") && switched(b.Container, "use-cdi") {
					do(a, b, s)
				}
			}
		}
	}
}

// swept are the specs of others that a plugin removes which has a spec of its own there.
func (n *captured) swept() []Finding {
	var all []Finding
	specs, _ := n.specs()
	for _, s := range sweeps() {
		var own string
		for _, has := range specs {
			if s.kind != "" && has.Err == nil && has.Class == s.kind {
				own = has.entry.Path
			}
		}
		for _, has := range specs {
			if own != "" && has.Class != s.kind && strings.HasPrefix(path.Base(has.entry.Path), s.beginning) {
				f := n.found("%s of node %s is removed when the plugin of %s starts or ends: it removes all that begin with %s",
					has.entry.Path, n.name, own, s.beginning)
				all = append(all, f.because("%s has devices of the kind %s", own, s.kind))
			}
		}
	}
	return all
}

// hasSpecTimes says whether it is known since when the node runs, and of when its specs are.
func (n *captured) hasSpecTimes() bool {
	if !n.hasSpecDirs() || n.c.Meta.Started.IsZero() {
		return false
	}
	for _, s := range n.specFiles() {
		if s.entry.Modified.IsZero() {
			return false
		}
	}
	return true
}

func (n *captured) specFiles() []*spec {
	specs, _ := n.specs()
	return specs
}

// specOld is about numbers of device nodes: those that the kernel hands out as drivers come are
// others after a start. A spec without such numbers is as good as it was.
func specOld(w *World) []Finding {
	return w.onNodes((*captured).hasSpecTimes, func(n *captured) []Finding {
		var all []Finding
		for _, s := range n.specFiles() {
			written, begun := s.entry.Modified, n.c.Meta.Started
			if s.Err != nil || s.last || !written.Before(begun) || !s.hasNodes() {
				continue
			}
			f := n.found("the CDI spec %s of node %s is older than the node's last start, and names device nodes", s.entry.Path, n.name)
			all = append(all, f.because("it was written at %s", moment(written)).because("the kernel was started at %s", moment(begun)))
		}
		return all
	})
}

// moment is a time as people write it.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (s *spec) hasNodes() bool {
	for _, e := range s.Edits() {
		if e.Get("deviceNodes").Len() > 0 {
			return true
		}
	}
	return false
}
