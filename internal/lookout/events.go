package lookout

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"kata-device-plugin/internal/watch"
)

// events are the signals that something may have changed: on one channel that the hardware
// may have, on another that a directory may have which we and others write to. Of the latter
// our own writes make many; they are no reason to look at the hardware.
//
// Without events looks come every second, which is a degradation and not a failure:
// inotify instances are a resource that busy nodes run out of, and get back.
type events struct {
	config            Config
	devices, files    <-chan struct{}
	hardware, written *watch.Watcher
	signals           chan struct{} // all of Config.Signals
	open              []atomic.Bool // which of them are
	pause             atomic.Int64  // between two signals, in nanoseconds
}

// A node may have signals without end, of links that come and go. Looks then take a tenth of
// the time at most, and at least one comes each second.
const (
	pausePerLook = 9
	longestPause = time.Second
)

// rest says how long a look took.
func (e *events) rest(took time.Duration) {
	e.pause.Store(int64(min(pausePerLook*took, longestPause)))
}

func newEvents(c Config) *events {
	return &events{config: c, signals: make(chan struct{}, 1), open: make([]atomic.Bool, len(c.Signals))}
}

// arm places the watches, and returns how soon a full look is due without any event. It
// has to be called before each look.
func (e *events) arm(ctx context.Context) time.Duration {
	var err1, err2 error
	e.hardware, e.devices, err1 = e.watch(ctx, e.hardware, e.devices, e.config.Hardware)
	e.written, e.files, err2 = e.watch(ctx, e.written, e.files, e.config.Files)
	err := errors.Join(err1, err2, e.listen(ctx))
	e.config.Report("events from the kernel", err)
	if err != nil {
		return e.config.Times.Poll
	}
	return e.config.Times.Resync
}

// watch starts a watcher, if there is none yet and something to watch, and places its watches.
func (e *events) watch(ctx context.Context, w *watch.Watcher, c <-chan struct{}, dirs []string) (*watch.Watcher, <-chan struct{}, error) {
	if len(dirs) == 0 {
		return nil, nil, nil
	}
	if w == nil {
		var err error
		if w, err = watch.New(dirs...); err != nil {
			return nil, nil, err
		}
		c = w.Signals(ctx, e.config.Times.Quiet, e.config.Times.Most)
	}
	return w, c, w.Arm()
}

// listen opens the program's own sources that are not open.
func (e *events) listen(ctx context.Context) error {
	var errs []error
	for i, s := range e.config.Signals {
		if e.open[i].Load() {
			continue
		}
		raw, err := s.Open(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("listen to %s: %w", s.Name, err))
			continue
		}
		e.open[i].Store(true)
		settled := watch.Settle(ctx, raw, e.config.Times.Quiet, e.config.Times.Most)
		go func() {
			defer e.open[i].Store(false) // the next look opens it again
			for range settled {
				select {
				case e.signals <- struct{}{}:
				default: // one is waiting, which says the same
				}
				select {
				case <-time.After(time.Duration(e.pause.Load())):
				case <-ctx.Done():
				}
			}
		}()
	}
	return errors.Join(errs...)
}

func (e *events) close() {
	for _, w := range []*watch.Watcher{e.hardware, e.written} {
		if w != nil {
			_ = w.Close() // nothing is lost with it
		}
	}
}
