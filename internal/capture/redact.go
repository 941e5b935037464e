package capture

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/host"
)

// Redact is a capture without the names of the node, of namespaces, pods, containers and claims,
// without UIDs and UUIDs, and without the addresses that Mask masks. The same name becomes the
// same word everywhere, and with the same salt in every capture: whoever has the salt can find
// out whether a word stands for a name, nobody else can. PCI addresses, drivers, names of
// resources and interfaces stay.
func Redact(c *Capture, salt []byte) *Capture {
	r := newRedactor(c, salt)
	to := New(c.Meta)
	to.Meta.Redacted = true
	to.Meta.Hostname = r.alias(c.Meta.Hostname)
	to.Meta.Boot = r.always(c.Meta.Boot)
	for _, m := range c.Missing {
		to.Missing = append(to.Missing, Missing{What: r.path(m.What), Why: r.free(m.Why)})
	}
	to.Links, to.LinksErr = r.links(c.Links), r.free(c.LinksErr)
	for _, e := range c.entries {
		to.Add(r.entry(e))
	}
	Mask(to)
	return to
}

// path replaces names in the elements of a path.
func (r *redactor) path(name string) string {
	if isHardware(name) || strings.HasPrefix(name, "/.capture/") {
		return r.always(name)
	}
	elems := strings.Split(name, "/")
	for i := range elems {
		elems[i] = r.element(elems[i])
	}
	return strings.Join(elems, "/")
}

// element replaces names in the name of a file. The directories that every node has, and the
// files that this project makes, stay.
func (r *redactor) element(name string) string {
	if name = r.always(name); r.fixed[name] || strings.HasPrefix(name, "kata.") {
		return name
	}
	return r.spoken(name)
}

func (r *redactor) entry(old *Entry) Entry {
	e := *old
	e.Path = r.path(old.Path)
	hardware := isHardware(old.Path)
	change := r.element
	if hardware {
		change = r.always
	}
	e.Names = slices.Clone(old.Names)
	for i := range e.Names {
		e.Names[i] = change(e.Names[i])
	}
	if e.Target != "" {
		e.Target = r.path(e.Target)
		if hardware {
			e.Target = r.always(old.Target)
		}
	}
	e.State, e.Label = r.free(old.State), r.free(old.Label)
	if old.Failure != nil {
		failure := *old.Failure
		failure.Text = r.free(failure.Text)
		e.Failure = &failure
	}
	if len(old.Text) > 0 {
		e.Text = r.content(old)
	}
	return e
}

// content replaces names in a file.
func (r *redactor) content(e *Entry) []byte {
	switch {
	case path.Base(e.Path) == "phys_switch_id": // of some cards, made of their serial number
		id := strings.TrimSpace(string(e.Text))
		return []byte(r.digest(id)[:max(2, min(len(id), 64))] + "\n")
	case isHardware(e.Path):
		return []byte(r.always(string(e.Text)))
	case isClaim(e.Path):
		return r.sealed(e.Text)
	case isRecord(e.Path):
		return r.json(e.Text, true)
	case strings.HasSuffix(e.Path, ".json"):
		return r.json(e.Text, false)
	}
	return []byte(r.free(string(e.Text)))
}

// sealed replaces names in a record of a claim. Its first line is a checksum of the rest (package
// claim): where that was right, it is right again.
func (r *redactor) sealed(text []byte) []byte {
	end := bytes.IndexByte(text, '\n') + 1
	seal := func(body []byte) []byte { return fmt.Appendf(nil, "sha256:%x %d\n", sha256.Sum256(body), len(body)) }
	body := r.json(text[end:], true)
	if bytes.Equal(text[:end], seal(text[end:])) {
		return append(seal(body), body...)
	}
	return append(slices.Clone(text[:end]), body...)
}

// links replaces what an interface's name may say.
func (r *redactor) links(old *host.Links) *host.Links {
	if old == nil {
		return nil
	}
	to := &host.Links{Links: maps.Clone(old.Links), Defaults: slices.Clone(old.Defaults)}
	for index, l := range to.Links {
		l.Name = r.always(l.Name)
		to.Links[index] = l
	}
	return to
}
