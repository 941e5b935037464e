package exporter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// families keep the series of the scrape before, because hardly any differs in the next one: what has the
// same labels is told again as it is, and is not made, checked and sorted anew. What was given away is
// not changed any more, since it may still be written to somebody.
type families struct {
	mu         sync.Mutex
	generation uint64
	all        []*family // by name
	byName     map[string]*family
	series     map[string]*kept // by name and values
	key        []byte           // of the series that is looked for
	err        error
}

// family is a metric with its series.
type family struct {
	described
	sorted []string // the labels' names
	from   []int    // where the value of each is in what is told
	kept   []*kept  // sorted
	told   int      // in this generation
	fresh  bool     // one of kept is new
}

// kept is a series.
type kept struct {
	key        string
	values     []string // in the order of the labels' names
	value      float64
	metric     *dto.Metric
	generation uint64
}

func newFamilies(metrics map[string]described) *families {
	f := &families{byName: map[string]*family{}, series: map[string]*kept{}}
	for name, m := range metrics {
		one := &family{described: m, from: make([]int, len(m.labels))}
		for i := range one.from {
			one.from[i] = i
		}
		slices.SortFunc(one.from, func(a, b int) int { return cmp.Compare(m.labels[a], m.labels[b]) })
		for _, at := range one.from {
			one.sorted = append(one.sorted, m.labels[at])
		}
		f.byName[name] = one
		f.all = append(f.all, one)
	}
	slices.SortFunc(f.all, func(a, b *family) int { return strings.Compare(a.Name, b.Name) })
	return f
}

// add takes a series over into this generation. values belong to the caller.
func (f *families) add(name string, value float64, values []string) {
	of := f.byName[name]
	f.key = append(f.key[:0], name...)
	for _, v := range values {
		f.key = append(append(f.key, 0xff), v...) // no byte of a text
	}
	k, known := f.series[string(f.key)]
	switch {
	case !known:
		k = &kept{key: string(f.key), value: value, values: make([]string, len(of.from))}
		for i, at := range of.from {
			k.values[i] = strings.ToValidUTF8(values[at], "\uFFFD")
		}
		k.metric = of.metric(value, of.pairs(k.values))
		f.series[k.key] = k
		of.kept, of.fresh = append(of.kept, k), true
	case k.generation == f.generation:
		f.err = errors.Join(f.err, fmt.Errorf("make the series %s%v: it is there twice", of.Name, k.values))
		return
	case k.value != value:
		k.value, k.metric = value, of.metric(value, k.metric.Label)
	}
	k.generation = f.generation
	of.told++
}

// pairs are the labels of a series.
func (m *family) pairs(values []string) []*dto.LabelPair {
	all, places := make([]*dto.LabelPair, len(values)), make([]dto.LabelPair, len(values))
	for i := range values {
		places[i].Name, places[i].Value = &m.sorted[i], &values[i]
		all[i] = &places[i]
	}
	return all
}

func (m *family) metric(value float64, labels []*dto.LabelPair) *dto.Metric {
	if m.Type == Counter {
		return &dto.Metric{Label: labels, Counter: &dto.Counter{Value: &value}}
	}
	return &dto.Metric{Label: labels, Gauge: &dto.Gauge{Value: &value}}
}

// finish forgets what is told no more, and returns the rest as the library's registry would.
func (f *families) finish() []*dto.MetricFamily {
	var all []*dto.MetricFamily
	for _, of := range f.all {
		if of.told != len(of.kept) {
			of.kept = slices.DeleteFunc(of.kept, func(k *kept) bool {
				gone := k.generation != f.generation
				if gone {
					delete(f.series, k.key)
				}
				return gone
			})
		}
		if of.fresh {
			slices.SortFunc(of.kept, func(a, b *kept) int { return slices.Compare(a.values, b.values) })
		}
		of.told, of.fresh = 0, false
		if len(of.kept) == 0 {
			continue
		}
		kind := dto.MetricType_GAUGE
		if of.Type == Counter {
			kind = dto.MetricType_COUNTER
		}
		one := &dto.MetricFamily{Name: &of.Name, Help: &of.Help, Type: &kind, Metric: make([]*dto.Metric, len(of.kept))}
		for i, k := range of.kept {
			one.Metric[i] = k.metric
		}
		all = append(all, one)
	}
	return all
}

// Gather implements prometheus.Gatherer. It is what a registry with the collector gathers, for less.
func (c *collector) Gather() ([]*dto.MetricFamily, error) {
	f := c.families
	f.mu.Lock()
	defer f.mu.Unlock()
	f.generation++
	f.err = nil
	c.tell(f.add)
	return f.finish(), f.err
}

// with adds what somebody else gathers, whose metrics have other names.
func (c *collector) with(others prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		own, err := c.Gather()
		more, othersErr := others.Gather()
		own = append(own, more...)
		slices.SortFunc(own, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
		return own, errors.Join(err, othersErr)
	})
}
