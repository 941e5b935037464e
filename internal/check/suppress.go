package check

import (
	"fmt"
	"slices"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// ignoreKey is the annotation of an object with the IDs that are accepted of it.
const ignoreKey = "katacontainers.io/ignore"

// Ignore is a finding that somebody accepts.
type Ignore struct {
	ID string
	// Object is the identity as findings show it, for example "pod default/app"; or with the kind in capitals,
	// as manifests have it.
	Object string
	Reason string
}

// ReadIgnores reads a file of them: a list of maps with id, object and reason. A reason is
// wanted, since nobody remembers one.
func ReadIgnores(name string, data []byte) ([]Ignore, error) {
	root, err := manifest.Parse(name, data)
	if err != nil {
		return nil, fmt.Errorf("read accepted findings: %w", err)
	}
	if root.Kind() != manifest.List {
		return nil, manifest.Problem{Place: manifest.Place{File: name, Line: 1, Column: 1},
			What: "is not a list of maps with id, object and reason"}
	}
	var all []Ignore
	ids := findingIDs()
	for item := range root.Each() {
		i := Ignore{item.Get("id").Text(), item.Get("object").Text(), item.Get("reason").Text()}
		for _, key := range []string{"id", "object", "reason"} {
			if item.Get(key).Text() == "" {
				return nil, manifest.Problem{Place: item.Place(), What: key + " is missing; write id, object and reason"}
			}
		}
		if !slices.Contains(ids, i.ID) {
			return nil, manifest.Problem{Place: item.Get("id").Place(),
				What: fmt.Sprintf("there is no finding %q; write an ID as findings show it, such as NAM004", i.ID)}
		}
		all = append(all, i)
	}
	return all, nil
}

// ignored says who accepts a finding, "" when nobody does.
func (w *World) ignored(f Finding) string {
	for _, i := range w.o.Ignore {
		if i.ID == f.ID && strings.EqualFold(i.Object, f.Object.String()) {
			return i.Reason
		}
	}
	if slices.Contains(w.accepted[f.Object], f.ID) {
		return "annotation " + ignoreKey
	}
	return ""
}

// findingIDs are those that can be accepted, sorted.
func findingIDs() []string {
	var all []string
	for _, k := range finding.Catalogue() {
		all = append(all, k.ID)
	}
	slices.Sort(all)
	return all
}

// acceptedBy are the IDs in the annotation of an object.
func acceptedBy(o *manifest.Object) []string {
	var all []string
	for id := range strings.SplitSeq(o.Annotation(ignoreKey).Text(), ",") {
		if id = strings.TrimSpace(id); id != "" {
			all = append(all, id)
		}
	}
	return all
}

// findAccepted reads the annotations.
func (w *World) findAccepted() map[Ref][]string {
	all := map[Ref][]string{}
	for _, o := range w.set.Objects {
		if ids := acceptedBy(o); len(ids) > 0 {
			all[w.ref(o)] = append(all[w.ref(o)], ids...)
		}
	}
	return all
}

// acceptsNothing is about annotations. A file of accepted findings that names what does not exist is refused; an
// object is what somebody has sent, and the rest of it is worth looking at.
func acceptsNothing(w *World) []Finding {
	var all []Finding
	known := findingIDs()
	for _, o := range w.objects {
		for _, id := range acceptedBy(o) {
			if slices.Contains(known, id) {
				continue
			}
			at := o.Annotation(ignoreKey)
			f := found(w.ref(o), at, "the annotation %s of %s names the finding %q, which there is not", ignoreKey, w.ref(o), id)
			if upper := strings.ToUpper(id); slices.Contains(known, upper) {
				f = f.advise("write %s", upper)
			}
			all = append(all, f)
		}
	}
	return all
}
