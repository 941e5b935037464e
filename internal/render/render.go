// Package render writes one set of manifests for either way in which pods get devices: limits of
// an extended resource, which a device plugin serves, claims of Dynamic Resource Allocation, or
// limits that a DeviceClass takes over. It changes text into text: it asks no cluster, and what it
// does not understand it leaves as it is. What cannot be said in the other way without loss is
// refused, with the reason and what to do instead.
package render

import "fmt"

// Via says how pods get the devices of a flavour.
type Via string

// The ways.
const (
	// DevicePlugin: limits of an extended resource, served by kubelet's device plugin.
	DevicePlugin Via = "device-plugin"
	// DRA: a claim for each pod, made from a ResourceClaimTemplate.
	DRA Via = "dra"
	// ExtendedResource: limits as for the device plugin, which a DeviceClass with that name takes over.
	ExtendedResource Via = "extended-resource"
)

// ParseVia reads a way by its name.
func ParseVia(s string) (Via, error) {
	switch v := Via(s); v {
	case DevicePlugin, DRA, ExtendedResource:
		return v, nil
	}
	return "", fmt.Errorf("%q is no way to get devices: write %s, %s or %s", s, DevicePlugin, DRA, ExtendedResource)
}

// File is a text with the name that problems are reported with.
type File struct {
	Name string
	Data []byte
}

// Note is something that the reader of a result should know. The result is right all the same.
type Note struct {
	File   string
	Line   int
	Object string // kind and name
	What   string
}

// String is the note in one line.
func (n Note) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", n.File, n.Line, n.Object, n.What)
}

// Result is what became of the files, in their order.
type Result struct {
	Files []File
	Notes []Note
}

// Render writes the files as the policy says. The files are one set: templates and classes in one
// of them are known in all. Every document that need not change stays as it is, byte for byte.
//
// An error is of type Problems and has everything that was refused; there is no result then, since
// half of a set would be worse than none.
func Render(files []File, p *Policy) (*Result, error) {
	s := &set{policy: p}
	for _, f := range files {
		s.read(f)
	}
	if len(s.problems) == 0 {
		s.render()
	}
	if len(s.problems) > 0 {
		return nil, s.problems.sorted()
	}
	r := &Result{Notes: s.notes}
	for i, f := range files {
		data, err := write(s.sources[i])
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", f.Name, err)
		}
		r.Files = append(r.Files, File{f.Name, data})
	}
	return r, nil
}

// render does the work on all objects, in the order in which one step needs the other: what
// claims ask is known before what limits ask is written as claims.
func (s *set) render() {
	s.index()
	var pods []*pod
	for _, o := range s.objects {
		p, ok := s.pod(o)
		if !ok {
			s.noteUnknown(o)
			continue
		}
		pods = append(pods, p)
	}
	for _, p := range pods {
		s.toLimits(p)
	}
	for _, p := range pods {
		s.toClaims(p)
		s.toClasses(p)
	}
	s.sweep(pods)
	for _, o := range s.objects {
		if !o.removed {
			s.checkFeatures(o)
		}
	}
}
