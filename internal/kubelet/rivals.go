package kubelet

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Rivals are the sockets of other plugins in the device plugin directory. kubelet says
// nothing when one of two plugins for one resource leaves: it goes on to believe the
// list of the one that has left. That one of these sockets dies is the only sign.
type Rivals struct {
	dir      string
	prefixes func() []string
	seen     map[string]rival
	left     time.Time
}

type rival struct {
	id    identity
	alive bool
}

// NewRivals looks at the sockets of a directory, except kubelet's own and those that prefixes
// begin: it returns those of our own sockets, which may become others.
func NewRivals(dir string, prefixes func() []string) *Rivals {
	return &Rivals{dir: dir, prefixes: prefixes, seen: map[string]rival{}}
}

// ours says whether a socket is kubelet's or our own.
func (r *Rivals) ours(name string) bool {
	return name == SocketName || slices.ContainsFunc(r.prefixes(), func(p string) bool { return isOurSocket(name, p) })
}

// Look finds out which plugins have come and gone. A socket is connected to until it is
// found alive, and again on every look if closely is set; nothing is said on it.
func (r *Rivals) Look(closely bool, now time.Time) error {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return fmt.Errorf("look for other plugins: %w", err)
	}
	next := make(map[string]rival, len(r.seen))
	for _, e := range entries {
		if e.Type()&fs.ModeSocket == 0 || r.ours(e.Name()) {
			continue
		}
		path := filepath.Join(r.dir, e.Name())
		id, err := identify(path)
		if err != nil || id == (identity{}) {
			continue
		}
		was, known := r.seen[e.Name()]
		is := rival{id: id, alive: was.alive}
		// One that was found dead may only not have listened yet.
		if !known || was.id != id || closely || !was.alive {
			is.alive = reachable(path) == nil
		}
		next[e.Name()] = is
	}
	for name, was := range r.seen {
		if is := next[name]; was.alive && (!is.alive || is.id != was.id) {
			r.left = now
		}
	}
	r.seen = next
	return nil
}

// Left is when a plugin was last seen to have left, the zero time when none was.
func (r *Rivals) Left() time.Time { return r.left }
