package dradriver

import (
	"context"
	"sync"
	"time"

	"kata-device-plugin/internal/prepare"
)

const (
	// askTimeout is how long an answer may take. To wait for one never keeps the hardware from
	// being looked at.
	askTimeout = 5 * time.Second
	// askRetry is when to ask again after no answer, and while a device plugin is on its way out: the
	// node has no device that anybody offers then.
	askRetry = 2 * time.Second
	// leaving is how long a device plugin may take to leave: kubelet gives it five minutes, in which
	// its devices are there and unhealthy (pkg/kubelet/cm/devicemanager, endpointStopGracePeriod).
	leaving = 6 * time.Minute
	// sweepEvery is how many polls lie between two searches for claims that have ended.
	sweepEvery = 10
)

// answers are what kubelet and the API server said last. A question that fails leaves the answer
// that there was.
type answers struct {
	mu      sync.Mutex
	view    *prepare.View // nil while kubelet has never answered
	node    *nodeState    // nil while the API server has never answered
	viewErr error
	nodeErr error
}

// last are the answers, and what is wrong with them.
func (a *answers) last() (view *prepare.View, viewErr error, node *nodeState, nodeErr error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.view, a.viewErr, a.node, a.nodeErr
}

// keepAsking asks until ctx ends.
func (d *Driver) keepAsking(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		next := d.options.Poll
		if !d.ask(ctx) {
			next = min(next, askRetry)
		}
		timer.Reset(next)
		d.lookout.Poke()
	}
}

// ask asks both, and says whether both have answered, and nothing else is to be waited for.
func (d *Driver) ask(ctx context.Context) bool {
	var v prepare.View
	var n nodeState
	var viewErr, nodeErr error
	// Each has all of the time: that one is silent says nothing about the other.
	var both sync.WaitGroup
	both.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		v, viewErr = d.viewer.view(ctx)
	})
	both.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		n, nodeErr = d.api.state(ctx)
	})
	both.Wait()
	if ctx.Err() != nil {
		return false // the program ends: that nobody has answered means nothing
	}
	a := &d.answers
	a.mu.Lock()
	defer a.mu.Unlock()
	a.viewErr, a.nodeErr = viewErr, nodeErr
	if viewErr == nil {
		a.view = &v
	}
	if nodeErr == nil {
		a.node = &n
	}
	return viewErr == nil && nodeErr == nil && !d.hurries(n, time.Now())
}

// hurries says whether a device plugin is on its way out, which has a number of devices of a type that
// this driver would offer: kubelet sets it to 0 within seconds. One that stays is no reason to hurry.
func (d *Driver) hurries(n nodeState, now time.Time) bool {
	if !n.plugged(d.options.Excluded) {
		d.plugged = time.Time{}
		return false
	}
	if d.plugged.IsZero() {
		d.plugged = now
	}
	return now.Sub(d.plugged) < leaving
}

// keepChecking looks whether the API server has what was published until ctx ends: soon after each
// publication and until it has, and then at each poll.
func (d *Driver) keepChecking(ctx context.Context) {
	often := min(soon, d.options.Poll)
	timer := time.NewTimer(often)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.publisher.handed:
			timer.Reset(often)
			continue
		case <-timer.C:
		}
		before := d.publisher.inStep()
		d.checkSlices(ctx)
		now, next := d.publisher.inStep(), d.options.Poll
		if !now {
			next = often
		}
		timer.Reset(next)
		if now != before {
			if now {
				d.plugin.said.over()
			}
			d.lookout.Poke()
		}
	}
}

// checkSlices checks once.
func (d *Driver) checkSlices(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	published, err := d.publisher.check(within, time.Now(), !d.plugin.untainted.Load())
	if ctx.Err() != nil {
		return
	}
	d.journal.Once("ResourceSlices at the API server", err)
	if published > 0 || err == nil {
		d.plugin.metrics.slices.WithLabelValues("published").Set(float64(published))
	}
}

// keepSweeping looks for claims that have ended, until ctx ends.
func (d *Driver) keepSweeping(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery * d.options.Poll)
	defer ticker.Stop()
	for {
		released, err := d.engine.Sweep(ctx)
		if ctx.Err() != nil {
			return
		}
		d.journal.Once("search for claims that have ended", err)
		for _, uid := range released {
			d.plugin.metrics.released.Inc()
			d.plugin.events.onNode(reasonReleased, "claim "+uid+" was released: neither the API server nor kubelet knows it any more")
			d.lookout.Poke()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
