package preflight

import (
	"fmt"
	"slices"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// section is a part of the list.
type section struct {
	name      string
	questions []question
}

// question is a row of the list.
type question struct {
	text string
	// of is the way that it is about, "" for each.
	of  Way
	ask func(*survey, Way, *verdict)
}

// sections are the list, in the order of what depends on what.
func sections() []section {
	return []section{
		{"Kubernetes", []question{
			{"every kubelet is new enough", "", kubelets},
			{"the nodes are ready", "", nodesReady},
			{"the feature gates are on", "", gates},
			{"the API server serves what the driver writes", DRA, served},
			{"extended resource names of device classes work", DRA, extendedNames},
		}},
		{"container runtime", []question{
			{"the runtime gives containers CDI devices", "", runtimeCDI},
			{"the runtime looks where CDI specs are", "", runtimeDirs},
			{"the CDI specs can be used", "", specs},
		}},
		{"Kata", []question{
			{"a RuntimeClass starts Kata VMs", "", runtimeClasses},
			{"the nodes know its handler", "", handlers},
			{"devices are plugged before the VM starts", "", coldPlug},
			{"the shim asks kubelet which devices a pod has", DevicePlugin, socket},
			{"the shim takes the devices of claims", DRA, claimsTaken},
			{"a VM has a root port for each device", "", rootPorts},
		}},
		{"devices", []question{
			{"the hardware can be handed out", "", hardware},
			{"plugins serve what kubelet offers", DevicePlugin, serving},
			{"kubelet has all devices of its plugins to give", DevicePlugin, allocatable},
			{"plugins take their configurations", DevicePlugin, configurations},
			{"the driver has published its devices", DRA, published},
			{"device classes take what is published", DRA, classesTake},
		}},
		{"topology", []question{
			{"kubelet can align devices", DevicePlugin, topologyPolicy},
		}},
		{"both ways", []question{
			{"no device is offered in both ways", "", offeredOnce},
			{"plugin and driver keep to nodes of their own", "", apart},
			{"no two classes have one extended resource name", DRA, checks("DRA007")},
		}},
		{"production", []question{
			{"only administrators decide about devices", "", administrators},
			{"agents have no privilege that they do not need", "", captureChecks("kubelet's plugin directories",
				"SEC004", "SEC005", "SEC007")},
			{"images are named by digest", "", digests},
			{"agents are not evicted before others", "", priority},
			{"agents have what they need of a node", "", outfit},
			{"agents run on every node that is theirs", "", running},
			{"agents are updated by themselves", "", updates},
			{"metrics are scraped", "", scraped},
			{"network policies are there", "", policies},
			{"the driver's admission policies are in force", DRA, admission},
		}},
	}
}

// checks answers with what checks say: each is made elsewhere, and only collected here. A check that
// the catalogue does not have is not asked.
func checks(ids ...string) func(*survey, Way, *verdict) {
	return func(s *survey, _ Way, v *verdict) {
		s.whenMade(v, anything, ids...)
		for _, skipped := range s.Checked.Skipped {
			if slices.Contains(ids, skipped.ID) {
				for _, missing := range skipped.Missing {
					v.open(missing)
				}
			}
		}
	}
}

func anything(check.Finding) bool { return true }

// whenMade takes what checks say of something. That a check was not made opens nothing: what it looks at
// need not be there, such as a configuration, or is asked for by other words.
func (s *survey) whenMade(v *verdict, about func(check.Finding) bool, ids ...string) {
	var passed []string
	for _, id := range ids {
		said, made := false, slices.Contains(s.Checked.Passed, id)
		for _, f := range s.Checked.Findings {
			if f.ID != id {
				continue
			}
			made = true
			if about(f) {
				said = true
				v.no(f)
			}
		}
		if made && !said {
			passed = append(passed, id)
		}
	}
	if len(passed) > 0 {
		v.yes("nothing is found by " + strings.Join(passed, ", "))
	}
}

// captureChecks are checks of which some look at captured nodes: they pass on those that there are.
func captureChecks(what string, ids ...string) func(*survey, Way, *verdict) {
	return func(s *survey, w Way, v *verdict) {
		checks(ids...)(s, w, v)
		s.uncaptured(v, what)
	}
}

// administrators: most plugins have no configuration that somebody might change.
func administrators(s *survey, w Way, v *verdict) {
	checks("SEC001", "SEC002")(s, w, v)
	s.whenMade(v, anything, "SEC003")
}

// found begins a finding about an object.
func found(k finding.Kind, o check.Ref, at manifest.Value, format string, args ...any) check.Finding {
	message := fmt.Sprintf(format, args...)
	if path := at.Path(); path != "" {
		message += " (at " + path + ")"
	}
	return check.Finding{Kind: k, Object: o, Place: at.KeyPlace(), Message: message, Help: k.Remedy}
}
