package check

import (
	"errors"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/podresources"
)

// The family MAP: which pod has which device.
func holderChecks() []Check {
	return []Check{
		{finding.DeviceMissing(), []Need{needPods, needHolders, needRealNames}, deviceMissing},
		{finding.TwoOwners(), []Need{needHolders}, twoOwners},
		{finding.RecordDiffers(), []Need{needHolders, needRecord}, recordDiffers},
		{finding.SameName(), []Need{needPods, needHolders}, sameName},
		{finding.AnswerSlow(), []Need{needAnswer}, answerSlow},
		{finding.TwoClaims(), []Need{needAllotted}, twoClaims},
		{finding.OtherThanAllocated(), []Need{needAllotted, needHolders, needRealNames}, otherThanAllocated},
	}
}

// deviceMissing is about pods that ran when the node was captured.
func deviceMissing(w *World) []Finding {
	has := func(n *captured) bool { return n.hasHolders() && n.hasNames() }
	return w.onNodes(has, func(n *captured) []Finding {
		var all []Finding
		for _, p := range w.podsOn[n.name] {
			claimed := p.Object.Get("status", "extendedResourceClaimStatus").Exists()
			started, err := time.Parse(time.RFC3339, p.Object.Get("status", "startTime").Text())
			late := err == nil && !n.c.Meta.Time.IsZero() && started.After(n.c.Meta.Time)
			if p.phase() != "Running" || claimed || late {
				continue
			}
			for _, c := range p.Containers {
				for _, limit := range c.Limits {
					if count, ok := limit.whole(); c.Init || !ok || count == 0 || !ordinary(limit.Name) || n.has(p, c.Name,
						limit.Name) {
						continue
					}
					f := foundKey(p.ref(), limit.Value,
						"container %s of %s requests %q, and kubelet of node %s says that it has none", c.Name,
						p.ref(), limit.Name, n.name)
					all = append(all, f.about(limit.Name).with(manifest.Place{File: n.file}, "the node"))
				}
			}
		}
		return all
	})
}

// has says whether kubelet has given a container a device of a resource.
func (n *captured) has(p *Workload, container, resource string) bool {
	return slices.ContainsFunc(n.pods.Pods, func(have podresources.Pod) bool {
		return have.Namespace == p.Namespace && have.Name == p.Object.Name &&
			slices.ContainsFunc(have.Containers, func(c podresources.Container) bool {
				return c.Name == container && slices.ContainsFunc(c.Devices,
					func(d podresources.Device) bool { return d.Resource == resource })
			})
	})
}

// owner is who has a device, and as what: a resource or a claim.
type owner struct {
	pod, what string
	claim     bool
}

// twoOwners compares physical devices only: the numbers of counters and shares belong to nobody.
func twoOwners(w *World) []Finding {
	return w.onNodes((*captured).hasHolders, func(n *captured) []Finding {
		first := map[string]owner{}
		var all []Finding
		for _, p := range n.pods.Pods {
			known := w.podOf[Ref{"Pod", p.Namespace, p.Name}]
			if known != nil && !known.holds() {
				continue // it has ended
			}
			for id, o := range w.devicesOf(n, p) {
				was, taken := first[id]
				if !taken {
					first[id] = o
					continue
				}
				if was.pod == o.pod || was.what == o.what && o.claim {
					continue // one claim may be for several pods
				}
				f := n.found("pod %s has %s as %s on node %s, and pod %s has it as %s", o.pod, id, o.what, n.name, was.pod, was.what)
				if !n.lateKubelet() {
					f = f.as(finding.Warning).because("kubelet %s also names pods that have ended", n.c.Meta.Kubelet)
				}
				all = append(all, f)
			}
		}
		return all
	})
}

// devicesOf goes through the physical devices that a pod has of plugins and by claims.
func (w *World) devicesOf(n *captured, p podresources.Pod) iter.Seq2[string, owner] {
	pod := p.Namespace + "/" + p.Name
	return func(yield func(string, owner) bool) {
		for _, c := range p.Containers {
			for _, d := range c.Devices {
				if physical(d.ID) && !yield(strings.ToLower(d.ID), owner{pod, d.Resource, false}) {
					return
				}
			}
			for _, claim := range c.Claims {
				for _, d := range claim.Devices {
					what := "claim " + claim.Namespace + "/" + claim.Name
					if a := w.addressOf(n.name, d); a != "" && !yield(a, owner{pod, what, true}) {
						return
					}
				}
			}
		}
	}
}

// addressOf is the PCI address of a device of a claim, as its driver has published it.
func (w *World) addressOf(node string, d podresources.ClaimDevice) string {
	for _, p := range w.published {
		if p.Node == node && p.DeviceName == (DeviceName{d.Driver, d.Pool, d.Device}) {
			return p.Address
		}
	}
	return ""
}

// recordDiffers: what the record has and kubelet does not name is the devices of pods that have
// gone, which is as usual.
func recordDiffers(w *World) []Finding {
	has := func(n *captured) bool { return n.hasHolders() && n.hasRecord() }
	return w.onNodes(has, func(n *captured) []Finding {
		var all []Finding
		for _, p := range n.pods.Pods {
			for _, c := range p.Containers {
				for _, d := range c.Devices {
					noted := slices.ContainsFunc(n.record.Data.PodDeviceEntries, func(g capture.Given) bool {
						return g.ContainerName == c.Name && g.ResourceName == d.Resource && slices.Contains(idsOf(g), d.ID)
					})
					if !noted {
						all = append(all, n.found("kubelet of node %s says that container %s of pod %s/%s has %s of %s, "+
							"which its record does not have",
							n.name, c.Name, p.Namespace, p.Name, d.ID, d.Resource).about(d.Resource))
					}
				}
			}
		}
		return all
	})
}

// sameName looks at all objects: elsewhere one of a name is enough.
func sameName(w *World) []Finding {
	type place struct{ node, namespace, name string }
	first := map[place]*manifest.Object{}
	var all []Finding
	for _, o := range w.set.Objects {
		at := place{o.Get("spec", "nodeName").Text(), o.Namespace, o.Name}
		if o.Kind != "Pod" || !slices.ContainsFunc(w.captured, func(n *captured) bool {
			return n.name == at.node &&
				n.hasHolders()
		}) {
			continue
		}
		uid := o.Get("metadata", "uid")
		switch was := first[at]; {
		case uid.Text() == "":
		case was == nil:
			first[at] = o
		case was.Get("metadata", "uid").Text() != uid.Text():
			f := found(w.ref(o), uid,
				"%s is there with the UIDs %s and %s, and kubelet of node %s does not say which of them has devices",
				w.ref(o), was.Get("metadata", "uid").Text(), uid.Text(), at.node)
			all = append(all, f.with(was.Place(), "the other one"))
			first[at] = o
		}
	}
	return all
}

// hasAnswer says whether kubelet was asked.
func (n *captured) hasAnswer() bool {
	return !errors.Is(n.podsErr, capture.ErrNotCaptured) && !errors.Is(n.podsErr, fs.ErrNotExist)
}

// answerSlow: a network plugin gives up after some seconds, with the pod that it asked for.
func answerSlow(w *World) []Finding {
	const slow = time.Second
	return w.onNodes((*captured).hasAnswer, func(n *captured) []Finding {
		switch {
		case n.podsErr != nil:
			return []Finding{n.found("kubelet of node %s did not say who has which device: %s", n.name, cause(n.podsErr))}
		case time.Duration(n.pods.TookMilliseconds)*time.Millisecond >= slow:
			return []Finding{n.found("kubelet of node %s took %d ms to say who has which device", n.name, n.pods.TookMilliseconds)}
		}
		return nil
	})
}
