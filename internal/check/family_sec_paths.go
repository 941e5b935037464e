package check

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// registryPath says whether a path is where agents register with kubelet.
func registryPath(v manifest.Value) bool {
	return slices.Contains([]string{"device-plugins", "plugins_registry"}, path.Base(path.Clean(v.Text())))
}

// secretPaths have what is not for agents to read: other pods' secrets, keys, everything.
func secretPaths() []string {
	return []string{"/", "/etc", "/etc/kubernetes", "/home", "/proc", "/root", "/run", "/var", "/var/lib",
		"/var/lib/kubelet",
		"/var/lib/kubelet/pods", "/var/run"}
}

// systemPaths let the node be changed when they are writable.
func systemPaths() []string {
	return []string{"/bin", "/boot", "/lib", "/lib/modules", "/opt", "/sbin", "/sys", "/usr", "/usr/bin", "/usr/local/bin"}
}

// wideHostPath looks at each mount of a path of the host.
func wideHostPath(w *World) []Finding {
	var all []Finding
	for _, a := range w.deviceAgents() {
		for _, m := range a.mounts(func(v manifest.Value) bool { return v.Get("hostPath", "path").Text() != "" }) {
			at := m.Volume.Get("hostPath", "path")
			p, readOnly := path.Clean(at.Text()), m.Mount.Get("readOnly").Text() == "true"
			if why := a.tooWide(p, readOnly); why != "" {
				f := found(a.ref(), at, "%s mounts %s of the host, %s", a.ref(), p, why)
				if readOnly {
					f = f.because("it is mounted read-only")
				}
				if readOnly && !slices.Contains(secretPaths(), p) {
					f = f.as(finding.Note)
				}
				all = append(all, f)
			}
		}
	}
	return all
}

// tooWide says what is wrong with a mount, "" for nothing.
func (a deviceAgent) tooWide(p string, readOnly bool) string {
	within := func(dirs []string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return sameRun(p) == sameRun(dir) })
	}
	switch {
	case slices.Contains(secretPaths(), p):
		return "in which there is more than devices"
	case path.Ext(p) == ".sock" && !strings.HasPrefix(p, "/var/lib/kubelet/"):
		return "which is the socket of another program"
	case slices.Contains(systemPaths(), p) && !readOnly:
		return "and may write to it"
	case !a.ours || within(a.writes):
		return ""
	case within(a.looksAt):
		if readOnly {
			return ""
		}
		return "and may write to it, which it does not need"
	}
	return "which it does not need"
}

// sameRun: /var/run is a link to /run.
func sameRun(p string) string {
	if rest, ok := strings.CutPrefix(p, "/var/run/"); ok {
		return "/run/" + rest
	}
	return p
}

// socketDirs are the directories with sockets of kubelet and of plugins.
func (n *captured) socketDirs() []string {
	return []string{pluginsDir, n.registryDir(), path.Join(n.kubeletDir(), "pod-resources")}
}

func (n *captured) hasSockets() bool { return slices.ContainsFunc(n.socketDirs(), n.lists) }

// openSocket: who connects needs to write to the socket, and to pass its directory.
func openSocket(w *World) []Finding {
	return w.onNodes((*captured).hasSockets, func(n *captured) []Finding {
		var all []Finding
		for _, dir := range n.socketDirs() {
			entries, _ := n.dir(dir)
			in, known := n.c.Entry(dir)
			for _, e := range entries {
				if e.Kind != capture.Socket || !known || in.Perm == nil {
					continue
				}
				if why := open(e.Perm, in.Perm); why != "" {
					all = append(all, n.found("%s of node %s: %s", e.Path, n.name, why))
				}
			}
		}
		return all
	})
}

// open says who but root reaches a socket, "" for nobody.
func open(socket, dir *capture.Perm) string {
	const others, group = 0o002, 0o020
	switch {
	case socket == nil:
		return ""
	case socket.Mode&others != 0 && dir.Mode&0o001 != 0:
		return fmt.Sprintf("everybody may connect, its mode is %04o and that of its directory %04o", socket.Mode, dir.Mode)
	case socket.UID != 0 && dir.Mode&0o001 != 0:
		return fmt.Sprintf("user %d may connect, to whom it belongs", socket.UID)
	case socket.GID != 0 && socket.Mode&group != 0 && dir.Mode&0o001 != 0:
		return fmt.Sprintf("group %d may connect, its mode is %04o", socket.GID, socket.Mode)
	}
	return ""
}
