package agent

import (
	"context"
	"time"

	"kata-device-plugin/internal/watch"
)

// events are the kernel's signals that something may have changed. Without them looks
// come every second, which is a degradation and not a failure: inotify instances are a
// resource that busy nodes run out of, and get back.
type events struct {
	agent   *Agent
	watcher *watch.Watcher
	signals <-chan struct{}
}

func newEvents(a *Agent) *events { return &events{agent: a} }

// arm places the watches, and returns how soon a full look is due without any event. It
// has to be called before each look.
func (e *events) arm(ctx context.Context) time.Duration {
	t := &e.agent.times
	err := e.open(ctx)
	if err == nil {
		err = e.watcher.Arm()
	}
	e.agent.report.once("events from the kernel", err)
	if err != nil {
		return t.poll
	}
	return t.resync
}

func (e *events) open(ctx context.Context) error {
	if e.watcher != nil {
		return nil
	}
	r := e.agent.prog.Roots
	w, err := watch.New(r.VFIO(), r.VFIODevices(), r.DevicePlugins, r.CDI)
	if err != nil {
		return err
	}
	e.watcher, e.signals = w, w.Signals(ctx, e.agent.times.quiet, e.agent.times.most)
	return nil
}

func (e *events) close() {
	if e.watcher != nil {
		_ = e.watcher.Close() // nothing is lost with it
	}
}
