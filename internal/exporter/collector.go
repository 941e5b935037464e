package exporter

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nodestate"
)

// view is what a scrape tells. It is immutable.
type view struct {
	state       *nodestate.State // nil before the first look
	transitions map[transition]int
	looks       map[string]int // by depth
	look        time.Duration
	kubelet     time.Duration // below 0 before its first answer

	// What the page is made of, beside that: the snapshot where the hardware is fresh, and the rules
	// of NICs where they are known.
	snapshot *host.Snapshot
	nics     declare.Rules
}

// collector makes series of the last view. It asks nobody: whoever scrapes can neither slow kubelet
// down nor wait for it.
type collector struct {
	view    atomic.Pointer[view]
	now     func() time.Time
	bound   time.Duration // how old what a source said may be
	uids    bool
	version string

	metrics  map[string]described
	families *families
}

// described is a metric as this exporter has it.
type described struct {
	Metric
	labels []string // with those that are optional
}

func newCollector(version string, bound time.Duration, uids bool, now func() time.Time) *collector {
	c := &collector{now: now, bound: bound, uids: uids, version: version, metrics: map[string]described{}}
	for _, m := range Contract() {
		labels := m.Labels
		if m.Name == prefix+"device_allocation_info" && uids {
			labels = append(slices.Clone(labels), "pod_uid")
		}
		c.metrics[strings.TrimPrefix(m.Name, prefix)] = described{m, labels}
	}
	c.families = newFamilies(c.metrics)
	c.view.Store(&view{})
	return c
}

// tell makes all series of a scrape, each of which it gives to add with its values of labels, which add may
// not keep.
func (c *collector) tell(add func(name string, value float64, labels []string)) {
	began := c.now()
	s := &scrape{collector: c, add: add, at: began, view: c.view.Load()}
	s.self()
	if s.view.state != nil {
		s.sources()
		s.devices()
		s.resources()
		s.holders()
		s.kubelet()
		s.resolver()
	}
	s.emit("scrape_duration_seconds", c.now().Sub(began).Seconds())
}

// scrape is one scrape.
type scrape struct {
	*collector
	add  func(name string, value float64, labels []string)
	at   time.Time
	view *view
}

// fresh says whether all of some sources are.
func (s *scrape) fresh(sources ...nodestate.Source) bool {
	return !slices.ContainsFunc(sources, func(of nodestate.Source) bool {
		return s.view.state == nil || !s.view.state.Source(of).Fresh(s.at, s.bound)
	})
}

// may says whether what a metric needs is fresh.
func (s *scrape) may(name string) bool { return s.fresh(s.metrics[name].Needs...) }

// emit makes a series. Whether it may be made the caller has asked.
func (s *scrape) emit(name string, value float64, labels ...string) { s.add(name, value, labels) }

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// seconds is a time since 1970 by the clock as it is now: somebody may have set it since, and whoever reckons an
// age from it would take the step for a part of that.
func (s *scrape) seconds(t time.Time) float64 {
	return float64(s.at.Add(-s.at.Sub(t)).UnixNano()) / float64(time.Second)
}

// self is about the exporter.
func (s *scrape) self() {
	s.emit("build_info", 1, s.version)
	for _, depth := range depths() {
		s.emit("looks_total", float64(s.view.looks[depth]), depth)
	}
	if s.view.state == nil {
		return
	}
	s.emit("state_timestamp_seconds", s.seconds(s.view.state.At))
	s.emit("look_duration_seconds", s.view.look.Seconds())
	if s.view.kubelet >= 0 {
		s.emit("kubelet_answer_duration_seconds", s.view.kubelet.Seconds())
	}
}

// sources is about what everything else rests on.
func (s *scrape) sources() {
	for _, of := range s.view.state.Sources {
		if of.None {
			continue
		}
		s.emit("source_up", number(of.Err == nil && !of.At.IsZero()), string(of.Source))
		s.emit("source_stale", number(!of.Fresh(s.at, s.bound)), string(of.Source))
		if !of.At.IsZero() {
			s.emit("source_last_success_timestamp_seconds", s.seconds(of.At), string(of.Source))
		}
	}
}
