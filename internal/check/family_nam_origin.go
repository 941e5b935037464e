package check

import (
	"maps"
	"slices"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/nicconfig"
)

// twoProducers: kubelet takes the word of the one that registered last, or of both.
func twoProducers(w *World) []Finding {
	var all []Finding
	for _, name := range slices.Sorted(maps.Keys(w.names.exact)) {
		producers := w.names.exact[name]
		for i, p := range producers {
			for _, other := range producers[:i] {
				if how := w.contend(p, other); how != apart {
					f := placed(p.Object, p.At, "", "%s advertises %q, which %s advertises too", p.Object, name,
						other.Object).about(name)
					f = other.note(f)
					if how == perhaps {
						f = f.as(finding.Warning).because("whether both are on one node is not in the input")
					}
					all = append(all, f)
					break
				}
			}
		}
	}
	return all
}

type contention uint8

const (
	apart contention = iota
	perhaps
	together
)

// contend says whether two producers of a name are in each other's way. Entries of one
// configuration are CFG003's, policies may share a resource, and classes are DRA's.
func (w *World) contend(a, b *Producer) contention {
	switch {
	case a.origin == fromKubelet || b.origin == fromKubelet: // which only repeats the word of one of them
		return apart
	case a.origin == fromPolicy || b.origin == fromPolicy || a.Object.Kind == "DeviceClass" || b.Object.Kind == "DeviceClass":
		return apart
	case a.Object == b.Object && a.Object.Kind == "KubeVirt" && a.At.File == b.At.File:
		return together // the last entry counts, the others are lost
	case a.Object == b.Object || strings.HasPrefix(a.Name, unknownPrefix+"/"):
		return apart
	case copied(a, b) || copied(b, a):
		return apart
	case a.agent == nil || b.agent == nil:
		return perhaps
	case a.agent == b.agent:
		return apart
	}
	return w.meet(a.agent, b.agent)
}

// copied says whether a policy of the NVIDIA network operator and a ConfigMap have the same text: the
// operator writes the one into the other.
func copied(policy, config *Producer) bool {
	return policy.Object.Kind == "NicClusterPolicy" && config.Object.Kind == "ConfigMap" && policy.pool != nil && config.pool != nil &&
		strings.TrimSpace(policy.pool.Config.At.Text()) == strings.TrimSpace(config.pool.Config.At.Text())
}

// meet says whether two agents run on one node.
func (w *World) meet(a, b *Agent) contention {
	if a.apart(b) {
		return apart
	}
	for _, n := range w.nodes {
		if n.refusesDaemon(a.Spec) == "" && n.refusesDaemon(b.Spec) == "" {
			return together
		}
	}
	chooses := func(a *Agent) bool { return a.Spec.Get("nodeSelector").Len() > 0 || a.Spec.Get("affinity").Exists() }
	switch {
	case w.complete("Node") && len(w.nodes) > 0:
		return apart
	case len(w.nodes) == 0 && !chooses(a) && !chooses(b):
		return together
	}
	return perhaps
}

// prefixOrigin explains where prefixes come from. Nothing is wrong.
func prefixOrigin(w *World) []Finding {
	if !w.o.Verbose {
		return nil
	}
	var all []Finding
	for _, c := range w.configs {
		for _, pool := range c.Pools {
			for _, n := range pool.names() {
				f := found(c.Owner, pool.Name, "%s advertises %q (%s)", c.Owner, n, pool.why(n)).about(n.String())
				if n.Origin == nicconfig.FromFlag {
					f = f.with(n.agent.PrefixAt.Place(), "--resource-prefix is set here")
				}
				all = append(all, f)
			}
		}
	}
	return all
}

// counts says whether a key of a quota is about the number of objects, and not about what they request:
// count/pods, or NAME.storageclass.storage.k8s.io/persistentvolumeclaims.
func counts(key string) bool {
	of, _ := split(key)
	return of == "count" || strings.HasSuffix(of, ".storageclass.storage.k8s.io") || strings.HasSuffix(of, ".deviceclass.resource.k8s.io")
}

// quotaNotAdvertised: a quota of a name that is spelled wrong limits nothing.
func quotaNotAdvertised(w *World) []Finding {
	var all []Finding
	judge := func(o *manifest.Object, entry manifest.Value, name string) {
		name = strings.TrimPrefix(strings.TrimPrefix(name, "requests."), "limits.")
		unknowable := !w.closed() && len(w.names.known) == 0
		if counts(name) || !ordinary(name) || w.names.advertised(name) || unknowable {
			return
		}
		f := foundKey(w.ref(o), entry, "%s limits %q, which nothing in the input advertises", w.ref(o), name).about(name)
		if s := w.names.like(name); s.How != unlike {
			f = w.names.source(f, s.Name).advise("did you mean %q (%s)?", s.Name, w.names.origin(s.Name))
		}
		all = append(all, f)
	}
	for _, o := range w.kinds["ResourceQuota"] {
		for e := range o.Get("spec", "hard").Entries() {
			judge(o, e, e.Key())
		}
	}
	for _, o := range w.kinds["LimitRange"] {
		for item := range o.Get("spec", "limits").Each() {
			for list := range item.Entries() {
				for e := range list.Entries() {
					judge(o, e, e.Key())
				}
			}
		}
	}
	return all
}

// sliceSpelling: Multus finds a claim's device by the name in the slice.
func sliceSpelling(w *World) []Finding {
	networks := map[string]*Network{}
	bases := map[string]*Network{}
	for _, n := range w.ordered {
		if n.Resource != "" && !strings.HasPrefix(n.Resource, unknownPrefix) {
			_, base := split(n.Resource)
			networks[n.Resource], bases[fold(base)] = n, n
		}
	}
	var all []Finding
	judge := func(o *manifest.Object, at manifest.Value, seen map[string]bool) {
		name := at.Text()
		_, base := split(name)
		n := bases[fold(base)]
		if name == "" || networks[name] != nil || n == nil || seen[name] || w.names.advertised(n.Resource) {
			return
		}
		seen[name] = true
		f := found(w.ref(o), at, "%s has the name %q for devices, and network %s/%s has %q", w.ref(o), name, n.Namespace,
			n.Name, n.Resource).about(name)
		all = append(all, f.with(n.At.Place(), "network %s/%s names it here", n.Namespace, n.Name))
	}
	for _, o := range w.kinds["ResourceSlice"] {
		seen := map[string]bool{}
		for d := range o.Get("spec", "devices").Each() {
			attributes := d.Get("attributes")
			if !attributes.Exists() {
				attributes = d.Get("basic", "attributes") // v1beta1
			}
			judge(o, attributes.Get(sliceNameKey, "string"), seen)
		}
	}
	for _, o := range w.kinds["DeviceClass"] {
		judge(o, o.Get("spec", "extendedResourceName"), map[string]bool{})
	}
	return all
}

// sharedVariable: a container that has both resources sees the devices of one.
func sharedVariable(w *World) []Finding {
	type owner struct {
		name string
		at   manifest.Place
	}
	var all []Finding
	owners := map[string]owner{}
	for _, c := range w.configs {
		for _, pool := range c.Pools {
			if pool.Shared && !c.ours() {
				continue // that plugin sets no variable
			}
			for _, n := range pool.names() {
				for _, variable := range []string{n.Variable(), n.InfoVariable()} {
					have, ok := owners[variable]
					if !ok {
						owners[variable] = owner{n.String(), pool.Name.Place()}
					} else if have.name != n.String() {
						f := found(c.Owner, pool.Name, "%s advertises %q, whose variable %s is that of %q too", c.Owner, n,
							variable, have.name).about(n.String())
						all = append(all, f.with(have.at, "%q is advertised here", have.name))
						break
					}
				}
			}
		}
	}
	return all
}
