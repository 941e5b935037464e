package check

import (
	"fmt"
	"strings"

	"kata-device-plugin/internal/finding"
)

// The family NAM: one name is spelled in three places, and must be the same in all.
func nameChecks() []Check {
	judged := func(v verdict, of func(use) bool) func(*World) []Finding {
		return func(w *World) []Finding { return w.judged(v, of) }
	}
	attached := []Need{needAttached, needNetworks}
	return []Check{
		{finding.NameNotAdvertised(), []Need{needWorkloads}, judged(absentName, ofPods)},
		{finding.NetworkNotAdvertised(), []Need{needNetworks}, judged(absentName, ofNetworks)},
		{finding.OtherPrefix(), []Need{needProducers, needUses}, judged(otherPrefix, ofAll)},
		{finding.AttachedNotRequested(), attached, attachedNotRequested},
		{finding.RequestedNotAttached(), []Need{needWorkloads, needNetworks}, requestedNotAttached},
		{finding.TooFewRequested(), attached, tooFewRequested},
		{finding.TooManyRequested(), attached, tooManyRequested},
		{finding.OtherSpelling(), []Need{needProducers, needUses}, judged(otherSpelling, ofAll)},
		{finding.NoSlash(), []Need{needUses}, judged(noSlash, ofAll)},
		{finding.NameRefused(), []Need{needUses}, nameRefused},
		{finding.TwoProducers(), []Need{needProducers}, twoProducers},
		{finding.PrefixOrigin(), []Need{needConfigs}, prefixOrigin},
		{finding.QuotaNotAdvertised(), []Need{needQuotas}, quotaNotAdvertised},
		{finding.SliceSpelling(), []Need{needDRA, needNetworks}, sliceSpelling},
		{finding.SharedVariable(), []Need{needConfigs}, sharedVariable},
		{finding.OrderNotFixed(), attached, orderNotFixed},
	}
}

// verdict is what is the case with a name that somebody refers to. There is one for a name: a
// mistake is reported once, under the ID that says the most.
type verdict uint8

const (
	fine verdict = iota
	noSlash
	refusedName
	otherPrefix
	otherSpelling
	absentName
)

// judge compares a name with what is advertised.
func (w *World) judge(u use) (verdict, Suggestion) {
	switch {
	case strings.HasPrefix(u.name, unknownPrefix+"/"):
		if w.names.advertised(u.name) {
			return fine, Suggestion{}
		}
		return absentName, Suggestion{}
	case strings.ContainsAny(u.name, ", \t\n"): // several names: NAD005
		return fine, Suggestion{}
	case !strings.Contains(u.name, "/"):
		s := w.names.like(u.name)
		if u.network != nil && s.How == likePrefix {
			return otherPrefix, s
		}
		return noSlash, s
	case !strings.HasPrefix(u.name, implicitClass) && kubeletFault(u.name) != "":
		return refusedName, w.names.like(u.name)
	case w.names.advertised(u.name):
		return fine, Suggestion{}
	}
	switch s := w.names.like(u.name); s.How {
	case likePrefix:
		return otherPrefix, s
	case likeSpelling:
		return otherSpelling, s
	default:
		return absentName, s
	}
}

func ofPods(u use) bool     { return u.workload != nil }
func ofNetworks(u use) bool { return u.network != nil }
func ofAll(use) bool        { return true }

// judged reports the references with a verdict.
func (w *World) judged(v verdict, of func(use) bool) []Finding {
	var all []Finding
	for _, u := range w.uses {
		if !of(u) {
			continue
		}
		got, s := w.judge(u)
		if got != v || v == absentName && w.corroborated(u.name) {
			continue
		}
		f := placed(u.by, u.at, u.path, "%s %s %q, %s", u.by, u.does, u.name, w.verdictText(u.name, v, s)).about(u.name)
		f = w.weigh(f, v, s)
		if v != noSlash && u.workload != nil && w.claimed(u.workload, u.name) {
			f = f.as(finding.Note).because("the scheduler looks for claims for the pod, which lists none: a DeviceClass that the input lacks " +
				"may stand for the name")
		}
		all = append(all, f)
	}
	return all
}

func (w *World) verdictText(name string, v verdict, s Suggestion) string {
	switch v {
	case noSlash:
		return "which has no slash: no device has such a name"
	case otherPrefix:
		return fmt.Sprintf("and it is advertised as %q", s.Name)
	case otherSpelling:
		return fmt.Sprintf("and what is advertised is %q: case, hyphens and underscores matter", s.Name)
	}
	who := "nothing in the input advertises"
	if w.closed() {
		who = "nothing advertises"
	}
	if len(w.names.zeros[name]) > 0 {
		return "which was advertised once, and " + who + " it now"
	}
	return "which " + who
}

// weigh adds what the input proves, and what to do.
func (w *World) weigh(f Finding, v verdict, s Suggestion) Finding {
	if s.How != unlike {
		f = w.names.source(f, s.Name)
		switch s.How {
		case likePrefix:
			f = f.advise("write %q here, or advertise the other name (%s)", s.Name, w.names.origin(s.Name))
		default:
			f = f.advise("did you mean %q (%s)?", s.Name, w.names.origin(s.Name))
		}
	}
	if zeros := w.names.zeros[f.Resource]; len(zeros) > 0 {
		f = f.because("%s", zeroText(zeros[0], f.Resource))
		if s.How == unlike {
			f = f.advise("look whether the plugin runs on node %s, and which devices it finds; if it is gone for good, correct the name",
				zeros[0].Name)
		}
	}
	switch {
	case strings.HasPrefix(f.Resource, unknownPrefix+"/"):
		return f.as(finding.Note).because("%s", w.operator.why())
	case v == absentName && !w.closed():
		return f.as(finding.Note).because("the input does not have all nodes and ConfigMaps of the cluster")
	case v == otherSpelling && !w.closed():
		return f.as(finding.Warning).because("the input does not have all nodes and ConfigMaps of the cluster")
	}
	return f
}

// zeroText is what a key means behind which there is nothing to be had.
func zeroText(n *Node, name string) string {
	if n.most(name) > 0 {
		return fmt.Sprintf("node %s has %d of it and none is healthy: what a plugin announced before it was given another name",
			n.Name, n.most(name))
	}
	return "node " + n.Name + " has the key with 0: left over, or the plugin is not there"
}

// nameRefused is about names that can never be there, whoever advertises them.
func nameRefused(w *World) []Finding {
	var all []Finding
	for _, u := range w.uses {
		v, s := w.judge(u)
		if v != refusedName {
			continue
		}
		who := "the API server and kubelet refuse"
		if apiFault(u.name) == "" {
			who = "kubelet refuses"
		}
		f := placed(u.by, u.at, u.path, "%s %s %q, which %s: it %s", u.by, u.does, u.name, who,
			kubeletFault(u.name)).about(u.name)
		if s.How != unlike {
			f = w.names.source(f, s.Name).advise("did you mean %q (%s)?", s.Name, w.names.origin(s.Name))
		}
		all = append(all, f)
	}
	for _, p := range w.names.all {
		_, base := split(p.Name)
		if p.origin == fromConfig || strings.HasPrefix(p.Name, implicitClass) {
			continue // CFG004 has those of configurations
		}
		what := kubeletFault(p.Name)
		if strings.HasPrefix(p.Name, unknownPrefix+"/") {
			what = kubeletFault("x/" + base)
		}
		if what != "" {
			all = append(all, placed(p.Object, p.At, "", "%s makes the resource %q, which kubelet refuses: it %s", p.Object,
				p.Name, what).about(p.Name))
		}
	}
	return all
}
