// Package web serves HTTP to Prometheus, in the clear or as Prometheus's own web configuration
// file says: TLS, client certificates and passwords are configured as for every exporter.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"
)

const (
	// slow is how long a client may take to ask. What it sends behind its question is read by nobody.
	slow = 10 * time.Second
	// slowest is how long it may take to read the answer, which is more than scrapes are given. Whoever asks and
	// does not read keeps one of few places that there are for scrapes.
	slowest = time.Minute
	// idle is how long it may keep a connection for its next question: twice the longest time between scrapes with
	// which Prometheus has no gaps.
	idle = 10 * time.Minute
)

// Check says what is wrong with a web configuration file, nil when nothing is. "" is for none.
func Check(config string) error {
	if err := toolkit.Validate(config); err != nil {
		return fmt.Errorf("read web configuration %s: %w", config, err)
	}
	return nil
}

// Listen opens the port. An address such as :9817 is every address of the host.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("open the port for metrics: %w", err)
	}
	return l, nil
}

// Serve answers on a listener until ctx ends. The configuration file is read anew for each
// connection, so that certificates may be replaced.
func Serve(ctx context.Context, l net.Listener, config string, handler http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: slow, ReadTimeout: slow, WriteTimeout: slowest, IdleTimeout: idle,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelInfo), // else it is the process's own, which is no JSON
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // a scrape that is cut short is repeated
	defer stop()
	var systemd bool
	err := toolkit.Serve(l, server, &toolkit.FlagConfig{WebConfigFile: &config, WebSystemdSocket: &systemd}, log)
	if errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serve metrics: %w", err)
}
