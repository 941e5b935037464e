package capture

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The first line of a capture. A version that an older reader would misunderstand is a higher one.
const (
	magic   = "katacontainers.io/capture"
	version = 1
)

// unread is the word for what nobody asked for.
const unread = "unread"

// WriteTo implements io.WriterTo. The same capture gives the same text, with one line for each
// entry, and texts of several lines as they are, so that two captures can be compared with diff.
func (c *Capture) WriteTo(to io.Writer) (int64, error) {
	w := &writer{to: bufio.NewWriter(to)}
	w.line(magic, strconv.Itoa(version))
	w.meta(&c.Meta)
	missing := slices.Clone(c.Missing)
	slices.SortFunc(missing, func(a, b Missing) int {
		return cmp.Or(strings.Compare(a.What, b.What), strings.Compare(a.Why, b.Why))
	})
	for _, m := range slices.Compact(missing) {
		w.line("missing", word(m.What), strconv.Quote(m.Why))
	}
	w.links(c)
	for _, e := range c.Entries() {
		if e.Kind != Absent || !c.unlisted(e.Path) { // or its directory says so
			w.entry(e)
		}
	}
	if w.err == nil {
		w.err = w.to.Flush()
	}
	if w.err != nil {
		return w.n, fmt.Errorf("write capture: %w", w.err)
	}
	return w.n, nil
}

// writer keeps the first error.
type writer struct {
	to  *bufio.Writer
	n   int64
	err error
}

func (w *writer) text(s string) {
	if w.err == nil {
		var n int
		n, w.err = w.to.WriteString(s)
		w.n += int64(n)
	}
}

// line writes words, leaving out those that are empty.
func (w *writer) line(words ...string) {
	w.text(strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), " ") + "\n")
}

func (w *writer) meta(m *Meta) {
	for _, f := range m.fields() {
		if *f.text != "" {
			w.line("meta", f.name, word(*f.text))
		}
	}
	if !m.Time.IsZero() {
		w.line("meta", "time", m.Time.UTC().Format(time.RFC3339))
	}
	if !m.Started.IsZero() {
		w.line("meta", "started", m.Started.UTC().Format(time.RFC3339))
	}
	if m.Redacted {
		w.line("meta", "redacted", "yes")
	}
}

type metaField struct {
	name string
	text *string
}

// fields are the texts of a capture's description.
func (m *Meta) fields() []metaField {
	return []metaField{
		{"tool", &m.Tool}, {"hostname", &m.Hostname}, {"kernel", &m.Kernel}, {"boot", &m.Boot},
		{"kubelet", &m.Kubelet}, {"kubelet-dir", &m.KubeletDir},
	}
}

func (w *writer) links(c *Capture) {
	switch {
	case c.LinksErr != "":
		w.line("links", strconv.Quote(c.LinksErr))
		return
	case c.Links == nil:
		return
	}
	w.line("links", "complete")
	for _, index := range sortedKeys(c.Links.Links) {
		l := c.Links.Links[index]
		w.line("link", strconv.Itoa(index), word(l.Name), attribute("kind", l.Kind),
			number("master", l.Master), number("lower", l.Lower))
	}
	for _, d := range c.Links.Defaults {
		w.line("default", strconv.Itoa(d.Index), word(d.Family), strconv.Itoa(d.Table))
	}
}

func (w *writer) entry(e *Entry) {
	words := []string{string(e.Kind), word(e.Path)}
	if e.Perm != nil {
		words = append(words, fmt.Sprintf("mode=%04o", e.Perm.Mode), fmt.Sprintf("owner=%d:%d", e.Perm.UID, e.Perm.GID))
	}
	words = append(words, attribute("label", e.Label))
	if !e.Modified.IsZero() {
		words = append(words, attribute("modified", e.Modified.UTC().Format(time.RFC3339)))
	}
	words = append(words, attribute("state", e.State))
	var block string
	switch {
	case e.Failure != nil:
		words = append(words, attribute("op", e.Failure.Op), attribute("errno", e.Failure.Name),
			attribute("text", e.Failure.Text))
	case e.Unread:
		words = append(words, unread)
	case e.Kind == Dir:
		var lines strings.Builder
		for _, name := range e.Names {
			lines.WriteString("\t" + word(name) + "\n")
		}
		block = lines.String()
	case e.Kind == File || e.Kind == Lock:
		var text string
		text, block = content(string(e.Text))
		words = append(words, text)
	case e.Kind == Symlink && e.Target == unread:
		words = append(words, strconv.Quote(e.Target))
	case e.Kind == Symlink:
		words = append(words, word(e.Target))
	case e.Kind == Node:
		words = append(words, map[bool]string{false: "char", true: "block"}[e.Block], fmt.Sprintf("%d:%d", e.Major, e.Minor))
	}
	w.line(words...)
	w.text(block)
}

// content is a text as one quoted word, or as a block if it has several lines that can be read.
func content(text string) (in, block string) {
	body, whole := strings.CutSuffix(text, "\n")
	if !strings.Contains(body, "\n") || !readable(text) {
		return strconv.Quote(text), ""
	}
	in = "text"
	if !whole {
		in = "text-without-end"
	}
	return in, "\t" + strings.ReplaceAll(body, "\n", "\n\t") + "\n"
}

// readable says whether a text looks the same when it is copied.
func readable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && !unicode.IsPrint(r)
	})
}

// word is a text as one word of a line, quoted where it has to be.
func word(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '=' }) {
		return strconv.Quote(s)
	}
	return s
}

// attribute is a word with a name, and nothing where it is empty.
func attribute(name, value string) string {
	if value == "" {
		return ""
	}
	return name + "=" + word(value)
}

func number(name string, n int) string {
	if n == 0 {
		return ""
	}
	return name + "=" + strconv.Itoa(n)
}
