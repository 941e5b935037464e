// Package agent is the one loop that the node programs share: look, declare, make
// resolvable, announce. It is level-triggered: what happens on the node only says
// "look again", and each look computes the whole of what should be true.
package agent

import (
	"context"
	"errors"
	"io/fs"
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
	"kata-device-plugin/internal/lookout"
	"kata-device-plugin/internal/nodelock"
	"kata-device-plugin/internal/sysfs"
)

// Times that decide something. They are fields so that tests can say them.
type times struct {
	lookout.Times
	settle  time.Duration // how long a torn state may last before it is reported
	foreign time.Duration // how long kubelet may believe devices that are not ours
	differ  time.Duration // how long kubelet's list may lag behind ours
}

func defaultTimes() times {
	return times{Times: lookout.DefaultTimes(), settle: 2 * time.Second, foreign: time.Second, differ: 5 * time.Second}
}

// Agent offers the devices of one node.
type Agent struct {
	prog  Program
	log   *slog.Logger
	times times

	health  *health.Server
	source  host.Source
	lookout *lookout.Lookout

	telling  sync.Mutex   // a grant and what is told of it, or who the holders are and what is told of that
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
	swept      map[string]bool      // resources without a device whose leftovers are gone
	family     *nodelock.Kept       // what all offers need, nil for nothing
	report     *report              // what was logged, so that only changes are
}

// New makes an agent. It reads and starts nothing yet.
func New(prog Program, log *slog.Logger) *Agent {
	a := &Agent{
		prog: prog, log: log, times: defaultTimes(), rules: prog.Rules, source: prog.Source,
		neighbours: cdi.NewNeighbours(prog.Roots.CDI),
		checkpoint: kubelet.NewCheckpoint(prog.Roots.DevicePlugins),
		since:      map[string]time.Time{},
		swept:      map[string]bool{},
		report:     newReport(log),
	}
	a.rivals = kubelet.NewRivals(prog.Roots.DevicePlugins, a.prefixes)
	if prog.Family != "" {
		a.family = nodelock.NewKept(prog.Roots.CDI, prog.Family, a.holder())
	}
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
	a.open(sys)

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
	return errors.Join(append(errs, a.family.Release(), a.health.Close())...)
}

// open says where sysfs is, and what tells of news.
func (a *Agent) open(sys fs.ReadLinkFS) {
	a.source.Sys = sys
	a.lookout = lookout.New(lookout.Config{
		Source:   a.source,
		Hardware: a.prog.Hardware,
		Files:    append([]string{a.prog.Roots.DevicePlugins, a.prog.Roots.CDI}, a.prog.Files...),
		Signals:  a.prog.Signals,
		Times:    a.times.Times,
		Report:   a.report.Once,
	})
}

// loop looks whenever there is a reason to.
func (a *Agent) loop(ctx context.Context) {
	defer a.lookout.Close()
	var within time.Duration
	for {
		how, ok := a.lookout.Wait(ctx, within)
		if !ok {
			return
		}
		now := time.Now()
		if how != lookout.None {
			a.look(ctx, how, now)
			a.lookout.Done()
			a.kick()
		}
		within = a.assess(ctx, now)
	}
}

// kick lets the endpoints look at kubelet's directory.
func (a *Agent) kick() {
	for _, o := range a.offers {
		o.endpoint.Kick()
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
