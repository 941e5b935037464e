// Package agent is the one loop that the node programs share: look, declare, make
// resolvable, announce. It is level-triggered: what happens on the node only says
// "look again", and each look computes the whole of what should be true.
package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/health"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/kubelet"
	"kata-device-plugin/internal/sysfs"
)

// Times that decide something. They are fields so that tests can say them.
type times struct {
	quiet, most time.Duration // debounce: how long to wait for the end of a burst, and at most
	resync      time.Duration // full look without any event
	poll        time.Duration // the same where inotify is not to be had
	settle      time.Duration // how long a torn state may last before it is reported
	foreign     time.Duration // how long kubelet may believe devices that are not ours
	differ      time.Duration // how long kubelet's list may lag behind ours
}

func defaultTimes() times {
	return times{
		quiet: 5 * time.Millisecond, most: 25 * time.Millisecond,
		resync: 30 * time.Second, poll: time.Second,
		settle: 2 * time.Second, foreign: time.Second, differ: 5 * time.Second,
	}
}

// Agent offers the devices of one node.
type Agent struct {
	prog  Program
	log   *slog.Logger
	times times

	health *health.Server
	source host.Source

	poke chan struct{}      // an endpoint's status changed
	asks chan chan struct{} // somebody needs a full look, and waits for it

	mu       sync.RWMutex // what Allocate reads and the loop writes
	rules    declare.Rules
	snapshot *host.Snapshot
	offers   []*offer // in the order in which they came to be
	answers  answers  // since the look under way began

	// Only the loop uses what follows.
	findings   []finding.Finding    // of the last look, those of devices not included
	faulty     []finding.Finding    // what is wrong with the rules
	unread     error                // why kubelet's record could not be read
	foreign    []cdi.Foreign        // other owners' specs
	neighbours *cdi.Neighbours      // what reads them
	checkpoint *kubelet.Checkpoint  // what kubelet believes
	rivals     *kubelet.Rivals      // other plugins' sockets
	since      map[string]time.Time // when a state began that is reported only if it lasts
	retries    int                  // looks in a row that met a torn or unreadable state
	again      time.Time            // when to look again because of that
	swept      map[string]bool      // resources without a device whose leftovers are gone
	report     *report              // what was logged, so that only changes are
}

// New makes an agent. It reads and starts nothing yet.
func New(prog Program, log *slog.Logger) *Agent {
	a := &Agent{
		prog: prog, log: log, times: defaultTimes(), rules: prog.Rules, source: prog.Source,
		poke:       make(chan struct{}, 1),
		asks:       make(chan chan struct{}),
		neighbours: cdi.NewNeighbours(prog.Roots.CDI),
		checkpoint: kubelet.NewCheckpoint(prog.Roots.DevicePlugins),
		since:      map[string]time.Time{},
		swept:      map[string]bool{},
		report:     newReport(log),
	}
	a.rivals = kubelet.NewRivals(prog.Roots.DevicePlugins, a.prefixes)
	return a
}

// Run offers the node's devices until ctx ends. Everything it started has ended when it
// returns; the CDI specs stay, since pods may be in creation.
func (a *Agent) Run(ctx context.Context) error {
	sys, err := sysfs.Open(a.prog.Roots.Sys)
	if err != nil {
		return err
	}
	defer sys.Close()
	a.source.Sys = sys

	a.health, err = health.Serve(a.prog.Roots.Run, a.log)
	switch {
	case errors.Is(err, health.ErrNoDirectory):
		a.log.Info("running without a health socket", "reason", err.Error())
	case err != nil:
		return err
	}
	a.loop(ctx)
	var errs []error
	for _, o := range a.offers {
		errs = append(errs, o.stop())
	}
	return errors.Join(append(errs, a.health.Close())...)
}

// loop looks whenever there is a reason to.
func (a *Agent) loop(ctx context.Context) {
	events := newEvents(a)
	defer events.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var due time.Time // when the next full look is due
	for {
		var asked chan struct{}
		how := glance
		select {
		case <-ctx.Done():
		case <-events.devices:
			a.retries = 0
		case <-events.signals:
			a.retries = 0
		case <-events.files:
			how = reuse
		case asked = <-a.asks:
			how = full
		case <-timer.C:
		case <-a.poke:
			how = none
		}
		if ctx.Err() != nil {
			return // what comes with the end is no news
		}
		now := time.Now()
		if how != none {
			next := now.Add(events.arm(ctx))
			if how == full || !now.Before(due) {
				how, due = full, next
			} else if next.Before(due) {
				due = next // events are missing since now
			}
			waiting := a.waiting(asked)
			a.look(ctx, how, now)
			for _, w := range waiting {
				close(w)
			}
			a.kick()
		}
		if how == full || how == glance {
			events.rest(time.Since(now))
		}
		timer.Reset(min(a.assess(now), time.Until(due)))
	}
}

// waiting are all who wait for the full look that begins now.
func (a *Agent) waiting(first chan struct{}) []chan struct{} {
	if first == nil {
		return nil
	}
	all := []chan struct{}{first}
	for {
		select {
		case w := <-a.asks:
			all = append(all, w)
		default:
			return all
		}
	}
}

// kick lets the endpoints look at kubelet's directory.
func (a *Agent) kick() {
	for _, o := range a.offers {
		o.endpoint.Kick()
	}
}

// changed is called by endpoints, from their own goroutines.
func (a *Agent) changed() {
	select {
	case a.poke <- struct{}{}:
	default:
	}
}

// refresh waits for a full look that began after the call.
func (a *Agent) refresh(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case a.asks <- done:
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

// holder is how this process names itself to other agents.
func (a *Agent) holder() string {
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "unknown host name"
	}
	return a.prog.Name + " in " + hostname
}

// prefixes are the beginnings of all sockets that this program has.
func (a *Agent) prefixes() []string {
	var all []string
	for _, n := range a.names(a.rules) {
		all = append(all, n.Socket)
	}
	return all
}
