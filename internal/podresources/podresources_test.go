package podresources_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/internal/podresources"
)

// kubelet answers List with errors first, one after the other.
type kubelet struct {
	api.UnimplementedPodResourcesListerServer
	errs  []error
	asked int
}

func (k *kubelet) List(context.Context, *api.ListPodResourcesRequest) (*api.ListPodResourcesResponse, error) {
	k.asked++
	if k.asked <= len(k.errs) {
		return nil, k.errs[k.asked-1]
	}
	return &api.ListPodResourcesResponse{PodResources: []*api.PodResources{{
		Namespace: "n", Name: "p",
		Containers: []*api.ContainerResources{{Devices: []*api.ContainerDevices{{ResourceName: "r", DeviceIds: []string{"a"}}}}},
	}}}, nil
}

func (k *kubelet) serve(t *testing.T) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kubelet") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, podresources.SocketName)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	api.RegisterPodResourcesListerServer(s, k)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := errors.Join(<-done, os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return socket
}

// TestAgain: kubelet that has had too many questions is asked again, while there is time, and no
// other error is a reason to.
func TestAgain(t *testing.T) {
	many := status.Error(codes.ResourceExhausted, "rejected by rate limit")
	for _, c := range []struct {
		what  string
		errs  []error
		asked int
		want  string // in the error, "" for none
	}{
		{"at once", nil, 1, ""},
		{"too many", []error{many, many}, 3, ""},
		{"too long an answer", []error{status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)")}, 1, "larger than max"},
		{"another error", []error{status.Error(codes.Unavailable, "away")}, 1, "away"},
	} {
		k := &kubelet{errs: c.errs}
		held, err := podresources.Holders(t.Context(), k.serve(t))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || k.asked != c.asked {
			t.Errorf("%s: %v, asked %d times", c.what, err, k.asked)
		}
		if err == nil && (len(held["r"]) != 1 || held["r"][0] != "a") {
			t.Errorf("%s: %v", c.what, held)
		}
	}
	k := &kubelet{errs: []error{many, many, many, many, many, many, many, many}}
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if _, err := podresources.Holders(ctx, k.serve(t)); err == nil {
		t.Error("there is an answer after the end")
	}
}
