package check

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// grant is that a binding lets a subject do what a rule of a role says.
type grant struct {
	binding *manifest.Object
	subject manifest.Value
	rule    manifest.Value
	role    Ref
	// namespace is the only one in which it counts, "" for all.
	namespace string
}

// grants lists what others than administrators may do. Who may do everything is one, and so is
// what belongs to the control plane.
func (w *World) grants() []grant {
	return w.granted(func(ref Ref, role *manifest.Object, subject manifest.Value) bool {
		return !administers(ref, role) && !controlPlane(subject)
	})
}

// granted lists what bindings allow of which the roles are in the input.
func (w *World) granted(counts func(Ref, *manifest.Object, manifest.Value) bool) []grant {
	roles := map[Ref]*manifest.Object{}
	for _, kind := range []string{"ClusterRole", "Role"} {
		for _, o := range w.kinds[kind] {
			roles[w.ref(o)] = o
		}
	}
	var all []grant
	for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
		for _, b := range w.kinds[kind] {
			namespace := w.namespace(b)
			ref := Ref{b.Get("roleRef", "kind").Text(), "", b.Get("roleRef", "name").Text()}
			if ref.Kind == "Role" {
				ref.Namespace = namespace
			}
			role := roles[ref]
			if role == nil {
				continue
			}
			for subject := range b.Get("subjects").Each() {
				for rule := range role.Get("rules").Each() {
					if counts(ref, role, subject) {
						all = append(all, grant{b, subject, rule, ref, namespace})
					}
				}
			}
		}
	}
	return all
}

func administers(ref Ref, role *manifest.Object) bool {
	for rule := range role.Get("rules").Each() {
		if all := func(key string) bool { return slices.Contains(rule.Get(key).Texts(), "*") }; all("verbs") &&
			all("resources") &&
			all("apiGroups") {
			return true
		}
	}
	return ref.Name == "cluster-admin" || ref.Name == "admin" || strings.HasPrefix(ref.Name, "system:")
}

// controlPlane says whether a subject is a part of Kubernetes. The groups of everybody and of all
// service accounts begin with system:, too.
func controlPlane(subject manifest.Value) bool {
	name := subject.Get("name").Text()
	everybody := []string{"system:authenticated", "system:unauthenticated", "system:anonymous"}
	return strings.HasPrefix(name, "system:") && !strings.HasPrefix(name, "system:serviceaccount") &&
		!slices.Contains(everybody, name)
}

// allows says whether the rule lets objects of a resource be changed.
func (g grant) allows(group, resource string, verbs ...string) bool {
	has := func(key, value string) bool {
		return slices.ContainsFunc(g.rule.Get(key).Texts(), func(s string) bool { return s == value || s == "*" })
	}
	return has("apiGroups", group) && has("resources", resource) &&
		slices.ContainsFunc(verbs, func(verb string) bool { return has("verbs", verb) })
}

// who is the subject for people.
func (g grant) who() string {
	kind, name := g.subject.Get("kind").Text(), g.subject.Get("name").Text()
	if kind == "ServiceAccount" {
		name = g.subject.Get("namespace").Text() + "/" + name
	}
	return strings.ToLower(kind) + " " + name
}

// user is a workload of the input that runs as the subject, or nil.
func (g grant) user(w *World, is func(*Workload) bool) *Workload {
	if g.subject.Get("kind").Text() != "ServiceAccount" {
		return nil
	}
	namespace, name := g.subject.Get("namespace").Text(), g.subject.Get("name").Text()
	for _, p := range w.workloads {
		account := p.Spec.Get("serviceAccountName").Text()
		if p.Template && p.Namespace == namespace && account == name && is(p) {
			return p
		}
	}
	return nil
}

func (g grant) found(w *World, format string, args ...any) Finding {
	f := found(w.ref(g.binding), g.subject, format, args...)
	f = f.with(g.rule.Place(), "%s allows it", g.role)
	if p := g.user(w, func(*Workload) bool { return true }); p != nil {
		f = f.as(finding.Note).with(p.Object.Get("metadata", "name").Place(),
			"%s runs as it: look whether it needs to", p.ref())
	}
	return f
}

func mayWriteClasses(w *World) []Finding {
	var all []Finding
	for _, g := range w.grants() {
		if g.namespace == "" && g.allows("resource.k8s.io", "deviceclasses", "create", "update", "patch") {
			all = append(all, g.found(w, "%s may change device classes", g.who()))
		}
	}
	return all
}

// mayWriteSlices leaves out drivers: who registers with kubelet publishes as well.
func mayWriteSlices(w *World) []Finding {
	var all []Finding
	registers := func(p *Workload) bool { return slices.ContainsFunc(hostPaths(p), registryPath) }
	for _, g := range w.grants() {
		if g.namespace == "" && g.allows("resource.k8s.io", "resourceslices", "create", "update", "patch") &&
			g.user(w, registers) == nil {
			all = append(all, g.found(w, "%s may change resource slices", g.who()))
		}
	}
	return all
}

// mayConfigure is about the ConfigMaps that plugins read.
func mayConfigure(w *World) []Finding {
	var all []Finding
	grants := w.grants()
	seen := map[Ref]bool{}
	for _, c := range w.configs {
		if c.Object.Kind != "ConfigMap" || seen[c.Owner] {
			continue
		}
		seen[c.Owner] = true
		for _, g := range grants {
			if g.namespace != "" && g.namespace != c.Owner.Namespace || !g.allows("", "configmaps", "update", "patch") {
				continue
			}
			names := g.rule.Get("resourceNames")
			if names.Len() > 0 && !slices.Contains(names.Texts(), c.Owner.Name) {
				continue
			}
			f := g.found(w, "%s may change %s, which configures a device plugin", g.who(), c.Owner)
			all = append(all, f.with(c.At.KeyPlace(), "the configuration"))
		}
	}
	return all
}
