package check

import (
	"maps"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// The family POD: what pods ask for, and what became of it.
func podChecks() []Check {
	some, nodes := []Need{needWorkloads}, []Need{needWorkloads, needNodes}
	live := []Need{needPods}
	return []Check{
		{finding.LimitMissing(), some, limitMissing},
		{finding.NotWhole(), some, notWhole},
		{finding.InitOnly(), some, initOnly},
		{finding.InjectedElsewhere(), []Need{needAttached, needNetworks}, injectedElsewhere},
		{finding.SchedulerBypassed(), nodes, schedulerBypassed},
		{finding.PrivilegedAnyway(), some, privilegedAnyway},
		{finding.Rejected(), live, rejected},
		{finding.UnhealthyInPod(), live, unhealthyInPod},
		{finding.WaitsForScheduler(), live, waitsForScheduler},
		{finding.NodesExcluded(), nodes, nodesExcluded},
		{finding.AllInUse(), []Need{needPods, needNodes}, allInUse},
		{finding.MoreThanANode(), nodes, moreThanANode},
		{finding.SeveralShares(), some, severalShares},
		{finding.QuantityZero(), some, quantityZero},
		{finding.WithoutCDI(), live, withoutCDI},
		{finding.Gated(), live, gated},
		{finding.LargerThanANode(), nodes, largerThanANode},
	}
}

// ordinary says whether the rules of extended resources hold for a name in a pod. They do not
// for what has kubernetes.io/ in it, the implicit names of device classes among them.
func ordinary(name string) bool {
	return strings.Contains(name, "/") && !strings.Contains(name, native)
}

// containers goes through the containers whose text people wrote.
func (w *World) containers(do func(*Workload, Container)) {
	for _, p := range w.workloads {
		for _, c := range p.Containers {
			do(p, c)
		}
	}
}

func amountOf(list []Amount, name string) (Amount, bool) {
	for _, a := range list {
		if a.Name == name {
			return a, true
		}
	}
	return Amount{}, false
}

func limitMissing(w *World) []Finding {
	var all []Finding
	w.containers(func(p *Workload, c Container) {
		for _, r := range c.Requests {
			if !ordinary(r.Name) {
				continue
			}
			limit, ok := amountOf(c.Limits, r.Name)
			switch {
			case !ok:
				all = append(all, foundKey(p.ref(), r.Value,
					"container %s of %s requests %q without a limit, and the API server refuses it", c.Name, p.ref(),
					r.Name).about(r.Name))
			case !limit.same(r.quantity):
				f := foundKey(p.ref(), r.Value, "container %s of %s requests %s of %q with a limit of %s, and the API "+
					"server wants them equal", c.Name, p.ref(), r.text, r.Name, limit.text).about(r.Name)
				all = append(all, f.with(limit.KeyPlace(), "the limit is here"))
			}
		}
	})
	return all
}

func notWhole(w *World) []Finding {
	var all []Finding
	w.containers(func(p *Workload, c Container) {
		seen := map[string]bool{}
		for _, list := range [][]Amount{c.Limits, c.Requests} {
			for _, a := range list {
				if n, whole := a.whole(); !ordinary(a.Name) || seen[a.Name] || whole && n >= 0 {
					continue
				}
				seen[a.Name] = true
				all = append(all, found(p.ref(), a.Value,
					"container %s of %s has %q of %q, which is no whole number of devices", c.Name, p.ref(), a.text,
					a.Name).about(a.Name))
			}
		}
	})
	return all
}

func initOnly(w *World) []Finding {
	var all []Finding
	for _, p := range w.workloads {
		for _, want := range p.Wants() {
			if want.InitOnly && strings.Contains(want.Name, "/") {
				all = append(all, foundKey(p.ref(), want.At,
					"only an init container of %s requests %q: the others do not get its device", p.ref(),
					want.Name).about(want.Name))
			}
		}
	}
	return all
}

// injectedElsewhere: the injector knows the first container only.
func injectedElsewhere(w *World) []Finding {
	var all []Finding
	w.attaching(func(p *Workload, a attached) {
		var names []string
		for _, c := range p.Containers {
			if !c.Init {
				names = append(names, c.Name)
			}
		}
		if p.Live || len(names) < 2 || p.want(a.resource) != nil || !w.injector.covers(p) {
			return
		}
		f := found(p.ref(), first(p.Spec.Get("containers")),
			"%s has %d containers, and the injector gives the device of network %q to the first one, %q",
			p.ref(), len(names), a.networks[0].Name, names[0]).about(a.resource)
		all = append(all, f.with(a.at.Place(), "attached here"))
	})
	return all
}

// schedulerBypassed: kubelet admits a pod whose resource it has never heard of, and starts it
// without the device. The scheduler puts no pod there, so that a live one got past it.
func schedulerBypassed(w *World) []Finding {
	var all []Finding
	elsewhere := w.servedElsewhere()
	for _, p := range w.workloads {
		node := w.nodeOf[p.node()]
		byClaim := p.Object.Get("status", "extendedResourceClaimStatus").Exists()
		if node == nil || p.Live && !p.holds() || byClaim || node.Object.Get("status", "capacity").Len() == 0 {
			continue
		}
		would := "would start"
		if p.Live {
			would = "starts"
		}
		for _, want := range p.Wants() {
			if !ordinary(want.Name) || want.Count == 0 || node.key(want.Name).Exists() || elsewhere[want.Name] {
				continue
			}
			f := found(p.ref(), p.Spec.Get("nodeName"),
				"%s is put on node %s past the scheduler, which has no %q: it %s without the device", p.ref(),
				node.Name, want.Name, would).about(want.Name)
			all = append(all, f.with(want.At.KeyPlace(), "requested here"))
		}
	}
	return all
}

// servedElsewhere are names that pods may get although no node has them: those of device classes, and
// those that a scheduler extender answers for.
func (w *World) servedElsewhere() map[string]bool {
	all := maps.Clone(w.names.ignored)
	for _, o := range w.kinds["DeviceClass"] {
		if name := o.Get("spec", "extendedResourceName").Text(); name != "" {
			all[name] = true
		}
	}
	return all
}

func privilegedAnyway(w *World) []Finding {
	var all []Finding
	w.containers(func(p *Workload, c Container) {
		privileged := c.Get("securityContext", "privileged")
		if privileged.Text() != "true" || len(c.Limits) == 0 || !strings.Contains(c.Limits[0].Name, "/") {
			return
		}
		all = append(all, foundKey(p.ref(), privileged,
			"container %s of %s is privileged: it sees all devices of the host, beside the %q that it requests", c.Name,
			p.ref(), c.Limits[0].Name).about(c.Limits[0].Name))
	})
	return all
}

// severalShares: a second share is not a second device.
func severalShares(w *World) []Finding {
	var all []Finding
	reasons := map[string]string{}
	for _, p := range w.workloads {
		for _, want := range p.Wants() {
			if want.Count < 2 {
				continue
			}
			why, known := reasons[want.Name]
			if !known {
				why = w.shared(want.Name)
				reasons[want.Name] = why
			}
			if why != "" {
				all = append(all, foundKey(p.ref(), want.At, "%s requests %d of %q, which are shares and may be of one device",
					p.ref(), want.Count, want.Name).about(want.Name).because("%s", why))
			}
		}
	}
	return all
}

// shared says why the devices of a name are shares of others, "" where nothing says so.
func (w *World) shared(name string) string {
	if strings.HasSuffix(name, ".shared") {
		return "its name says that it is shared"
	}
	if !strings.HasPrefix(name, "nvidia.com/gpu") {
		return ""
	}
	for _, n := range w.names.nodes[name] {
		if strategy := n.Labels.Get("nvidia.com/gpu.sharing-strategy").Text(); strategy != "" && strategy != "none" {
			return "node " + n.Name + " has the sharing strategy " + strategy
		}
	}
	return ""
}

func quantityZero(w *World) []Finding {
	var all []Finding
	w.containers(func(p *Workload, c Container) {
		for _, a := range c.Limits {
			if n, whole := a.whole(); whole && n == 0 && ordinary(a.Name) {
				all = append(all, foundKey(p.ref(), a.Value,
					"container %s of %s wants none of %q, and kubelet refuses the pod all the same where no device is healthy",
					c.Name, p.ref(), a.Name).about(a.Name))
			}
		}
	})
	return all
}

// first is the first element of a list.
func first(v manifest.Value) manifest.Value {
	for item := range v.Each() {
		return item
	}
	return manifest.Value{}
}
