package preflight

import (
	"fmt"
	"slices"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// What is asked of the workloads of this project before people rely on them. How other agents are
// run is said by their own projects.

// ours are the images of a way, with whether they have a port for Prometheus.
func ours(w Way) map[string]bool {
	if w == DRA {
		return map[string]bool{driverImage: true, "device-exporter": true}
	}
	return map[string]bool{"kata-device-plugin": false, "nic-device-plugin": false, "device-exporter": true}
}

// eachAgent asks about the agents of a way. It is open where the input has none.
func (s *survey) eachAgent(w Way, v *verdict, ask func(check.DeviceAgent)) {
	some := false
	for _, a := range s.agents {
		if _, is := ours(w)[a.Image]; is {
			some = true
			ask(a)
		}
	}
	if !some {
		v.open("DaemonSets of this project for the way " + string(w))
	}
}

func digests(s *survey, w Way, v *verdict) {
	s.eachAgent(w, v, func(a check.DeviceAgent) {
		image := a.Container.Get("image")
		if strings.Contains(image.Text(), "@sha256:") {
			v.yes(fmt.Sprintf("%s names %s", a.Ref, image.Text()))
			return
		}
		v.no(found(finding.NoDigest(), a.Ref, image, "%s runs the image %s", a.Ref, image.Text()))
	})
}

func updates(s *survey, w Way, v *verdict) {
	s.eachAgent(w, v, func(a check.DeviceAgent) {
		strategy := a.Object.Get("spec", "updateStrategy", "type")
		if strategy.Text() == "OnDelete" {
			v.no(found(finding.NotUpdated(), a.Ref, strategy, "%s has the update strategy OnDelete", a.Ref))
			return
		}
		v.yes(fmt.Sprintf("%s is updated node by node", a.Ref))
	})
}

// scraped: a scrape annotation and what Prometheus Operator has are known. A scrape configuration
// that somebody wrote by hand is not. Device plugins have no port: what they do is in the exporter's
// metrics.
func scraped(s *survey, w Way, v *verdict) {
	some := false
	s.eachAgent(w, v, func(a check.DeviceAgent) {
		if !ours(w)[a.Image] {
			return
		}
		some = true
		if at := a.Object.Get("spec", "template", "metadata", "annotations", "prometheus.io/scrape"); at.Text() == "true" {
			v.yes(fmt.Sprintf("%s has the annotation prometheus.io/scrape", a.Ref))
			return
		}
		s.selected(v, a, "PodMonitor", "selector", finding.NotScraped())
	})
	switch {
	case some || len(v.tell) > 0:
	case s.View.Complete("DaemonSet"):
		v.no(found(finding.NotScraped(), check.Ref{}, manifest.Value{},
			"the cluster has no device-exporter, whose metrics are those of device plugins"))
	default:
		v.open("the DaemonSet of device-exporter, whose metrics are those of device plugins")
	}
}

// policies: none reaches what has the network of its node, which is no matter to an agent without a
// port. With NIC rules the exporter has that network, and its manifests have no policy: its port is kept otherwise.
func policies(s *survey, w Way, v *verdict) {
	s.eachAgent(w, v, func(a check.DeviceAgent) {
		host := a.Spec.Get("hostNetwork")
		switch {
		case host.Text() != "true":
			s.selected(v, a, "NetworkPolicy", "podSelector", finding.ReachedByAll())
		case ours(w)[a.Image]:
			if _, web := a.Flag("web.config.file"); web.Exists() {
				v.yes(fmt.Sprintf("%s has the network of its node, and --web.config.file for whom it answers", a.Ref))
				return
			}
			f := found(finding.ReachedByAll(), a.Ref, host, "%s has the network of its node, where no NetworkPolicy reaches it", a.Ref)
			f.Help = "give it passwords or client certificates with --web.config.file, or take the network of the node away from it"
			v.no(f)
		default:
			v.yes(fmt.Sprintf("%s has the network of its node, and no port", a.Ref))
		}
	})
}

// selected wants an object of a kind that selects an agent's pods.
func (s *survey) selected(v *verdict, a check.DeviceAgent, kind, selector string, none finding.Kind) {
	switch o := s.selecting(a, kind, selector); {
	case o != nil:
		v.yes(fmt.Sprintf("%s selects the pods of %s", s.View.RefOf(o), a.Ref))
	case !s.View.Complete(kind):
		v.open("all objects of the kind " + kind)
	default:
		v.no(found(none, a.Ref, a.Object.Get("metadata"), "no %s selects the pods of %s", kind, a.Ref))
	}
}

// selecting is an object of a kind that selects an agent's pods, nil for none.
func (s *survey) selecting(a check.DeviceAgent, kind, selector string) *manifest.Object {
	labels := a.Object.Get("spec", "template", "metadata", "labels")
	for _, o := range s.View.Objects(kind) {
		everywhere := o.Get("spec", "namespaceSelector", "any").Text() == "true" ||
			slices.Contains(o.Get("spec", "namespaceSelector", "matchNames").Texts(), a.Ref.Namespace)
		if s.View.RefOf(o).Namespace != a.Ref.Namespace && !everywhere {
			continue
		}
		if check.Selects(o.Get("spec", selector), labels) {
			return o
		}
	}
	return nil
}

// policyNames are those of the driver's admission.yaml.
func policyNames() []string {
	return []string{"names.vfio.katacontainers.io", "parameters.vfio.katacontainers.io", "slices.vfio.katacontainers.io"}
}

// admission: a policy without a binding refuses nothing.
func admission(s *survey, _ Way, v *verdict) {
	const kind, bindings = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
	for _, name := range policyNames() {
		ref := check.Ref{Kind: kind, Name: name}
		o, actions := s.View.Object(ref), bound(s.View.Objects(bindings), name)
		denies := slices.ContainsFunc(actions, func(a manifest.Value) bool { return slices.Contains(a.Texts(), "Deny") })
		switch {
		case o != nil && denies:
			v.yes(fmt.Sprintf("%s is there, and a binding makes it deny", ref))
		case !s.View.Complete(kind) || !s.View.Complete(bindings):
			v.open("ValidatingAdmissionPolicies and their bindings, all of them")
		case o == nil:
			v.no(found(finding.PolicyMissing(), ref, manifest.Value{}, "the cluster has no %s", ref))
		case len(actions) == 0:
			v.no(found(finding.PolicyMissing(), ref, o.Get("metadata"), "no binding makes %s deny", ref))
		default:
			v.no(found(finding.PolicyMissing(), ref, actions[0], "no binding makes %s deny: one has %s", ref,
				strings.Join(actions[0].Texts(), ", ")))
		}
	}
}

// bound are what the bindings of a policy have it do.
func bound(bindings []*manifest.Object, policy string) []manifest.Value {
	var all []manifest.Value
	for _, b := range bindings {
		if b.Get("spec", "policyName").Text() == policy {
			all = append(all, b.Get("spec", "validationActions"))
		}
	}
	return all
}
