// Package capture holds a node in one text file: what a look at it read, and what else is asked
// about when something is wrong with it. A capture is replayed in the place of the node, on any
// system. It is never unpacked, since not every file system takes the colons of PCI addresses.
//
// A capture says itself what it lacks. What was not read is an error of its own to whoever asks
// for it, and never the answer that it does not exist.
package capture

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"kata-device-plugin/internal/host"
)

// ErrNotCaptured is the error for what a capture knows nothing of.
var ErrNotCaptured = errors.New("not in the capture")

// Meta is what a capture is of. Fields may be empty: not known.
type Meta struct {
	Time       time.Time // when it was taken
	Tool       string    // what took it, with its version
	Hostname   string
	Kernel     string    // release
	Boot       string    // ID of the boot
	Started    time.Time // when the kernel was
	Kubelet    string    // version
	KubeletDir string    // root directory
	// Redacted says that names were replaced.
	Redacted bool
}

// Missing is something that could not be read as a whole, and why.
type Missing struct{ What, Why string }

// Capture is a captured node. Once it is made it is not changed any more, and may be shared.
type Capture struct {
	Meta    Meta
	Missing []Missing
	// Links are nil where they were not read. LinksErr then says why, if it was tried.
	Links    *host.Links
	LinksErr string

	entries map[string]*Entry
	implied map[string]bool // directories that are on the way to an entry
}

// New is a capture without entries.
func New(meta Meta) *Capture {
	return &Capture{Meta: meta, entries: map[string]*Entry{}, implied: map[string]bool{"/": true}}
}

// Add notes an entry, in the place of an earlier one of its path. It is for whoever makes a
// capture, before it is shared.
func (c *Capture) Add(e Entry) {
	if e.Kind == Dir {
		slices.Sort(e.Names)
	}
	c.entries[e.Path] = &e
	for dir := path.Dir(e.Path); !c.implied[dir]; dir = path.Dir(dir) {
		c.implied[dir] = true
	}
}

// Miss notes that something could not be read.
func (c *Capture) Miss(what string, why error) {
	c.Missing = append(c.Missing, Missing{what, strings.Join(strings.Fields(why.Error()), " ")})
}

// Entry finds what is known of a path, without following links.
func (c *Capture) Entry(name string) (*Entry, bool) {
	e, ok := c.entries[name]
	return e, ok
}

// Entries are all entries, each directory before what is in it.
func (c *Capture) Entries() []*Entry {
	all := make([]*Entry, 0, len(c.entries))
	for _, e := range c.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *Entry) int { return byPath(a.Path, b.Path) })
	return all
}

// Files are the entries of a directory, sorted by name: its CDI specs, its sockets. A directory
// that does not exist is fs.ErrNotExist, one that was not listed ErrNotCaptured. Names that
// nobody examined are entries of the kind Other without a type.
func (c *Capture) Files(dir string) ([]*Entry, error) {
	at, e, err := c.find("open", dir, true)
	if err != nil {
		return nil, err
	}
	names, err := e.list(dir)
	if err != nil {
		return nil, err
	}
	all := make([]*Entry, 0, len(names))
	for _, name := range names {
		one, ok := c.entries[path.Join(at, name)]
		if !ok {
			one = &Entry{Path: path.Join(at, name), Kind: Other, Unread: true}
		}
		all = append(all, one)
	}
	return all, nil
}

// byPath compares paths so that what is in a directory comes right behind it.
func byPath(a, b string) int {
	for a != "" && b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, "/")
		y, b, _ = strings.Cut(b, "/")
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}
