package preflight

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// Move is an extended resource that is to be left behind.
type Move struct {
	Resource string
	// Class is the DeviceClass whose claims are to be in its place, "" where that is not decided.
	Class string
}

// ParseMove reads RESOURCE or RESOURCE=CLASS.
func ParseMove(text string) (Move, error) {
	resource, class, with := strings.Cut(text, "=")
	name := regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*/[a-zA-Z0-9][a-zA-Z0-9._-]*$`)
	if !name.MatchString(resource) || with && class == "" {
		return Move{}, fmt.Errorf("%q is no extended resource: write nvidia.com/gpu, or "+
			"nvidia.com/gpu=gpu.vfio.katacontainers.io", text)
	}
	return Move{resource, class}, nil
}

// Users are workloads of a kind in a namespace that ask for a resource.
type Users struct {
	Kind, Namespace string
	Count           int
	// Example is the name of one.
	Example string
}

// Moved is what depends on the name of a resource.
type Moved struct {
	Move
	// Lacks says that the class is not there, "" where it is or none is named.
	Lacks      string
	Users      []Users
	Dependents []check.Finding
}

// move looks through all objects. Workloads are counted, everything else is named place by place.
func (s *survey) move(m Move) Moved {
	moved := Moved{Move: m, Lacks: s.lacks(m.Class)}
	spelled := spellings(m.Resource)
	users := map[Users]*Users{}
	for _, p := range s.View.Workloads() {
		if p.Want(m.Resource) == nil || p.Live && ended(p) {
			continue
		}
		key := Users{Kind: p.Ref().Kind, Namespace: p.Namespace}
		if users[key] == nil {
			users[key] = &Users{Kind: key.Kind, Namespace: key.Namespace, Example: p.Ref().Name}
		}
		users[key].Count++
	}
	for _, u := range users {
		moved.Users = append(moved.Users, *u)
	}
	slices.SortFunc(moved.Users, func(a, b Users) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind))
	})
	for _, o := range s.View.AllObjects() {
		if !searched(o) {
			continue
		}
		f := finder{about: m, spelled: spelled, of: s.View.RefOf(o), advice: adviceFor(o, m)}
		f.look(o.Value, "")
		moved.Dependents = append(moved.Dependents, f.found...)
	}
	return moved
}

// lacks says that a class is not in the input.
func (s *survey) lacks(class string) string {
	switch is := s.View.Object(check.Ref{Kind: "DeviceClass", Name: class}) != nil; {
	case class == "" || is:
		return ""
	case s.View.Complete("DeviceClass"):
		return fmt.Sprintf("the cluster has no DeviceClass %s: make it before you migrate", class)
	}
	return fmt.Sprintf("the input has no DeviceClass %s", class)
}

func ended(p *check.Workload) bool { return p.Phase() == "Succeeded" || p.Phase() == "Failed" }

// searched: workloads are counted, and what the cluster itself writes follows by itself.
func searched(o *manifest.Object) bool {
	switch o.Kind {
	case "Pod", "Node", "Event", "ResourceSlice", "ResourceClaim", "CustomResourceDefinition", "Deployment", "DaemonSet",
		"StatefulSet", "ReplicaSet", "ReplicationController", "Job", "CronJob", "ControllerRevision":
		return false
	}
	return true
}

// spellings find a name in texts: as it is, with a prefix such as requests., in a JSON pointer, in a
// regular expression, and as kube-state-metrics has it in a label.
func spellings(resource string) *regexp.Regexp {
	quote := regexp.QuoteMeta
	under := regexp.MustCompile(`[^a-zA-Z0-9]`).ReplaceAllString(resource, "_")
	prefix, base, _ := strings.Cut(resource, "/")
	dots := strings.ReplaceAll(quote(prefix), `\.`, `(?:\.|\\+\.)`)
	plain := `(?:^|[^a-zA-Z0-9_/-])(?:` + dots + `(?:/|\\+/)` + quote(base) + `|` + quote(under) + `)`
	pointer := `(?:^|[^a-zA-Z0-9_-])` + quote(prefix+"~1"+base)
	return regexp.MustCompile(`(?:` + plain + `|` + pointer + `)(?:[^a-zA-Z0-9._/-]|\.?$|\.[^a-zA-Z0-9])`)
}

// finder goes through an object and notes where a name is.
type finder struct {
	about   Move
	spelled *regexp.Regexp
	of      check.Ref
	advice  string
	found   []check.Finding
}

// look goes down. What an object says of its own state is no wish.
func (f *finder) look(v manifest.Value, path string) {
	for e := range v.Entries() {
		at := join(path, e.Key())
		if path == "" && e.Key() == "status" || at == "metadata.managedFields" ||
			strings.HasSuffix(at, "last-applied-configuration") {
			continue
		}
		if f.spelled.MatchString(e.Key()) {
			f.note(e.KeyPlace(), at, "")
		}
		f.value(e, at)
	}
	i := 0
	for e := range v.Each() {
		f.value(e, fmt.Sprintf("%s[%d]", path, i))
		i++
	}
}

// value looks into a value. A text that is a document of its own, such as a dashboard, is searched line
// by line: its places are those of the text.
func (f *finder) value(v manifest.Value, path string) {
	if v.Kind() == manifest.Map || v.Kind() == manifest.List {
		f.look(v, path)
		return
	}
	text := v.Text()
	if !f.spelled.MatchString(text) {
		return
	}
	if !strings.Contains(text, "\n") {
		f.note(v.Place(), path, "")
		return
	}
	for i, line := range strings.Split(text, "\n") {
		if f.spelled.MatchString(line) {
			f.note(v.Inside(i+1, 1), fmt.Sprintf("%s, line %d", path, i+1), strings.TrimSpace(line))
		}
	}
}

// note adds a dependent.
func (f *finder) note(at manifest.Place, path, line string) {
	const most = 120
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + " ..."
	}
	one := check.Finding{Kind: finding.NameUsed(), Place: at, Object: f.of, Resource: f.about.Resource, Help: f.advice,
		Message: fmt.Sprintf("%s names %q in %s", f.of, f.about.Resource, path)}
	if line != "" {
		one.Evidence = []string{line}
	}
	f.found = append(f.found, one)
}

// join is the path to a key.
func join(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./"):
		return fmt.Sprintf("%s[%q]", path, key)
	case path == "":
		return key
	}
	return path + "." + key
}
