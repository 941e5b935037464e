package exporter

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"kata-device-plugin/internal/nodestate"
	"kata-device-plugin/internal/web"
)

// serve answers over HTTP, if there is a port for it, until the function that it returns is called.
func (e *Exporter) serve(ctx context.Context, cancel context.CancelCauseFunc) (stop func(), err error) {
	if e.options.Listen == "" {
		return func() {}, nil
	}
	l, err := web.Listen(ctx, e.options.Listen)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := web.Serve(ctx, l, e.options.Web, e.handler(), e.log); err != nil {
			cancel(err) // whoever relies on the metrics would rely on nothing
		}
	}()
	return func() { end(); <-done }, nil
}

// handler has a page for each question.
func (e *Exporter) handler() http.Handler {
	registry := prometheus.NewRegistry() // of what is of use beside what is promised
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(e.collector.with(registry), promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		// That the process answers is all that a restart could change.
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", e.ready)
	mux.HandleFunc("GET /{$}", e.page)
	mux.HandleFunc("GET /page.css", asset("text/css; charset=utf-8", pageCSS))
	mux.HandleFunc("GET /page.js", asset("text/javascript; charset=utf-8", pageJS))
	return mux
}

// ready says whether the node's hardware is known. Without kubelet there is still something to
// tell, so that it is away is in the metrics and not here.
func (e *Exporter) ready(w http.ResponseWriter, _ *http.Request) {
	state := e.collector.view.Load().state
	switch {
	case state == nil:
		http.Error(w, "not ready: the node has not been looked at yet", http.StatusServiceUnavailable)
	case !state.Source(nodestate.Hardware).Fresh(e.now(), e.options.Stale):
		http.Error(w, "not ready: the last look at the hardware is too old", http.StatusServiceUnavailable)
	default:
		fmt.Fprintln(w, "ok")
	}
}
