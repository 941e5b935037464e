package collect

import (
	"errors"
	"io/fs"
	"path"
	"sync"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/host"
)

// recording is a capture while a look at the node is noted in it.
type recording struct {
	mu  sync.Mutex
	c   *capture.Capture // nil when nothing is to be noted any more
	now string           // what is being read
}

// stop ends the recording, and says what is being read.
func (r *recording) stop() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.c = nil
	return r.now
}

func (r *recording) begin(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = name
}

func (r *recording) miss(what string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.c != nil {
		r.c.Miss(what, err)
	}
}

// note adds an entry, unless more is known of its path.
func (r *recording) note(e capture.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.c == nil {
		return
	}
	if was, ok := r.c.Entry(e.Path); ok && e.Unread && !was.Unread {
		return
	}
	r.c.Add(e)
}

// devRecorder notes what is examined below /dev.
type devRecorder struct {
	*recording
	dev host.DevFS
}

var _ host.DevFS = devRecorder{}

// List implements host.DevFS.
func (r devRecorder) List(dir string) (map[string]host.DevFile, error) {
	r.begin(dir)
	nodes, err := r.dev.List(dir)
	if err != nil {
		r.refused(dir, err)
		return nil, err
	}
	e := capture.Entry{Path: dir, Kind: capture.Dir}
	for name, n := range nodes {
		e.Names = append(e.Names, name)
		r.note(capture.DevEntry(path.Join(dir, name), n))
	}
	r.note(e)
	return nodes, nil
}

// Lstat implements host.DevFS.
func (r devRecorder) Lstat(name string) (host.DevFile, error) {
	r.begin(name)
	n, err := r.dev.Lstat(name)
	if err != nil {
		r.refused(name, err)
	} else {
		r.note(capture.DevEntry(name, n))
	}
	return n, err
}

func (r devRecorder) refused(name string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		r.note(capture.Entry{Path: name, Kind: capture.Absent})
		return
	}
	r.note(capture.Entry{Path: name, Kind: capture.Unknown, Failure: capture.FailureOf("lstat", err)})
}
