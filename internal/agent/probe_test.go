package agent

import (
	"context"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// serving asks the health service as the probe of the manifest does.
func (n *node) serving() bool {
	conn, err := grpc.NewClient("unix://"+filepath.Join(n.roots.Run, "health.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		n.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	resp, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		n.t.Fatal(err)
	}
	return resp.GetStatus() == healthpb.HealthCheckResponse_SERVING
}
