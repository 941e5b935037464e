// Package finding is the catalogue of what can be wrong: why a function is not
// declared, why a device is unhealthy, why a program is not ready. Logs, readiness,
// metrics and the command line render the same values.
package finding

import (
	"slices"
	"strings"
)

// Severity says who has to act.
type Severity uint8

// The severities.
const (
	// Note: as intended; said so that nobody has to guess.
	Note Severity = iota
	// Warning: something is less than it could be.
	Warning
	// Error: a device or a program does not do its work.
	Error
)

// String is the lower-case name.
func (s Severity) String() string {
	switch s {
	case Note:
		return "note"
	case Warning:
		return "warning"
	case Error:
		return "error"
	}
	return "unknown"
}

// Evidence is one fact that a finding rests on: where it was read, and what was there.
type Evidence struct {
	Path  string // a file of the host, or another source in words
	Value string
}

// Finding is one thing that is wrong with one subject. Findings are comparable by Key.
type Finding struct {
	Kind
	// Resource and Device name the subject, as far as there is one. A device is a
	// PCI address, or the name of an entry that is no PCI function.
	Resource, Device string
	Evidence         []Evidence
}

// New makes a finding of a kind about a device.
func New(k Kind, device string, evidence ...Evidence) Finding {
	return Finding{Kind: k, Device: device, Evidence: evidence}
}

// For sets the resource.
func (f Finding) For(resource string) Finding {
	f.Resource = resource
	return f
}

// Key tells findings apart: the kind, the subject and the evidence. As long as it
// stays, nothing has changed that would be worth another line in the log.
func (f Finding) Key() string {
	parts := []string{f.ID, f.Resource, f.Device}
	for _, e := range f.Evidence {
		parts = append(parts, e.Path, e.Value)
	}
	return strings.Join(parts, "\x00")
}

// Reason is the finding in one line: what is the case, and the evidence.
func (f Finding) Reason() string {
	var b strings.Builder
	b.WriteString(f.Title)
	for i, e := range f.Evidence {
		if i == 0 {
			b.WriteString(": ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(e.Path)
		if e.Value != "" {
			b.WriteString(" = " + e.Value)
		}
	}
	return b.String()
}

// String is the finding in one line, with its ID.
func (f Finding) String() string { return f.ID + " " + f.Reason() }

// Sort orders findings by subject and ID.
func Sort(fs []Finding) {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return strings.Compare(a.Device+"\x00"+a.Resource+"\x00"+a.ID, b.Device+"\x00"+b.Resource+"\x00"+b.ID)
	})
}
