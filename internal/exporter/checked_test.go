package exporter

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// checked is the collector as the library has them: by its checks of what is collected the tests know what is
// gathered to be right.
type checked struct {
	*collector
	descs map[string]*prometheus.Desc
}

func newChecked(c *collector) checked {
	all := checked{c, map[string]*prometheus.Desc{}}
	for name, m := range c.metrics {
		all.descs[name] = prometheus.NewDesc(m.Name, m.Help, m.labels, nil)
	}
	return all
}

// Describe implements prometheus.Collector.
func (c checked) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c checked) Collect(to chan<- prometheus.Metric) {
	c.tell(func(name string, value float64, labels []string) {
		kind := prometheus.GaugeValue
		if c.metrics[name].Type == Counter {
			kind = prometheus.CounterValue
		}
		valid := make([]string, len(labels))
		for i, label := range labels {
			valid[i] = strings.ToValidUTF8(label, "\uFFFD")
		}
		to <- prometheus.MustNewConstMetric(c.descs[name], kind, value, valid...)
	})
}
