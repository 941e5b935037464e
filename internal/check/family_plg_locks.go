package check

import (
	"maps"
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/cdispec"
	"kata-device-plugin/internal/draname"
)

// lock is a resource that one of our own plugins offers: it has locked the resource's file.
type lock struct{ resource, holder string } // the resource with - for the slash

func (n *captured) locks() []lock {
	var all []lock
	entries, _ := n.dir(cdispec.RunDir)
	for _, e := range entries {
		name, ok := strings.CutPrefix(path.Base(e.Path), "kata.")
		holder := string(e.Text)
		family := strings.HasPrefix(name, draname.Driver+"-") // of hardware, whatever its resources are called
		if ok && !family && e.Kind == capture.Lock && e.State == capture.Held && strings.Contains(holder, "device-plugin") {
			all = append(all, lock{strings.TrimSuffix(name, ".lock"), holder})
		}
	}
	return all
}

func (n *captured) hasLocks() bool { return len(n.locks()) > 0 }

// is says whether the lock is that of a resource.
func (l lock) is(resource string) bool { return strings.ReplaceAll(resource, "/", "-") == l.resource }

func notRegistered(w *World) []Finding {
	has := func(n *captured) bool { return n.hasLocks() && n.hasRecord() }
	return w.onNodes(has, func(n *captured) []Finding {
		var all []Finding
		for _, l := range n.locks() {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(n.record.Data.RegisteredDevices)), l.is) {
				f := n.found("kubelet's record on node %s has no resource for the lock kata.%s.lock", n.name, l.resource)
				all = append(all, f.because("%s has the lock", l.holder))
			}
		}
		return all
	})
}

// contested: our plugins call a device by its PCI address. Another name is another plugin's.
func contested(w *World) []Finding {
	has := func(n *captured) bool { return n.hasLocks() && n.hasAllocatable() }
	return w.onNodes(has, func(n *captured) []Finding {
		var all []Finding
		for _, l := range n.locks() {
			for _, d := range n.allocatable.Devices {
				if l.holder != "" && strings.Contains(l.holder, "kata-device-plugin") && l.is(d.Resource) &&
					pciAddress(d.ID) == "" {
					f := n.found("kubelet of node %s offers the device %s of %s, which is none of kata-device-plugin", n.name,
						d.ID, d.Resource)
					all = append(all, f.about(d.Resource).because("%s has the lock of the resource", l.holder))
					break
				}
			}
		}
		return all
	})
}
