// Package health serves the standard gRPC health protocol on a Unix socket, for the
// standard probe program.
package health

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"kata-device-plugin/internal/unixsock"
)

// The services that may be asked for.
const (
	// Readiness is also what is asked for without a name.
	Readiness = "readiness"
	// Liveness is true as long as the process answers. It must not depend on
	// kubelet: to restart the plugin does not bring kubelet back.
	Liveness = "liveness"
)

// SocketName is the socket's name in the program's own directory.
const SocketName = "health.sock"

// Server answers health checks.
type Server struct {
	path   string
	health *health.Server
	grpc   *grpc.Server
	served chan struct{}
}

// ErrNoDirectory says that there is no place for the socket.
var ErrNoDirectory = errors.New("the directory does not exist")

// Serve begins to answer, not ready at first, on a socket in dir. A socket that an
// earlier life left there is replaced: the volume outlives the container.
func Serve(dir string, log *slog.Logger) (*Server, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("serve health on %s: %w", dir, ErrNoDirectory)
	}
	path := filepath.Join(dir, SocketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("serve health: %w", err)
	}
	listener, err := unixsock.Listen(path, log)
	if err != nil {
		return nil, fmt.Errorf("serve health: %w", err)
	}
	s := &Server{path: path, health: health.NewServer(), grpc: grpc.NewServer(), served: make(chan struct{})}
	s.health.SetServingStatus(Liveness, healthpb.HealthCheckResponse_SERVING)
	s.Ready(false)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	go func() {
		defer close(s.served)
		_ = s.grpc.Serve(listener) // ends with Close
	}()
	return s, nil
}

// Ready sets the answer of readiness checks. A nil server has nobody to tell.
func (s *Server) Ready(ready bool) {
	if s == nil {
		return
	}
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if ready {
		status = healthpb.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", status)
	s.health.SetServingStatus(Readiness, status)
}

// Close stops answering and removes the socket.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	s.grpc.Stop()
	<-s.served
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("close health: %w", err)
	}
	return nil
}
