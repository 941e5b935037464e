// Package watch says when to look again. It tells nothing of what has changed: events
// may be lost, doubled or late, and a look finds out by itself.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watcher watches directories that come and go.
type Watcher struct {
	notify *fsnotify.Watcher
	dirs   []string
	armed  map[string]identity // by path, what is being watched there
}

// identity is the directory that was at a path when its watch was placed.
type identity struct{ dev, ino uint64 }

// New prepares to watch dirs, none of which has to exist. It fails where inotify is
// exhausted (fs.inotify.max_user_instances), which is common on busy nodes.
func New(dirs ...string) (*Watcher, error) {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("start inotify: %w", err)
	}
	return &Watcher{notify: n, dirs: dirs, armed: map[string]identity{}}, nil
}

// Close ends the watch.
func (w *Watcher) Close() error { return w.notify.Close() }

// Arm places the watches for what is there now. It has to be called before each look:
// what comes after it is an event, what came before it is found by the look.
//
// A directory that does not exist is watched for in its nearest parent. One that was
// replaced is watched anew: the kernel ends a watch when its directory is removed, but
// says nothing when somebody still holds that directory, for example by a bind mount.
func (w *Watcher) Arm() error {
	for {
		want, err := w.wanted()
		errs := []error{err}
		alive := w.notify.WatchList() // without those that the kernel has ended
		for path := range w.armed {
			if _, ok := want[path]; !ok || !slices.Contains(alive, path) {
				w.disarm(path)
			}
		}
		added := false
		for path, id := range want {
			if w.armed[path] == id {
				continue
			}
			w.disarm(path)
			switch err := w.notify.Add(path); {
			case errors.Is(err, fs.ErrNotExist): // it left just now; look again
				added = true
			case err != nil:
				errs = append(errs, fmt.Errorf("watch %s: %w", path, err))
			default:
				w.armed[path], added = id, true
			}
		}
		// What was made between the look for it and the watch of its parent has made no
		// event. So it is looked for once more, until there is nothing new to watch.
		if err := errors.Join(errs...); err != nil || !added {
			return err
		}
	}
}

// wanted are the directories to watch, for all that are there or not. One that is at two
// paths, by a link or a bind mount, is watched at the first: the kernel has one watch for it,
// and the library tells of one path.
func (w *Watcher) wanted() (map[string]identity, error) {
	want := make(map[string]identity, len(w.dirs))
	seen := make(map[identity]bool, len(w.dirs))
	var errs []error
	for _, dir := range w.dirs {
		path, id, err := nearest(dir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !seen[id] || id == (identity{}) {
			want[path], seen[id] = id, true
		}
	}
	return want, errors.Join(errs...)
}

func (w *Watcher) disarm(path string) {
	if _, ok := w.armed[path]; ok {
		_ = w.notify.Remove(path) // the kernel may have ended the watch already
		delete(w.armed, path)
	}
}

// nearest finds the directory to watch for dir: itself, or the closest parent there is.
func nearest(dir string) (string, identity, error) {
	for {
		info, err := os.Stat(dir)
		if err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				return dir, identity{dev: st.Dev, ino: st.Ino}, nil
			}
			return dir, identity{}, nil
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return "", identity{}, fmt.Errorf("watch %s: %w", dir, err)
		}
		dir = parent
	}
}

// Signals returns a channel that receives after each burst of events. An overflow of
// the kernel's queue is an event like any other. The channel is closed when the
// watcher is.
func (w *Watcher) Signals(ctx context.Context, quiet, most time.Duration) <-chan struct{} {
	raw := make(chan struct{})
	go func() {
		defer close(raw)
		for {
			var ok bool
			select {
			case _, ok = <-w.notify.Events:
			case _, ok = <-w.notify.Errors:
			case <-ctx.Done():
			}
			if !ok {
				return
			}
			select {
			case raw <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return Settle(ctx, raw, quiet, most)
}

// Settle passes a signal on when the input has been quiet for a while, and at the
// latest some time after the first of a burst: the kernel makes four events of one
// bind, and a node that binds eight devices makes many more.
func Settle(ctx context.Context, in <-chan struct{}, quiet, most time.Duration) <-chan struct{} {
	out := make(chan struct{}, 1)
	go func() {
		defer close(out)
		for {
			select {
			case _, ok := <-in:
				if !ok {
					return
				}
			case <-ctx.Done():
				return
			}
			if !burst(ctx, in, quiet, most) {
				return
			}
			select {
			case out <- struct{}{}:
			default: // the reader has one waiting, which says the same
			}
		}
	}()
	return out
}

// burst waits for the end of a burst. It reports false when there is nothing more.
func burst(ctx context.Context, in <-chan struct{}, quiet, most time.Duration) bool {
	latest := time.NewTimer(most)
	defer latest.Stop()
	still := time.NewTimer(quiet)
	defer still.Stop()
	for {
		select {
		case _, ok := <-in:
			if !ok {
				return false
			}
			still.Reset(quiet)
		case <-still.C:
			return true
		case <-latest.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}
