package dradriver

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/finding"
)

// metrics are what Prometheus is told. Labels have a handful of values each: no UID, no address.
type metrics struct {
	registry   *prometheus.Registry
	registered prometheus.Gauge
	devices    *prometheus.GaugeVec
	claims     *prometheus.GaugeVec
	refused    *prometheus.GaugeVec
	calls      *prometheus.HistogramVec
	publish    *prometheus.CounterVec
	released   prometheus.Counter
	looked     prometheus.Gauge
	slices     *prometheus.GaugeVec
}

func newMetrics(version string) *metrics {
	const ns, sub = "passthrough", "dra"
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: ns, Subsystem: sub, Name: name, Help: help})
	}
	vector := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: ns, Subsystem: sub, Name: name, Help: help}, labels)
	}
	m := &metrics{
		registry:   prometheus.NewRegistry(),
		registered: gauge("registered", "1 while kubelet has the driver registered and answers, else 0."),
		devices:    vector("devices", "Devices by type and state: offered, tainted, or withheld, which are not published.", "type", "state"),
		claims:     vector("claims", "Claims with a record on the node by state. Damaged records cannot be read, and their devices are withheld.", "state"),
		refused:    vector("ownership_conflict", "1 for a type of devices that is a device plugin's on this node, else 0.", "type"),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: ns, Subsystem: sub, Name: "claim_duration_seconds",
			Help:    "How long it took to prepare or unprepare one claim, by result.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 45}, // kubelet gives up after 45
		}, []string{"operation", "result"}),
		publish: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: ns, Subsystem: sub, Name: "publish_errors_total", Help: "Errors while ResourceSlices were published, by class.",
		}, []string{"class"}),
		released: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: ns, Subsystem: sub, Name: "claims_released_total", Help: "Claims that were released because neither the API server nor kubelet knew them any more.",
		}),
		slices: vector("slices", "ResourceSlices of the node: wanted, and published, which are those that the API server has.", "state"),
		looked: gauge("last_look_timestamp_seconds", "When the hardware was looked at last, in seconds since 1970."),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: ns, Subsystem: sub, Name: "build_info", Help: "1, with the version as a label.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(m.registered, m.devices, m.claims, m.refused, m.calls, m.publish, m.released, m.looked, m.slices, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, class := range []string{"dropped_fields", "forbidden", "invalid", "transient"} {
		m.publish.WithLabelValues(class) // a counter that is not there yet cannot be seen to rise
	}
	return m
}

// setRegistered notes whether kubelet has registered the driver.
func (m *metrics) setRegistered(yes bool) {
	value := 0.0
	if yes {
		value = 1
	}
	m.registered.Set(value)
}

// call notes one call for one claim.
func (m *metrics) call(operation string, begun time.Time, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.calls.WithLabelValues(operation, result).Observe(time.Since(begun).Seconds())
}

func (m *metrics) publishError(class string) { m.publish.WithLabelValues(class).Inc() }

// offer notes what is offered. It is counted first: who asks in between is to see what was, or what
// is.
func (m *metrics) offer(offers []offer) {
	type kind struct {
		t     dra.Type
		state string
	}
	number, refused := map[kind]int{}, map[dra.Type]float64{}
	for _, o := range offers {
		if o.unpublished != nil && conflict(o.unpublished.ID) {
			refused[o.device.Type] = 1
		}
		state := "offered"
		switch {
		case o.unpublished != nil:
			state = "withheld"
		case len(o.against) > 0:
			state = "tainted"
		}
		number[kind{o.device.Type, state}]++
	}
	for _, t := range dra.Types() {
		m.refused.WithLabelValues(string(t)).Set(refused[t])
		for _, state := range []string{"offered", "tainted", "withheld"} {
			m.devices.WithLabelValues(string(t), state).Set(float64(number[kind{t, state}]))
		}
	}
}

// conflict says whether a finding is that a device plugin has the node's devices of a type.
func conflict(id string) bool {
	return id == finding.HeldElsewhere().ID || id == finding.StillAllocatable().ID
}

// records notes which claims there are.
func (m *metrics) records(records []claim.Record, damaged int) {
	number := map[claim.State]int{}
	for _, r := range records {
		number[r.State]++
	}
	for _, s := range []claim.State{claim.Preparing, claim.Prepared, claim.Unpreparing} {
		m.claims.WithLabelValues(string(s)).Set(float64(number[s]))
	}
	m.claims.WithLabelValues("Damaged").Set(float64(damaged))
}
