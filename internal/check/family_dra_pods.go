package check

import (
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/manifest"
)

// driverUnregistered is about pods that the scheduler has put on a node and that do not start.
func driverUnregistered(w *World) []Finding {
	var all []Finding
	for _, p := range w.workloads {
		if !p.started() && p.node() != "" && !p.leaving() {
			here := w.unserved(p, "%s waits on node %s for the driver %s, which has published nothing there")
			if message := w.unprepared(p); len(here) == 0 && Unregistered(message.Text()) {
				f := found(p.ref(), message, "%s waits on node %s for a driver that kubelet there does not know: %s", p.ref(), p.node(),
					oneLine(message))
				here = append(here, f.advise("start the driver on the node: kubelet waits for its socket in plugins_registry"))
			}
			all = append(all, here...)
		}
	}
	return all
}

// started says whether a pod that holds its devices has begun to run, or is none that does.
func (w *Workload) started() bool { return !w.holds() || w.phase() != "Pending" }

func cannotEnd(w *World) []Finding {
	var all []Finding
	for _, p := range w.workloads {
		if p.Live && p.leaving() && p.node() != "" {
			all = append(all, w.unserved(p, "%s is to end on node %s, and the driver %s has published nothing there: "+
				"kubelet waits until it has taken the devices back")...)
		}
	}
	return all
}

// leaving says whether a pod is being deleted.
func (w *Workload) leaving() bool { return w.Meta.Get("deletionTimestamp").Exists() }

// unserved finds the drivers of a pod's claims that are not on its node. Half a minute after a
// driver has left, kubelet removes what it has published.
func (w *World) unserved(p *Workload, format string) []Finding {
	var all []Finding
	for _, claim := range w.claimsOf(p) {
		for _, driver := range driversOf(claim) {
			if w.tells(driver) && !w.publishes(driver, p.node()) {
				f := found(p.ref(), p.Meta.Get("name"), format, p.ref(), p.node(), driver)
				all = append(all, f.with(claim.Get("status", "allocation").Place(), "%s has a device of it", w.ref(claim)))
			}
		}
	}
	return all
}

// nothingPublished finds pods of drivers by the directory that a driver has below kubelet's
// plugins: its name is the driver's.
func nothingPublished(w *World) []Finding {
	var all []Finding
	for _, p := range w.workloads {
		if !p.holds() || p.phase() != "Running" || p.node() == "" {
			continue
		}
		for _, at := range hostPaths(p) {
			dir, driver := path.Split(path.Clean(at.Text()))
			if path.Base(dir) != "plugins" || !strings.Contains(driver, ".") || !w.publisher(p, driver) {
				continue
			}
			if w.tells(driver) && !w.publishes(driver, p.node()) {
				f := found(p.ref(), at, "%s runs the driver %s on node %s, and there is no ResourceSlice of it for the node",
					p.ref(), driver, p.node())
				all = append(all, w.unless(f, "ResourceSlice"))
			}
		}
	}
	return all
}

// publisher: drivers of CSI have directories there as well, and some pods only look into one. Who
// publishes registers, and of such a driver there are slices or classes.
func (w *World) publisher(p *Workload, driver string) bool {
	registers := slices.ContainsFunc(hostPaths(p), func(v manifest.Value) bool {
		return path.Base(path.Clean(v.Text())) == "plugins_registry"
	})
	known := slices.ContainsFunc(w.slices, func(s *slice) bool { return s.driver == driver }) ||
		slices.ContainsFunc(w.kinds["DeviceClass"], func(c *manifest.Object) bool {
			return slices.ContainsFunc(expressions(c.Get("spec", "selectors")), func(v manifest.Value) bool {
				return strings.Contains(v.Text(), `"`+driver+`"`)
			})
		})
	return registers && known
}

func reservedForNobody(w *World) []Finding {
	var all []Finding
	for _, claim := range w.kinds["ResourceClaim"] {
		for r := range claim.Get("status", "reservedFor").Each() {
			if r.Get("resource").Text() != "pods" {
				continue
			}
			if why := w.gone(Ref{"Pod", w.namespace(claim), r.Get("name").Text()}, r.Get("uid").Text()); why != "" {
				all = append(all, found(w.ref(claim), r, "%s is reserved for pod %s/%s, %s", w.ref(claim), w.namespace(claim),
					r.Get("name").Text(), why))
			}
		}
	}
	return all
}

// gone says why a pod has no use for a claim any more, "" when it has, or may have.
func (w *World) gone(ref Ref, uid string) string {
	p := w.podOf[ref]
	switch {
	case p == nil && w.complete("Pod"):
		return "which does not exist"
	case p == nil || !p.Live:
		return ""
	case uid != "" && p.Meta.Get("uid").Text() != "" && p.Meta.Get("uid").Text() != uid:
		return "which has gone: the pod of that name is another one"
	case !p.holds():
		return "which has ended"
	}
	return ""
}
