// Package exporter tells Prometheus and people what a node's devices are, which of them are
// healthy, who has them, and whether kubelet and container runtimes know them as they should. It
// looks, joins and tells; it changes nothing.
//
// A scrape is answered from the state that was joined last. So no number of scrapes is felt by
// kubelet or the kernel, and how old the state is can be seen.
package exporter

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"time"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/exporter/gather"
	"kata-device-plugin/internal/health"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/hostnet"
	"kata-device-plugin/internal/journal"
	"kata-device-plugin/internal/lookout"
	"kata-device-plugin/internal/nic"
	"kata-device-plugin/internal/nodestate"
	"kata-device-plugin/internal/sysfs"
	"kata-device-plugin/internal/uevent"
)

// memory is where the runtime tries hard to collect garbage, in bytes.
const memory = 96 << 20

// askRetry is when to ask kubelet again after no answer.
const askRetry = 2 * time.Second

// Exporter is the program.
type Exporter struct {
	roots   host.Roots
	links   func() (*host.Links, error)
	options Options
	log     *slog.Logger
	journal *journal.Journal

	files     *gather.Files
	kubelet   *gather.Kubelet
	collector *collector
	lookout   *lookout.Lookout
	now       func() time.Time

	pages  *pages
	health *health.Server // nil where there is no directory for it

	written [sha256.Size]byte // of the metrics' file

	facts nodestate.Facts
	known *nodestate.State // the last that knew the hardware
}

// New makes the exporter. Nothing is read yet.
func New(version string, on Node, o Options, log *slog.Logger) *Exporter {
	c := gather.Config{Roots: on.Roots, Kubelet: o.Kubelet, NICs: o.NICs, Prefix: o.Prefix, UIDs: o.UIDs}
	e := &Exporter{
		roots: on.Roots, links: on.Links, options: o, log: log, journal: journal.New(log), now: time.Now,
		files: gather.New(c), kubelet: gather.NewKubelet(c),
		collector: newCollector(version, o.Stale, o.UIDs, time.Now), pages: &pages{node: o.Node, stale: o.Stale},
	}
	return e
}

// Run runs the program until ctx ends. It confines the process.
func (e *Exporter) Run(ctx context.Context) error {
	debug.SetGCPercent(50) // the process is idle nearly always
	debug.SetMemoryLimit(memory)
	return e.run(ctx, e.looking, e.confine)
}

// run is Run with another way to look, and with what is done once everything is open that has to
// be.
func (e *Exporter) run(ctx context.Context, looking func(*sysfs.FS) lookout.Config, opened func()) error {
	sys, err := sysfs.Open(e.roots.Sys)
	if err != nil {
		return fmt.Errorf("look at the node: %w", err)
	}
	defer sys.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if e.health, err = health.Serve(e.roots.Run, e.log); err != nil && !errors.Is(err, health.ErrNoDirectory) {
		return err
	}
	defer func() { e.journal.Once("health", e.health.Close()) }()
	stop, err := e.serve(ctx, cancel)
	if err != nil {
		return err
	}
	defer stop()
	opened()
	e.lookout = lookout.New(looking(sys))
	defer e.lookout.Close()
	asking := make(chan struct{})
	go func() {
		defer close(asking)
		e.keepAsking(ctx)
	}()
	e.keepLooking(ctx)
	cancel(nil)
	<-asking
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return errors.Join(err, e.unwrite(), e.kubelet.Close())
}

// looking says what is looked at, and what tells of news.
func (e *Exporter) looking(sys *sysfs.FS) lookout.Config {
	table := declare.Passthrough()
	c := lookout.Config{
		Source:   host.Source{Sys: sys, Dev: devfs.Dir(e.roots.Dev), Wanted: table.Wants},
		Hardware: []string{e.roots.VFIO(), e.roots.VFIODevices()},
		Files:    e.files.Directories(),
		Times:    lookout.DefaultTimes(),
		Report:   e.journal.Once,
	}
	if len(e.options.NICs) == 0 {
		return c
	}
	c.Source.Wanted = func(id host.Identity) bool { return table.Wants(id) || nic.Wants(id) }
	c.Source.Network, c.Source.Links, c.Source.Profile = nic.Wants, e.links, hostnet.ProfilesIf(e.files.AsksProfile).Profile
	if e.links == nil {
		c.Source.Links = hostnet.OwnOf(sys).Links
	}
	c.Hardware = append(c.Hardware, e.roots.Dev+"/infiniband")
	c.Signals = []lookout.Signal{
		{Name: "uevents", Open: uevent.Signals}, {Name: "changes of links and routes", Open: hostnet.Events},
	}
	return c
}

// keepAsking asks kubelet until ctx ends.
func (e *Exporter) keepAsking(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		next := e.options.Poll
		if !e.kubelet.Ask(ctx, e.now) {
			next = min(next, askRetry)
		}
		if ctx.Err() != nil {
			return
		}
		timer.Reset(next)
		e.lookout.Poke()
	}
}

// writeEvery is how often the file is written at most, whatever happens on the node.
const writeEvery = time.Second

// keepLooking looks, joins and tells until ctx ends.
func (e *Exporter) keepLooking(ctx context.Context) {
	var written time.Time
	for within := time.Duration(0); ; {
		how, ok := e.lookout.Wait(ctx, within)
		if !ok {
			return
		}
		e.look(how)
		within = e.options.Poll
		if e.options.Textfile == "" {
			continue
		}
		if wait := writeEvery - e.now().Sub(written); wait > 0 {
			within = min(within, wait)
			continue
		}
		e.journal.Once("the metrics' file", e.write())
		written = e.now()
	}
}

// depths are the words for how deep a look is.
func depths() []string { return []string{"full", "glance", "reuse"} }

func depth(how lookout.Depth) string {
	switch how {
	case lookout.Full:
		return "full"
	case lookout.Glance:
		return "glance"
	case lookout.None, lookout.Reuse:
	}
	return "reuse"
}

// look looks at the node, and brings the state up to date.
func (e *Exporter) look(how lookout.Depth) {
	began := e.now()
	if how != lookout.None {
		snapshot := e.lookout.Observe(how)
		if how >= lookout.Glance {
			e.observed(snapshot, began)
		}
	}
	e.join(how, began)
	e.lookout.Done()
}

// observed takes a snapshot over. What could not be listed is as old as it was.
func (e *Exporter) observed(s *host.Snapshot, at time.Time) {
	e.facts.Hardware.Took(s, errors.Join(s.Unread...), at)
	e.journal.Once("links and routes of the host", s.LinksErr)
}

// join reads the other sources, and makes the next state.
func (e *Exporter) join(how lookout.Depth, began time.Time) {
	e.files.Read(&e.facts, e.now())
	e.kubelet.Read(&e.facts)
	before := e.collector.view.Load()
	after := nodestate.Join(&e.facts, before.state, e.now(), nodestate.Options{Bound: e.options.Stale, Settle: e.options.Settle})
	next := &view{state: after, transitions: before.transitions, looks: map[string]int{}, kubelet: e.kubelet.Took()}
	maps.Copy(next.looks, before.looks)
	next.looks[depth(how)]++
	if after.Source(nodestate.Hardware).Fresh(after.At, e.options.Stale) {
		next.snapshot = e.facts.Hardware.Value
		next.transitions = turns(before.transitions, e.known, after)
		e.known = after
	}
	if len(e.facts.Rules) > 1 {
		next.nics = e.facts.Rules[1]
	}
	next.look = e.now().Sub(began)
	e.collector.view.Store(next)
	e.report(after)
}

// report logs what changed: sources, and what the rules find.
func (e *Exporter) report(s *nodestate.State) {
	for _, of := range s.Sources {
		e.journal.Once("source "+string(of.Source), of.Err)
	}
	ready := s.Source(nodestate.Hardware).Fresh(s.At, e.options.Stale)
	e.health.Ready(ready)
	declared := []string{}
	for i := range s.Resources {
		if s.Resources[i].Declared {
			declared = append(declared, s.Resources[i].Name)
		}
	}
	if ready {
		e.journal.Ready(true, "", e.collector.version, declared)
	} else {
		e.journal.Ready(false, "the hardware could not be read for "+e.options.Stale.String(), e.collector.version, nil)
	}
}
