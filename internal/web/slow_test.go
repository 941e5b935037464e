package web_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kata-device-plugin/internal/web"
)

// memory is a listener without a network, for a clock that a test has to itself.
type memory struct {
	clients chan net.Conn
	closed  chan struct{}
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.clients:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	close(m.closed)
	return nil
}

func (*memory) Addr() net.Addr { return &net.TCPAddr{} }

// TestSlow: nobody keeps a connection for ever, whether he does not ask, does not read the answer, sends what nobody wants,
// or says nothing more. Prometheus, which asks each minute, keeps its own.
func TestSlow(t *testing.T) {
	const question = "GET / HTTP/1.1\r\nHost: node\r\n"
	for name, tt := range map[string]struct {
		asks  string
		reads bool
		most  time.Duration
	}{
		"asks half a question":                {"GET / HTT", true, 15 * time.Second},
		"does not read the answer":            {question + "\r\n", false, 2 * time.Minute},
		"sends less than it says":             {question + "Content-Length: 9\r\n\r\n1", true, 15 * time.Second},
		"asks nothing more":                   {question + "\r\n", true, 15 * time.Minute},
		"asks twice, and reads neither":       {strings.Repeat(question+"\r\n", 2), false, 2 * time.Minute},
		"says nothing at all, from the start": {"", true, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &memory{make(chan net.Conn), make(chan struct{})}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				answer := strings.Repeat("passthrough_devices 1\n", 100_000)
				handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
				go func() { done <- web.Serve(ctx, l, "", handler, slog.New(slog.DiscardHandler)) }()
				client, server := net.Pipe()
				began := time.Now()
				l.clients <- server
				if tt.asks != "" {
					_, err := io.WriteString(client, tt.asks)
					must(t, err)
				}
				if tt.reads {
					_, _ = io.Copy(io.Discard, client) // until it is closed
				} else {
					time.Sleep(tt.most)
					if n, _ := io.Copy(io.Discard, client); n >= int64(len(answer)) {
						t.Errorf("it could still be read after %s", tt.most)
					}
				}
				if took := time.Since(began); tt.reads && took > tt.most {
					t.Errorf("it had its connection for %s", took)
				}
				must(t, client.Close())
				cancel()
				must(t, <-done)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		l := &memory{make(chan net.Conn), make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") })
		go func() { done <- web.Serve(ctx, l, "", handler, slog.New(slog.DiscardHandler)) }()
		client, server := net.Pipe()
		l.clients <- server
		from := bufio.NewReader(client)
		for range 3 {
			_, err := io.WriteString(client, question+"\r\n")
			must(t, err)
			response, err := http.ReadResponse(from, nil)
			must(t, err)
			text, err := io.ReadAll(response.Body)
			must(t, err, response.Body.Close())
			if string(text) != "metrics" {
				t.Errorf("%q", text)
			}
			time.Sleep(5 * time.Minute)
		}
		must(t, client.Close())
		cancel()
		must(t, <-done)
	})
}
