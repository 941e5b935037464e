package check

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/cdispec"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/nodeconfig"
)

// specStale compares the nodes and files of specs with those of the host, as far as the capture
// has looked at them.
func specStale(w *World) []Finding {
	return w.eachSpec(func(n *captured, s *spec) []Finding {
		if s.Err != nil {
			return nil
		}
		var all []Finding
		for _, e := range s.Edits() {
			for node := range e.Get("deviceNodes").Each() {
				if why := cdispec.Stale(node, n.c.Dev()); why != "" {
					all = append(all, n.found("the CDI spec %s of node %s, line %d: %s", s.entry.Path, n.name, node.Place().Line, why))
				}
			}
			for m := range e.Get("mounts").Each() {
				from := m.Get("hostPath").Text()
				if _, err := fs.Stat(n.c.FS(), strings.TrimPrefix(path.Clean(from), "/")); errors.Is(err, fs.ErrNotExist) {
					all = append(all, n.found("the CDI spec %s of node %s, line %d: the host has no %s", s.entry.Path, n.name,
						m.Place().Line, from))
				}
			}
		}
		return all
	})
}

// commonNodes are those that belong to no single device.
func commonNodes(p string) bool {
	return slices.Contains([]string{"/dev/vfio/vfio", "/dev/iommu", "/dev/nvidiactl", "/dev/nvidia-modeset",
		"/dev/nvidia-uvm",
		"/dev/nvidia-uvm-tools", "/dev/net/tun", "/dev/vhost-net", "/dev/kvm", "/dev/fuse", "/dev/infiniband/rdma_cm"}, p)
}

// nodeShared: devices of one kind may have a node in common, such as shares of one device.
func nodeShared(w *World) []Finding {
	return w.onNodes((*captured).hasSpecDirs, func(n *captured) []Finding {
		first := map[string]cdispec.Device{}
		var all []Finding
		said := map[string]bool{}
		specs, _ := n.specs()
		for _, s := range specs {
			for _, d := range s.Devices {
				for node := range d.Get("containerEdits", "deviceNodes").Each() {
					at := cdispec.OnHost(node)
					was, ok := first[at]
					if !ok {
						first[at] = d
						continue
					}
					other, _, _ := strings.Cut(was.Name, "=")
					if s.Err != nil || other == s.Class || commonNodes(at) || said[at] {
						continue
					}
					said[at] = true
					all = append(all, n.found("%s of node %s belongs to %s and to %s", at, n.name, was.Name, d.Name))
				}
			}
		}
		return all
	})
}

// runtime is what the container runtime of the node is told, nil where the capture does not have it, or
// where the runtime itself would not understand it.
func (n *captured) runtime() *nodeconfig.Runtime {
	if !n.settingsRead {
		n.settingsRead = true
		n.settings, _ = nodeconfig.ReadRuntime(n.c.FS(), nodeconfig.RuntimeName(n.runtimeVersion(), n.runtimeEndpoint()))
	}
	return n.settings
}

// runtimeVersion is what the Node of the capture says, "" where there is none.
func (n *captured) runtimeVersion() string {
	if n.stranger || len(n.like) != 1 {
		return ""
	}
	return n.like[0].Object.Get("status", "nodeInfo", "containerRuntimeVersion").Text()
}

// runtimeEndpoint is where kubelet looks for the runtime, "" where its configuration does not say it.
func (n *captured) runtimeEndpoint() string {
	if k, err := nodeconfig.ReadKubelet(n.c.FS(), n.kubeletDir()); err == nil {
		return k.Endpoint
	}
	return ""
}

// cdiOff says nothing of settings that do not mention CDI: what then holds depends on the version.
func cdiOff(w *World) []Finding {
	return w.eachSpec(func(n *captured, s *spec) []Finding {
		r := n.runtime()
		if r == nil {
			return nil
		}
		dir, files := path.Dir(s.entry.Path), strings.Join(r.Files, " and ")
		var f Finding
		switch {
		case r.CDI != nil && !*r.CDI && nodeconfig.CDIOf(n.runtimeVersion()) != nodeconfig.CDIAlways:
			f = n.found("%s of node %s: CDI is switched off, and there is the spec %s", files, n.name, s.entry.Path)
		case r.Dirs != nil && !slices.ContainsFunc(r.Dirs, func(d string) bool { return onceMounted(d) == onceMounted(dir) }):
			f = n.found("cdi_spec_dirs in %s of node %s does not have %s, where %s is", files, n.name, dir, s.entry.Path)
		default:
			return nil
		}
		if len(r.Elsewhere) > 0 {
			f = f.as(finding.Warning).because("%s is imported, and may say otherwise: it is not in the capture", few(r.Elsewhere))
		}
		if r.Beside != "" {
			f = f.as(finding.Warning).because("the node has settings of %s too, and nothing says which of the two kubelet uses: those of %s "+
				"were read", r.Beside, r.Name)
		}
		return []Finding{f}
	})
}

// onceMounted is a directory as it is called where /var/run is a link to /run.
func onceMounted(dir string) string {
	dir = path.Clean(dir)
	if rest, ok := strings.CutPrefix(dir, "/var/run/"); ok {
		return "/run/" + rest
	}
	return dir
}
