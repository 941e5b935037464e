package preflight

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/nodeconfig"
)

// runtimeCDI joins what nodes say of their runtime with what captures have of its settings.
func runtimeCDI(s *survey, _ Way, v *verdict) {
	all := s.hosts()
	if len(all) == 0 {
		v.open("nodes with status")
	}
	for _, h := range all {
		h.cdi(v)
	}
}

// cdi judges one node. What the version has on may be switched off in containerd's settings, until 2.4; CRI-O
// has no such setting.
func (h machine) cdi(v *verdict) {
	version := h.runtimeVersion()
	state, said := nodeconfig.CDIOf(version), h.settings()
	whether := map[nodeconfig.CDI]string{
		nodeconfig.CDIUnlessOff: "on unless enable_cdi is false", nodeconfig.CDIWhenAsked: "off unless enable_cdi is set"}[state]
	switch {
	case state == nodeconfig.CDIAlways:
		v.yes(fmt.Sprintf("node %s has %s, which has CDI on", h.name, version))
	case said != nil && said.CDI != nil && !*said.CDI && len(said.Elsewhere) == 0:
		v.no(h.switched(state, "%s of node %s switches CDI off", strings.Join(said.Files, ", "), h.name))
	case version == "":
		v.open(fmt.Sprintf("the object of node %s: its status has the version of the container runtime", h.name))
	case state == nodeconfig.CDIUnknown:
		v.open(fmt.Sprintf("what %s of node %s does with CDI: this command knows containerd and CRI-O", version, h.name))
	case state == nodeconfig.CDINever:
		f := h.found(finding.RuntimeWithoutCDI(), "containerRuntimeVersion", "node %s has %s, which has no CDI", h.name, version)
		f.Help = "update the runtime: containerd has CDI since 1.7, and CRI-O since 1.27"
		v.no(f)
	case said == nil && h.captured != nil:
		h.captured.unread(v, runtimeSettings, h.captured.runtimeErr)
	case said == nil:
		v.open(fmt.Sprintf("%s, with the settings of containerd: %s has CDI %s", captureOf(h.name), version, whether))
	case len(said.Elsewhere) > 0:
		v.open(h.captured.imports())
	case said.CDI != nil:
		v.yes(fmt.Sprintf("node %s has %s, and enable_cdi is set", h.name, version))
	case state == nodeconfig.CDIUnlessOff:
		v.yes(fmt.Sprintf("node %s has %s, which has CDI on, and nothing switches it off in %s", h.name, version,
			strings.Join(said.Files, ", ")))
	default:
		v.no(h.switched(state, "node %s has %s, which has CDI off unless enable_cdi is set, and %s does not set it", h.name, version,
			strings.Join(said.Files, ", ")))
	}
}

// switched is about settings, which are in the capture.
func (h machine) switched(by nodeconfig.CDI, format string, args ...any) check.Finding {
	f, files := h.captured.found(finding.RuntimeWithoutCDI(), format, args...), strings.Join(h.captured.runtime.Files, " or ")
	f.Help = fmt.Sprintf("set enable_cdi to true in %s, and restart containerd", files)
	if by == nodeconfig.CDIUnlessOff {
		f.Help = fmt.Sprintf("take enable_cdi out of %s, or set it to true there, and restart containerd", files)
	}
	return f
}

// imports are the files of the runtime's settings that nobody captured.
func (n *captured) imports() string {
	return fmt.Sprintf("%s of node %s, which %s imports", check.Few(n.runtime.Elsewhere), n.name, n.runtime.Files[0])
}

// runtimeSettings is what the input is asked for.
const runtimeSettings = "the settings of the container runtime"

// isRunDir: agents write to /var/run/cdi, which is /run/cdi as well.
func isRunDir(dir string) bool { return path.Clean(strings.TrimPrefix(dir, "/var")) == "/run/cdi" }

func runtimeDirs(s *survey, _ Way, v *verdict) {
	s.eachCapture(v, runtimeSettings, func(n *captured) {
		switch r := n.runtime; {
		case r == nil:
			n.unread(v, runtimeSettings, n.runtimeErr)
		case len(r.Elsewhere) > 0:
			v.open(n.imports())
		case r.Dirs == nil:
			v.yes(fmt.Sprintf("%s of node %s says nothing of them, and the default has /var/run/cdi", r.Files[0], n.name))
		case !slices.ContainsFunc(r.Dirs, isRunDir):
			v.no(n.found(finding.SpecsElsewhere(), "%s of node %s names %s, and agents write to /var/run/cdi",
				r.Files[0], n.name, strings.Join(r.Dirs, ", ")))
		default:
			v.yes(fmt.Sprintf("%s of node %s names %s", r.Files[0], n.name, strings.Join(r.Dirs, ", ")))
		}
	})
}
