package health_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"kata-device-plugin/internal/health"
)

func TestHealth(t *testing.T) {
	dir, err := os.MkdirTemp("", "h")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, health.SocketName)
	old, err := net.Listen("unix", path) // an earlier life's, which was killed
	if err != nil {
		t.Fatal(err)
	}
	old.(*net.UnixListener).SetUnlinkOnClose(false)
	old.Close()

	s, err := health.Serve(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	check := func(service string, want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		resp, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{Service: service})
		if err != nil || resp.GetStatus() != want {
			t.Errorf("%q: %v, %v, want %v", service, resp.GetStatus(), err, want)
		}
	}
	for _, ready := range []bool{false, true, false} {
		want := healthpb.HealthCheckResponse_NOT_SERVING
		if ready {
			want = healthpb.HealthCheckResponse_SERVING
		}
		s.Ready(ready)
		check("", want)
		check(health.Readiness, want)
		check(health.Liveness, healthpb.HealthCheckResponse_SERVING)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// TestNoDirectory: without a directory there is no server, and that can be told apart.
func TestNoDirectory(t *testing.T) {
	s, err := health.Serve(filepath.Join(t.TempDir(), "absent"), slog.New(slog.DiscardHandler))
	if !errors.Is(err, health.ErrNoDirectory) {
		t.Errorf("got %v", err)
	}
	s.Ready(true) // nobody to tell
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
