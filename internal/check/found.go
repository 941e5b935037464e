package check

import (
	"fmt"
	"slices"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// Ref is the identity of an object, which stays when files move.
type Ref struct{ Kind, Namespace, Name string }

// String is the identity as people say it: a network is what pods attach.
func (r Ref) String() string {
	kind := strings.ToLower(r.Kind)
	if r.Kind == networkKind {
		kind = "network"
	}
	if r.Namespace == "" {
		return strings.TrimSpace(kind + " " + r.Name)
	}
	return kind + " " + r.Namespace + "/" + r.Name
}

// Related is another place that has to do with a finding.
type Related struct {
	Place manifest.Place
	Text  string
}

// Finding is one thing that is wrong with an object.
type Finding struct {
	finding.Kind
	Place manifest.Place
	// Object is empty for what is about an input as such.
	Object Ref
	// Resource is the canonical name that it is about, "" when it is about none.
	Resource string
	Message  string
	Related  []Related
	Evidence []string
	// Help is one piece of advice.
	Help string
	// Ignored says who accepts the finding, "" when nobody does.
	Ignored string

	severity *finding.Severity // where it is not the kind's
}

// with adds a related place.
func (f Finding) with(at manifest.Place, format string, args ...any) Finding {
	f.Related = append(slices.Clip(f.Related), Related{at, fmt.Sprintf(format, args...)})
	return f
}

// because adds evidence without a place.
func (f Finding) because(format string, args ...any) Finding {
	f.Evidence = append(slices.Clip(f.Evidence), fmt.Sprintf(format, args...))
	return f
}

// advise sets the advice.
func (f Finding) advise(format string, args ...any) Finding {
	f.Help = fmt.Sprintf(format, args...)
	return f
}

// about sets the resource.
func (f Finding) about(resource string) Finding { f.Resource = resource; return f }

// as sets a severity that is not the kind's: what the input proves decides.
func (f Finding) as(s finding.Severity) Finding { f.severity = &s; return f }

// found begins a finding at the beginning of a value.
func found(o Ref, at manifest.Value, format string, args ...any) Finding {
	return placed(o, at.Place(), at.Path(), format, args...)
}

// foundKey begins a finding at a value's key.
func foundKey(o Ref, at manifest.Value, format string, args ...any) Finding {
	return placed(o, at.KeyPlace(), at.Path(), format, args...)
}

// placed begins a finding at a place. A path is for what has no place of its own.
func placed(o Ref, at manifest.Place, path, format string, args ...any) Finding {
	message := fmt.Sprintf(format, args...)
	if path != "" {
		message += " (at " + path + ")"
	}
	return Finding{Object: o, Place: at, Message: strings.TrimSpace(message)}
}
