// Package cdispec reads CDI specs as runtimes judge them, with the place of each value. It reads texts,
// of this node or of another, on every system; package cdi writes specs, and reads those of this node
// with the library that runtimes have.
package cdispec

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"kata-device-plugin/internal/manifest"
)

// RunDir is where programs write specs, and our own have their locks.
const RunDir = "/var/run/cdi"

// Dirs are where runtimes look for specs unless they are told otherwise, in the order in which later
// ones win.
func Dirs() []string { return []string{"/etc/cdi", RunDir} }

// Named says whether runtimes take a file for a spec, by its name.
func Named(name string) bool { return path.Ext(name) == ".json" || path.Ext(name) == ".yaml" }

// Spec is the text of a spec.
type Spec struct {
	manifest.Value
	Class   string // its kind, VENDOR/CLASS
	Devices []Device
	// Err says why runtimes refuse it, and which devices there are is not to be relied on; nil when they
	// do not.
	Err error
}

// Device is a device of a spec.
type Device struct {
	manifest.Value
	Name string // VENDOR/CLASS=NAME
}

// Parse reads the text of a file.
func Parse(name string, text []byte) *Spec {
	v, err := manifest.Parse(name, text)
	if err != nil {
		return &Spec{Err: problem(err)}
	}
	s := &Spec{Value: v, Class: v.Get("kind").Text()}
	for d := range v.Get("devices").Each() {
		s.Devices = append(s.Devices, Device{d, s.Class + "=" + d.Get("name").Text()})
	}
	s.Err = s.fault()
	return s
}

// problem is a parser's error without the name of the file, which is said anyway.
func problem(err error) error {
	if p, ok := errors.AsType[manifest.Problem](err); ok && p.Line > 0 {
		return fmt.Errorf("line %d: %s", p.Line, strings.TrimSpace(p.What))
	}
	return err
}

// Edits are the containerEdits of a spec and its devices.
func (s *Spec) Edits() []manifest.Value {
	all := []manifest.Value{s.Get("containerEdits")}
	for _, d := range s.Devices {
		all = append(all, d.Get("containerEdits"))
	}
	return all
}

// fault is why runtimes refuse the spec, nil when they do not.
func (s *Spec) fault() error {
	at := func(v manifest.Value, format string, args ...any) error {
		return fmt.Errorf("line %d: "+format, append([]any{max(v.Place().Line, 1)}, args...)...)
	}
	vendor, class, _ := strings.Cut(s.Class, "/")
	switch {
	case s.Kind() != manifest.Map:
		return errors.New("it is no map")
	case !word(vendor) || !word(class):
		return at(s.Get("kind"), "the kind %q is not VENDOR/CLASS", s.Class)
	case len(s.Devices) == 0:
		return at(s.Value, "it has no devices")
	}
	names := map[string]bool{}
	for _, d := range s.Devices {
		switch name := d.Get("name").Text(); {
		case !framed(name, "-_.:"):
			return at(d.Value, "%q is no name of a device", name)
		case names[name]:
			return at(d.Value, "the device %q is there twice", name)
		case !edit(d.Get("containerEdits")):
			return at(d.Value, "the device %q edits nothing", name)
		default:
			names[name] = true
		}
	}
	if unknown := unknownKey(s.Value, schema()); unknown.Key() != "" {
		return at(unknown, "unknown key %q", unknown.Key())
	}
	if twice := keyTwice(s.Value); twice.Key() != "" {
		return at(twice, "the key %q is there twice", twice.Key())
	}
	for _, e := range s.Edits() {
		if v, why := editsFault(e); why != "" {
			return at(v, "%s", why)
		}
	}
	return s.versionFault(at)
}

const digits = "0123456789"

// word: a vendor or class begins with a letter.
func word(s string) bool { return framed(s, "-_.") && !strings.ContainsAny(s[:1], digits) }

// framed: letters and digits, and others between them.
func framed(s, between string) bool {
	const alnum = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits
	return s != "" && strings.Trim(s, alnum+between) == "" && strings.Trim(s[:1]+s[len(s)-1:], alnum) == ""
}
