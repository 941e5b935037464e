package agent

import (
	"context"
	"errors"
	"time"

	"kata-device-plugin/internal/watch"
)

// events are the kernel's signals that something may have changed: on one channel that
// the hardware may have, on the other that a directory may have which we and others
// write to. Of the latter our own writes make many; they are no reason to look at the
// hardware.
//
// Without events looks come every second, which is a degradation and not a failure:
// inotify instances are a resource that busy nodes run out of, and get back.
type events struct {
	agent             *Agent
	devices, files    <-chan struct{}
	hardware, written *watch.Watcher
}

func newEvents(a *Agent) *events { return &events{agent: a} }

// arm places the watches, and returns how soon a full look is due without any event. It
// has to be called before each look.
func (e *events) arm(ctx context.Context) time.Duration {
	t, r := &e.agent.times, e.agent.prog.Roots
	var err1, err2 error
	e.hardware, e.devices, err1 = e.open(ctx, e.hardware, e.devices, r.VFIO(), r.VFIODevices())
	e.written, e.files, err2 = e.open(ctx, e.written, e.files, r.DevicePlugins, r.CDI)
	err := errors.Join(err1, err2)
	e.agent.report.once("events from the kernel", err)
	if err != nil {
		return t.poll
	}
	return t.resync
}

// open starts a watcher, if there is none yet, and places its watches.
func (e *events) open(ctx context.Context, w *watch.Watcher, c <-chan struct{}, dirs ...string) (*watch.Watcher, <-chan struct{}, error) {
	if w == nil {
		var err error
		if w, err = watch.New(dirs...); err != nil {
			return nil, nil, err
		}
		c = w.Signals(ctx, e.agent.times.quiet, e.agent.times.most)
	}
	return w, c, w.Arm()
}

func (e *events) close() {
	for _, w := range []*watch.Watcher{e.hardware, e.written} {
		if w != nil {
			_ = w.Close() // nothing is lost with it
		}
	}
}
