// Package told holds what an exporter tells against what it ought to.
package told

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Metrics are a scrape's series of the exporter, by their name and labels as they are written.
type Metrics map[string]float64

// Parse reads the text of a scrape.
func Parse(text string) (Metrics, error) {
	all := Metrics{}
	for line := range strings.Lines(text) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "passthrough_")
		if !ok {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("read the series %q: %w", line, err)
		}
		if _, twice := all[line[:at]]; twice {
			return nil, fmt.Errorf("the series %q is there twice", line)
		}
		all[line[:at]] = value
	}
	return all, nil
}

// Family are the series of one metric.
func (m Metrics) Family(name string) Metrics {
	all := Metrics{}
	for series, value := range m {
		if bare, _, _ := strings.Cut(series, "{"); bare == name {
			all[series] = value
		}
	}
	return all
}

// Expected are the series of an exporter as the API server, kubelet and the machine make them.
type Expected struct {
	series   Metrics
	families map[string]bool
}

// NewExpected makes one that expects nothing yet.
func NewExpected() *Expected { return &Expected{Metrics{}, map[string]bool{}} }

// Want says that there is a series with a value, and no other one of its metric but those that are wanted too.
func (e *Expected) Want(value float64, name string, labels ...string) {
	e.families[name] = true
	e.Among(value, name, labels...)
}

// Among says that there is a series with a value, among others of its metric.
func (e *Expected) Among(value float64, name string, labels ...string) {
	e.series[Series(name, labels...)] = value
}

// None says that metrics are to have no series, unless Want gives them some.
func (e *Expected) None(names ...string) {
	for _, name := range names {
		e.families[name] = true
	}
}

// Value is what a series is expected to have.
func (e *Expected) Value(name string, labels ...string) float64 {
	return e.series[Series(name, labels...)]
}

// Differ says what is wrong with a scrape.
func (e *Expected) Differ(got Metrics) error {
	var errs []error
	for name := range e.families {
		for s, value := range got.Family(name) {
			if _, ok := e.series[s]; !ok {
				errs = append(errs, fmt.Errorf("told is %s %v, want no such series", s, value))
			}
		}
	}
	for s, want := range e.series {
		switch value, ok := got[s]; {
		case !ok:
			errs = append(errs, fmt.Errorf("not told is %s %v", s, want))
		case value != want:
			errs = append(errs, fmt.Errorf("told is %s %v, want %v", s, value, want))
		}
	}
	return errors.Join(errs...)
}

// Series is a name with labels as they are written: sorted.
func Series(name string, labels ...string) string {
	var all []string
	for pair := range slices.Chunk(labels, 2) {
		all = append(all, fmt.Sprintf("%s=%q", pair[0], pair[1]))
	}
	slices.Sort(all)
	if len(all) == 0 {
		return name
	}
	return name + "{" + strings.Join(all, ",") + "}"
}
