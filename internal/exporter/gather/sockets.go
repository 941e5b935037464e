package gather

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/nodestate"
)

// connectTime is how long a plugin may take to accept, and again how long one that did is
// believed to listen.
const (
	connectTime = time.Second
	again       = time.Minute
)

// sockets looks which plugins listen. It connects to those of this project only, and says nothing.
type sockets struct {
	dir  string
	seen map[string]socket
}

// socket is one that was connected to.
type socket struct {
	info    fs.FileInfo
	listens nodestate.Answer
	at      time.Time
}

// read looks at all sockets. left are the resources whose plugin seems to have gone: those of it are
// not believed to listen because they did.
func (s *sockets) read(to *nodestate.Reading[[]nodestate.Socket], names []declare.Name, left map[string]bool, now time.Time) {
	entries, err := os.ReadDir(s.dir)
	if err = errors.Join(err, removed(s.dir)); err != nil {
		to.Took(nil, fmt.Errorf("look for sockets of plugins: %w", err), now)
		return
	}
	seen := map[string]socket{}
	var all []nodestate.Socket
	for _, e := range entries {
		if e.Type()&fs.ModeSocket == 0 {
			continue
		}
		one := nodestate.Socket{Name: e.Name()}
		if at := slices.IndexFunc(names, func(n declare.Name) bool { return nodestate.OwnSocket(e.Name(), n.Socket) }); at >= 0 {
			known, ok := s.ask(e, left[names[at].Resource], now)
			if !ok {
				continue // it has gone since
			}
			seen[e.Name()] = known
			one.Listens = known.listens
		}
		all = append(all, one)
	}
	s.seen = seen
	to.Took(all, nil, now)
}

// ask finds out whether somebody listens at a socket, if that is not known.
func (s *sockets) ask(e fs.DirEntry, anew bool, now time.Time) (socket, bool) {
	info, err := e.Info()
	if err != nil {
		return socket{}, false
	}
	known, ok := s.seen[e.Name()]
	if ok && !anew && known.listens == nodestate.Yes && same(info, known.info) && now.Sub(known.at) < again {
		return known, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", filepath.Join(s.dir, e.Name()))
	one := socket{info: info, at: now}
	switch {
	case err == nil:
		_ = conn.Close() // nothing was said
		one.listens = nodestate.Yes
	case errors.Is(err, unix.ECONNREFUSED):
		one.listens = nodestate.No
	case errors.Is(err, unix.ENOENT):
		return socket{}, false
	default: // nobody let it in, or too many were before it: somebody may listen
	}
	return one, true
}
