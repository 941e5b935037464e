package check

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/finding"
)

// The family PLG: kubelet's directories of plugins, and its record, on captured nodes.
func socketChecks() []Check {
	return []Check{
		{finding.PluginDirWrong(), []Need{needPluginDir}, pluginDirWrong},
		{finding.KubeletDeaf(), []Need{needKubelet}, kubeletDeaf},
		{finding.NotRegistered(), []Need{needLocks, needRecord}, notRegistered},
		{finding.SocketDead(), []Need{needSockets}, socketDead},
		{finding.SocketUnknown(), []Need{needSockets, needRecord}, socketUnknown},
		{finding.SocketPathLong(), []Need{needSocketNames}, socketPathLong},
		{finding.Contested(), []Need{needLocks, needAllocatable}, contested},
		{finding.Zombie(), []Need{needSockets, needAllocatable}, zombie},
		{finding.LabelWrong(), []Need{needLabels}, labelWrong},
		{finding.TwoWays(), []Need{needSockets}, twoWays},
		{finding.ListLarge(), []Need{needDeviceLists}, listLarge},
		{finding.RecordUnreadable(), []Need{needRecordAsked}, recordUnreadable},
		{finding.RecordStale(), []Need{needRecord, needRealNames, needAllPods}, recordStale},
		{finding.HeldUnhealthy(), []Need{needAllocatable, needHolders}, heldUnhealthy},
	}
}

const kubeletSocket = "kubelet.sock"

// hasPluginDir says whether somebody looked for the directory of device plugins.
func (n *captured) hasPluginDir() bool {
	_, err := n.c.Files(pluginsDir)
	return !errors.Is(err, capture.ErrNotCaptured)
}

func (n *captured) hasRecord() bool      { return n.record != nil }
func (n *captured) hasRecordAsked() bool { return !errors.Is(n.recordErr, capture.ErrNotCaptured) }
func (n *captured) hasAllocatable() bool { return n.allocatable != nil }
func (n *captured) hasHolders() bool     { return n.pods != nil }

// hasNames says whether the objects of the set have the names that the capture has.
func (n *captured) hasNames() bool { return !n.c.Meta.Redacted }

func pluginDirWrong(w *World) []Finding {
	return w.onNodes((*captured).hasPluginDir, func(n *captured) []Finding {
		_, err := n.c.Files(pluginsDir)
		e, _ := n.c.Entry(pluginsDir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return []Finding{n.found("node %s has no %s: kubelet makes it when it starts", n.name, pluginsDir)}
		case err != nil:
			return []Finding{n.found("%s of node %s cannot be listed: %s", pluginsDir, n.name, cause(err)).as(finding.Warning)}
		case e != nil && looseMode(e.Perm) != "":
			return []Finding{n.found("%s of node %s: %s", pluginsDir, n.name, looseMode(e.Perm))}
		}
		return nil
	})
}

// hasKubelet says whether kubelet has run on the node: it makes the registry of plugins when it
// starts. That a node without kubelet, such as a simulated one, has no socket of it says nothing.
func (n *captured) hasKubelet() bool {
	entries, err := n.c.Files(pluginsDir)
	_, registry := n.c.Files(n.registryDir())
	return err == nil && (!errors.Is(registry, fs.ErrNotExist) ||
		slices.ContainsFunc(entries, func(e *capture.Entry) bool { return path.Base(e.Path) == kubeletSocket }))
}

func kubeletDeaf(w *World) []Finding {
	return w.onNodes((*captured).hasKubelet, func(n *captured) []Finding {
		at := path.Join(pluginsDir, kubeletSocket)
		entries, _ := n.dir(pluginsDir)
		i := slices.IndexFunc(entries, func(e *capture.Entry) bool { return e.Path == at })
		switch {
		case i < 0:
			return []Finding{n.found("node %s has no %s", n.name, at)}
		case entries[i].State == capture.Refused:
			return []Finding{n.found("%s of node %s refuses connections", at, n.name)}
		}
		return nil
	})
}

// sockets are those of plugins, but for the ones of kubelet and those that only DRA drivers and
// others have in the registry.
func (n *captured) sockets() []*capture.Entry {
	var all []*capture.Entry
	for _, dir := range []string{pluginsDir, n.registryDir()} {
		entries, _ := n.dir(dir)
		for _, e := range entries {
			if e.Kind == capture.Socket && path.Base(e.Path) != kubeletSocket {
				all = append(all, e)
			}
		}
	}
	return all
}

// serving are the sockets that accept connections. unsure says that of one it is not known.
func (n *captured) serving() (live []*capture.Entry, unsure bool) {
	for _, e := range n.sockets() {
		switch e.State {
		case capture.Accepted:
			live = append(live, e)
		case capture.Refused:
		default:
			unsure = true
		}
	}
	return live, unsure
}

func (n *captured) hasPluginSockets() bool { return n.lists(pluginsDir) }

func socketDead(w *World) []Finding {
	return w.onNodes((*captured).hasPluginSockets, func(n *captured) []Finding {
		var all []Finding
		for _, e := range n.sockets() {
			if e.State == capture.Refused {
				all = append(all, n.found("%s of node %s refuses connections: its program has ended", e.Path, n.name))
			}
		}
		return all
	})
}

// socketUnknown counts, since a socket does not say which resource it is for. Of the registry
// nothing is counted: most of what is there are drivers of CSI and DRA.
func socketUnknown(w *World) []Finding {
	has := func(n *captured) bool { return n.hasPluginSockets() && n.hasRecord() }
	return w.onNodes(has, func(n *captured) []Finding {
		live, _ := n.serving()
		live = slices.DeleteFunc(live, func(e *capture.Entry) bool { return path.Dir(e.Path) != pluginsDir })
		registered := len(n.record.Data.RegisteredDevices)
		if len(live) <= registered {
			return nil
		}
		f := n.found("on node %s there are %s in %s that serve, and kubelet has %s", n.name, counted(len(live),
			"socket"), pluginsDir,
			counted(registered, "resource"))
		for _, e := range live {
			f = f.because("%s accepts connections", e.Path)
		}
		return []Finding{f}
	})
}

// zombie counts as well: each resource has a server of its own.
func zombie(w *World) []Finding {
	has := func(n *captured) bool { return n.hasPluginSockets() && n.hasAllocatable() }
	return w.onNodes(has, func(n *captured) []Finding {
		live, unsure := n.serving()
		offered := n.offered()
		if unsure || len(live) >= len(offered) {
			return nil
		}
		names := few(slices.Sorted(maps.Keys(offered)))
		f := n.found("kubelet of node %s offers devices of %s, and %s", n.name, names, serve(len(live)))
		if len(live) > 0 {
			f = f.as(finding.Warning)
		}
		return []Finding{f}
	})
}

func serve(n int) string {
	switch n {
	case 0:
		return "no socket of a plugin accepts connections"
	case 1:
		return "only one socket of a plugin accepts connections"
	}
	return "only " + counted(n, "socket") + " of plugins accept connections"
}

// offered are the IDs of the devices that kubelet offers, by resource; none where it was not asked.
func (n *captured) offered() map[string][]string {
	all := map[string][]string{}
	if n.allocatable == nil {
		return all
	}
	for _, d := range n.allocatable.Devices {
		all[d.Resource] = append(all[d.Resource], d.ID)
	}
	return all
}

// maxSocketPath is the longest path that bind(2) takes, without the zero behind it.
const maxSocketPath = 107

// socketPathLong looks at what is there, and at what plugins will make: the names are theirs.
func socketPathLong(w *World) []Finding {
	all := w.onNodes((*captured).hasPluginSockets, func(n *captured) []Finding {
		var all []Finding
		for _, e := range n.sockets() {
			if len(e.Path) > maxSocketPath {
				all = append(all, n.found("%s of node %s has %d bytes", e.Path, n.name, len(e.Path)))
			}
		}
		return all
	})
	for _, c := range w.configs {
		for _, p := range c.Pools {
			if c.ours() || p.Name.Text() == "" {
				continue
			}
			for _, n := range p.names() {
				socket := path.Join("/var/lib/kubelet/plugins_registry", n.Prefix+"_"+n.Name+".sock")
				if p.Shared {
					socket = path.Join(pluginsDir, n.Name+".sock")
				}
				if len(socket) > maxSocketPath {
					all = append(all, found(c.Owner, p.Name, "%s will have the socket %s for %q, which has %d bytes",
						p.reader(), socket,
						n.String(), len(socket)).about(n.String()))
				}
			}
		}
	}
	return all
}
