package cdispec

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/manifest"
)

// Versions are the versions of CDI, the oldest first.
func Versions() []string {
	return []string{"0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"}
}

// Version is the declared version as an index of Versions, -1 for one that is not known.
func (s *Spec) Version() int {
	return slices.Index(Versions(), strings.TrimPrefix(s.Get("cdiVersion").Text(), "v"))
}

// versionFault: a spec must declare a version that has what it uses.
func (s *Spec) versionFault(at func(manifest.Value, string, ...any) error) error {
	declared := s.Get("cdiVersion")
	if s.Version() < 0 {
		return at(declared, "cdiVersion %q is not known", declared.Text())
	}
	needed, why := "0.3.0", manifest.Value{}
	need := func(version string, v manifest.Value) {
		if v.Exists() && slices.Index(Versions(), version) > slices.Index(Versions(), needed) {
			needed, why = version, v
		}
	}
	need("0.6.0", s.Get("annotations"))
	if _, class, _ := strings.Cut(s.Class, "/"); strings.Contains(class, ".") {
		need("0.6.0", s.Get("kind"))
	}
	for _, d := range s.Devices {
		need("0.6.0", d.Get("annotations"))
		if name := d.Get("name"); strings.ContainsAny(name.Text()[:1], digits) {
			need("0.5.0", name)
		}
	}
	for _, e := range s.Edits() {
		need("0.7.0", e.Get("intelRdt"))
		need("0.7.0", e.Get("additionalGids"))
		need("1.1.0", e.Get("netDevices"))
		for n := range e.Get("deviceNodes").Each() {
			need("0.5.0", n.Get("hostPath"))
		}
		for m := range e.Get("mounts").Each() {
			need("0.4.0", m.Get("type"))
		}
	}
	if why.Exists() && s.Version() < slices.Index(Versions(), needed) {
		return at(why, "it uses what is there from version %s on, and declares %s", needed, declared.Text())
	}
	return nil
}
