// Package lookout looks at the node whenever there may be something new. It is told by the
// kernel's events, by a program's own sources, by the clock and by whoever asks, and says how
// deep to look. Events only say "look again": they may be lost, doubled or late, and each
// look finds out by itself.
package lookout

import (
	"context"
	"time"

	"kata-device-plugin/internal/host"
)

// Depth says how much of the hardware is looked at anew.
type Depth uint8

// The depths.
const (
	// None: no look at all. Somebody has news of his own.
	None Depth = iota
	// Reuse: nothing of the hardware. The last snapshot is held against the rest of the world.
	Reuse
	// Glance: what came, went or changed hands.
	Glance
	// Full: everything.
	Full
)

// Times are how long a lookout waits.
type Times struct {
	// Quiet and Most are the debounce: how long to wait for the end of a burst, and at most.
	Quiet, Most time.Duration
	// Resync is when a full look is due without any event, and Poll the same where events are
	// missing.
	Resync, Poll time.Duration
}

// DefaultTimes are those of the programs.
func DefaultTimes() Times {
	return Times{Quiet: 5 * time.Millisecond, Most: 25 * time.Millisecond, Resync: 30 * time.Second, Poll: time.Second}
}

// firstRetry is how soon what was torn or unreadable is looked at again. No event tells when
// such a state ends.
const firstRetry = 10 * time.Millisecond

// Config says what to look at, and what tells of news.
type Config struct {
	// Source is what a look reads.
	Source host.Source
	// Hardware are directories in which something changes when the hardware does. Files are
	// those that we and others write to: what happens there is no reason to look at the
	// hardware. None of them has to exist.
	Hardware, Files []string
	// Signals are other sources of events that may have changed the hardware.
	Signals []Signal
	Times   Times
	// Report is called before each look with what keeps events from coming, nil for nothing.
	// Without events looks come at Times.Poll.
	Report func(what string, err error)
}

// Signal is a source of events.
type Signal struct {
	Name string // what it is, for a person
	// Open returns a channel with a value for anything that may have changed the hardware,
	// until ctx ends. One that fails, or ends before, is tried again before the next look.
	Open func(context.Context) (<-chan struct{}, error)
}

// Lookout is one program's. Refresh and Poke may be called by anybody, the rest by the one
// loop that looks:
//
//	for {
//		how, ok := l.Wait(ctx, within)
//		if !ok {
//			break
//		}
//		snapshot := l.Observe(how) // unless it is None
//		...
//		l.Done()
//	}
type Lookout struct {
	config Config
	events *events
	timer  *time.Timer

	poke chan struct{}      // somebody has news of his own
	asks chan chan struct{} // somebody needs a full look, and waits for it

	began    time.Time       // the look under way, or the last one
	depth    Depth           // of the look under way, None between two looks
	waiting  []chan struct{} // for the end of the look under way
	due      time.Time       // when the next full look is
	snapshot *host.Snapshot  // what was seen last
	retries  int             // looks in a row that met a torn or unreadable state
	again    time.Time       // when to look again because of that
}

// New makes a lookout. It reads and starts nothing yet.
func New(c Config) *Lookout {
	if c.Report == nil {
		c.Report = func(string, error) {}
	}
	return &Lookout{
		config: c, events: newEvents(c), timer: time.NewTimer(0),
		poke: make(chan struct{}, 1), asks: make(chan chan struct{}),
	}
}

// Close ends the watches. What else Wait started ends with its context.
func (l *Lookout) Close() {
	l.timer.Stop()
	l.events.close()
}

// Wait waits for a reason to look, and says how deep. The first look is a full one, at once.
// Without any reason it returns when as much as within has passed since the call. It reports
// false when ctx has ended, which has to be the same in each call.
//
// When it returns, the watches are placed: what happens from then on is an event, what happened
// before is found by the look.
func (l *Lookout) Wait(ctx context.Context, within time.Duration) (how Depth, ok bool) {
	l.Done()
	l.timer.Reset(l.limit(within))
	var asked chan struct{}
	how = Glance
	select {
	case <-ctx.Done():
	case <-l.events.devices:
		l.retries = 0
	case <-l.events.signals:
		l.retries = 0
	case <-l.events.files:
		how = Reuse
	case asked = <-l.asks:
		how = Full
	case <-l.timer.C:
	case <-l.poke:
		return None, ctx.Err() == nil
	}
	if ctx.Err() != nil {
		return None, false // what comes with the end is no news
	}
	return l.begin(ctx, how, asked), true
}

// limit is how long to wait without a reason.
func (l *Lookout) limit(within time.Duration) time.Duration {
	within = min(within, time.Until(l.due))
	if l.retries > 0 {
		within = min(within, time.Until(l.again))
	}
	return within
}

// begin places the watches, and says how deep the look is that begins now.
func (l *Lookout) begin(ctx context.Context, how Depth, asked chan struct{}) Depth {
	l.began = time.Now()
	next := l.began.Add(l.events.arm(ctx))
	switch {
	case how == Full || !l.began.Before(l.due):
		how, l.due = Full, next
	case next.Before(l.due):
		l.due = next // events are missing since now
	}
	if asked != nil {
		l.waiting = append(l.waiting, asked)
		l.gather()
	}
	l.depth = how
	return how
}

// gather adds all who wait for a full look: the one that begins now is theirs too.
func (l *Lookout) gather() {
	for {
		select {
		case w := <-l.asks:
			l.waiting = append(l.waiting, w)
		default:
			return
		}
	}
}

// Done ends a look: those who asked for it go on. The next Wait does it otherwise.
func (l *Lookout) Done() {
	for _, w := range l.waiting {
		close(w)
	}
	l.waiting = nil
	if l.depth >= Glance {
		l.events.rest(time.Since(l.began))
	}
	l.depth = None
}

// Observe reads the hardware, as deep as it is asked to, and plans to look again soon where
// that met what the kernel passes through, or could not read something. It may be called more
// than once in a look.
func (l *Lookout) Observe(how Depth) *host.Snapshot {
	switch {
	case how == Full || l.snapshot == nil:
		l.snapshot = l.config.Source.Look(l.snapshot)
	case how == Glance:
		l.snapshot = l.config.Source.Glance(l.snapshot)
	default:
		return l.snapshot // it says nothing new of the hardware
	}
	if l.snapshot.Torn() || l.snapshot.Partial() {
		l.again = l.began.Add(min(firstRetry<<min(l.retries, 20), l.config.Times.Resync))
		l.retries++
	} else {
		l.retries = 0
	}
	return l.snapshot
}

// Refresh waits for the end of a full look that began after the call.
func (l *Lookout) Refresh(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case l.asks <- done:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Poke makes Wait return although there is nothing to look at. It does not block.
func (l *Lookout) Poke() {
	select {
	case l.poke <- struct{}{}:
	default: // one is waiting, which says the same
	}
}
