package check

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// right is what an agent may do with the objects of a resource.
type right struct {
	group, resource string
	verbs           []string
}

// driverRights are those that the manifest of the DRA driver has. Our other agents never ask the
// API server, and need none.
func driverRights() []right {
	return []right{
		{"resource.k8s.io", "resourceclaims", []string{"get"}},
		{"resource.k8s.io", "resourceslices", []string{"get", "list", "watch", "create", "update", "patch", "delete"}},
		{"", "nodes", []string{"get"}},
		{"", "events", []string{"create", "patch"}},
	}
}

// asksAPI says whether an agent of ours is one that asks the API server.
func (a deviceAgent) asksAPI() bool { return a.image == "kata-dra-driver" }

// account is the service account of a workload.
func (a deviceAgent) account() string {
	if name := a.Spec.Get("serviceAccountName").Text(); name != "" {
		return name
	}
	return "default"
}

// moreRights compares what bindings give to the accounts of our agents with what they need. That of
// a namespace's default account is everybody's.
func moreRights(w *World) []Finding {
	var all []Finding
	everything := w.granted(func(Ref, *manifest.Object, manifest.Value) bool { return true })
	seen := map[string]bool{}
	for _, a := range w.deviceAgents() {
		key := a.Namespace + "/" + a.account() + " " + a.image
		if !a.ours || a.account() == "default" || seen[key] {
			continue
		}
		seen[key] = true
		var needed []right
		if a.asksAPI() {
			needed = driverRights()
		}
		for _, g := range everything {
			s := g.subject
			if s.Get("kind").Text() != "ServiceAccount" || s.Get("name").Text() != a.account() ||
				accountNamespace(s, g.namespace) != a.Namespace {
				continue
			}
			if more := beyond(g.rule, needed); len(more) > 0 {
				f := found(w.ref(g.binding), s, "%s gives the account of %s the right to %s, which %s does not need", w.ref(g.binding), a.ref(),
					few(more), a.image)
				all = append(all, f.with(g.rule.Place(), "%s allows it", g.role).with(a.Object.Get("metadata", "name").Place(),
					"%s runs as it", a.ref()))
			}
		}
	}
	return all
}

// accountNamespace is that of a subject; in a RoleBinding it may be left out.
func accountNamespace(subject manifest.Value, binding string) string {
	if namespace := subject.Get("namespace").Text(); namespace != "" {
		return namespace
	}
	return binding
}

// beyond lists what a rule allows that is not needed, as VERB RESOURCE.
func beyond(rule manifest.Value, needed []right) []string {
	var all []string
	for _, url := range rule.Get("nonResourceURLs").Texts() {
		all = append(all, strings.Join(rule.Get("verbs").Texts(), ",")+" "+url)
	}
	for _, group := range rule.Get("apiGroups").Texts() {
		for _, resource := range rule.Get("resources").Texts() {
			var verbs []string
			for _, verb := range rule.Get("verbs").Texts() {
				if !slices.ContainsFunc(needed, func(r right) bool {
					return r.group == group && r.resource == resource && slices.Contains(r.verbs, verb)
				}) {
					verbs = append(verbs, verb)
				}
			}
			if len(verbs) > 0 {
				name := resource
				if group != "" {
					name += "." + group
				}
				all = append(all, strings.Join(verbs, ",")+" "+name)
			}
		}
	}
	return all
}

// tokenMounted is about the agents that never ask the API server.
func tokenMounted(w *World) []Finding {
	accounts := map[Ref]*manifest.Object{}
	for _, o := range w.kinds["ServiceAccount"] {
		accounts[w.ref(o)] = o
	}
	var all []Finding
	for _, a := range w.deviceAgents() {
		if !a.ours || a.asksAPI() {
			continue
		}
		for v := range a.Spec.Get("volumes").Each() {
			for s := range v.Get("projected", "sources").Each() {
				if at := s.Get("serviceAccountToken"); at.Exists() {
					all = append(all, foundKey(a.ref(), at, "%s gives %s a token for the API server", a.ref(), a.image))
				}
			}
		}
		ref := Ref{"ServiceAccount", a.Namespace, a.account()}
		of, mount := a.Spec.Get("automountServiceAccountToken"), manifest.Value{}
		if o := accounts[ref]; o != nil {
			mount = o.Get("automountServiceAccountToken")
		}
		if of.Text() == "false" || !of.Exists() && mount.Text() == "false" {
			continue
		}
		f := found(a.ref(), a.Container.Get("image"), "%s gives %s a token for the API server", a.ref(), a.image)
		if !of.Exists() && accounts[ref] == nil {
			f = f.as(finding.Note).because("its template says nothing, and %s is not in the input: without a word a token is mounted", ref)
		}
		all = append(all, f)
	}
	return all
}
