package nodestate

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/pci"
)

// Options are how long a state waits.
type Options struct {
	// Bound is how old an answer may be that is still relied on.
	Bound time.Duration
	// Settle is how long something has to be amiss before it is told: kubelet tidies up lazily, and
	// no two sources are read at the same moment.
	Settle time.Duration
}

// Join makes the state of what the sources say. before is the state before it, nil for the first.
func Join(f *Facts, before *State, now time.Time, o Options) *State {
	if before == nil {
		before = &State{}
	}
	j := &join{
		facts: f, before: before, now: now, options: o,
		s:         &State{At: now, Sources: f.sources(), since: map[string]time.Time{}},
		fresh:     map[Source]bool{},
		functions: map[pci.Address]*Function{}, resources: map[string]*Resource{}, units: map[unitKey]int{},
		offered: map[string][]string{}, given: map[unitKey][]Given{}, specs: map[unitKey][]*Spec{},
	}
	for _, of := range j.s.Sources {
		j.fresh[of.Source] = of.Fresh(now, o.Bound)
	}
	j.index()
	if j.fresh[Hardware] {
		j.declare()
	}
	j.offers()
	j.holders()
	j.register()
	j.resolve()
	j.unreleased()
	j.contests()
	j.finish()
	return j.s
}

// join is a state while it is made.
type join struct {
	facts   *Facts
	before  *State
	now     time.Time
	options Options
	s       *State

	fresh     map[Source]bool
	functions map[pci.Address]*Function
	resources map[string]*Resource
	units     map[unitKey]int // into State.Units

	offered map[string][]string // IDs that kubelet has as allocatable, by resource
	given   map[unitKey][]Given // of kubelet's record
	alive   map[string]bool     // UIDs of pods in it, nil until somebody asks
	specs   map[unitKey][]*Spec // by kind and name, those of the highest rank

	unexamined []*Spec // nobody knows what they say
}

// unitKey is a unit of a resource.
type unitKey struct{ resource, id string }

// declaration are the resources of one set of rules.
type declaration []declare.Resource

// index makes what is looked up of what the sources say.
func (j *join) index() {
	for _, d := range j.facts.Allocatable.Value {
		j.offered[d.Resource] = append(j.offered[d.Resource], d.ID)
	}
	for name, ids := range j.offered {
		slices.Sort(ids)
		j.offered[name] = slices.Compact(ids)
	}
	for _, g := range j.facts.Record.Value.Given {
		key := unitKey{g.Resource, g.ID}
		j.given[key] = append(j.given[key], g)
	}
	for i := range j.facts.Specs.Value {
		spec := &j.facts.Specs.Value[i]
		if spec.State == SpecUnexamined {
			j.unexamined = append(j.unexamined, spec)
		}
		for id := range spec.Devices {
			name := unitKey{spec.Kind, id}
			switch others := j.specs[name]; {
			case len(others) == 0 || others[0].Rank == spec.Rank:
				j.specs[name] = append(others, spec)
			case others[0].Rank < spec.Rank:
				j.specs[name] = []*Spec{spec}
			}
		}
	}
}

// function is the entry of a function, which is made where there is none.
func (j *join) function(a pci.Address) *Function {
	if f, ok := j.functions[a]; ok {
		return f
	}
	f := &Function{Address: a, State: Foreign}
	if j.fresh[Hardware] {
		f.Facts, _ = j.facts.Hardware.Value.Function(a)
	}
	f.Type = typeOf(f.Facts)
	j.functions[a] = f
	return f
}

// resource is the entry of a resource, which is made where there is none.
func (j *join) resource(name string) *Resource {
	r, ok := j.resources[name]
	if !ok {
		r = &Resource{Name: name, Offered: -1, Allocated: -1, Free: -1, WhyExcluded: map[string]int{}, WhyUnhealthy: map[string]int{}}
		j.resources[name] = r
	}
	return r
}

// of notes that a function is of a resource.
func (f *Function) of(resource string) {
	if at, found := slices.BinarySearch(f.Resources, resource); !found {
		f.Resources = slices.Insert(f.Resources, at, resource)
	}
}

// address is where a unit is, by what was declared or by its ID: an address, or that of a share
// with a number behind it. Numbers alone, as some plugins count their shares, are no hardware.
func (j *join) address(resource, id string) (pci.Address, bool) {
	if at, ok := j.units[unitKey{resource, id}]; ok {
		return j.s.Units[at].Address, true
	}
	id, _, _ = strings.Cut(id, "::")
	a, err := pci.ParseAddress(id)
	return a, err == nil
}

// finish puts all in order.
func (j *join) finish() {
	for _, l := range j.facts.Locks.Value {
		if r, ok := j.resources[l.Resource]; ok && j.fresh[Locks] {
			r.Owner = l.Owner
		}
	}
	s := j.s
	for _, f := range j.functions {
		s.Functions = append(s.Functions, *f)
	}
	slices.SortFunc(s.Functions, func(a, b Function) int { return a.Address.Compare(b.Address) })
	for _, name := range slices.Sorted(maps.Keys(j.resources)) {
		s.Resources = append(s.Resources, *j.resources[name])
	}
	slices.SortStableFunc(s.Allocations, func(a, b Allocation) int {
		return cmp.Or(a.Address.Compare(b.Address), strings.Compare(a.Device, b.Device),
			strings.Compare(a.Namespace+"/"+a.Pod+"/"+a.Container, b.Namespace+"/"+b.Pod+"/"+b.Container),
			strings.Compare(a.Resource+a.Claim, b.Resource+b.Claim),
			strings.Compare(a.Driver+" "+a.Pool+" "+a.Request, b.Driver+" "+b.Pool+" "+b.Request), strings.Compare(a.UID, b.UID))
	})
	finding.Sort(s.Findings)
}

// lasting is when something that is amiss was first seen, and whether it has been so for long.
func (j *join) lasting(what string) (since time.Time, long bool) {
	since, ok := j.before.since[what]
	if !ok {
		since = j.now
	}
	j.s.since[what] = since
	return since, j.now.Sub(since) >= j.options.Settle
}

// remember keeps what was amiss of a kind, for as long as nobody can tell whether it still is.
func (j *join) remember(kind string) {
	for what, since := range j.before.since {
		if strings.HasPrefix(what, kind+" ") {
			j.s.since[what] = since
		}
	}
}
