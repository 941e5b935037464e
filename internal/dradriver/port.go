package dradriver

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"kata-device-plugin/internal/web"
)

// serveMetrics answers Prometheus, if there is a port for it, until the function that it returns
// is called.
func (d *Driver) serveMetrics(ctx context.Context, cancel context.CancelCauseFunc) (stop func(), err error) {
	if d.options.Listen == "" {
		return func() {}, nil
	}
	l, err := web.Listen(ctx, d.options.Listen)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(d.plugin.metrics.registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	ctx, end := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := web.Serve(ctx, l, d.options.Web, mux, slog.New(quiet{d.log.Handler()})); err != nil {
			cancel(err) // whoever relies on the metrics would rely on nothing
		}
	}()
	return func() { end(); <-done }, nil
}
