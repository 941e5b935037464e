package nic

import (
	"fmt"
	"maps"
	"slices"

	"kata-device-plugin/internal/finding"
)

// tally is what came of a pool.
type tally struct {
	got     int            // devices of the pool
	kept    int            // devices that would be the pool's if something was not in the way
	refused map[string]int // by the first selector that did not match
	lost    map[string]*loss
	unknown int // devices of which nobody knows whether the host uses them
}

// loss is what a pool selects and another one has.
type loss struct {
	count int
	first string
}

func newTally() *tally { return &tally{refused: map[string]int{}, lost: map[string]*loss{}} }

func (t *tally) lose(to, id string) {
	if t.lost[to] == nil {
		t.lost[to] = &loss{first: id}
	}
	t.lost[to].count++
}

// evidence has a piece for each pool that has devices of this one.
func (t *tally) evidence() []finding.Evidence {
	var all []finding.Evidence
	for _, to := range slices.Sorted(maps.Keys(t.lost)) {
		all = append(all, finding.Evidence{Path: to, Value: fmt.Sprintf("%d of them, first %s", t.lost[to].count, t.lost[to].first)})
	}
	return all
}

// pools says what is odd about pools as a whole: a line for a pool, not for each device.
func (l *look) pools() {
	for i := range l.rules.pools {
		name := l.rules.pools[i].name
		t := l.tallies[name]
		switch {
		case t.got == 0 && t.kept == 0 && len(t.lost) > 0:
			l.find(finding.New(finding.Shadowed(), "", t.evidence()...).For(name))
		case t.got == 0 && t.kept == 0:
			l.nothing(name)
		}
		if t.got+t.kept > 0 {
			for _, e := range t.evidence() {
				l.find(finding.New(finding.Overlap(), "", e).For(name))
			}
		}
		l.unlinked(name)
	}
	for i := range l.rules.shared {
		l.sharedPool(&l.rules.shared[i])
	}
	for a, why := range l.spare {
		if len(l.shared[a]) == 0 {
			l.find(why)
		}
	}
}

func (l *look) sharedPool(p *sharedPool) {
	t := l.tallies[p.name]
	switch {
	case p.RDMAHCAMax != nil && *p.RDMAHCAMax == 0:
		l.find(finding.New(finding.NoShares(), "", finding.Evidence{Path: "rdmaHcaMax", Value: "0"}).For(p.name))
	case t.got == 0 && t.kept == 0:
		l.nothing(p.name)
	}
	for _, a := range slices.SortedFunc(maps.Keys(l.shared), compare) {
		if to := l.whole[a]; to != "" && slices.Contains(l.shared[a], p.name) {
			t.lose(to, a.String())
		}
	}
	for _, e := range t.evidence() {
		l.find(finding.New(finding.SharedAndWhole(), "", e).For(p.name))
	}
	l.unlinked(p.name)
}

// nothing says that a pool has no device, and what its selectors left out.
func (l *look) nothing(resource string) {
	why := finding.New(finding.NothingSelected(), "").For(resource)
	refused := l.tallies[resource].refused
	for _, key := range slices.Sorted(maps.Keys(refused)) {
		why.Evidence = append(why.Evidence, finding.Evidence{Path: key, Value: fmt.Sprintf("left out %d", refused[key])})
	}
	l.find(why)
}

// unlinked says that devices of a pool wait until it is known what the host uses.
func (l *look) unlinked(resource string) {
	if n := l.tallies[resource].unknown; n > 0 {
		l.find(finding.New(finding.LinksUnknown(), "", finding.Evidence{Path: l.s.LinksErr.Error()},
			finding.Evidence{Path: "not declared", Value: fmt.Sprint(n)}).For(resource))
	}
}
