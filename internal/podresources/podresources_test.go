package podresources_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
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
		Containers: []*api.ContainerResources{
			{Name: "none"},
			{
				Name: "both",
				// b belongs to two NUMA nodes, so it is in two lists.
				Devices: []*api.ContainerDevices{list("r", "b", "a"), list("r", "b"), list("q", "b")},
				DynamicResources: []*api.DynamicResource{{
					ClaimNamespace: "n", ClaimName: "c", ClaimResources: []*api.ClaimResource{
						{DriverName: "d", PoolName: "node", DeviceName: "gpu", CdiDevices: []*api.CDIDevice{{Name: "v/c=1"}, {Name: "v/c=2"}}},
						{CdiDevices: []*api.CDIDevice{{Name: "v/c=3"}}}, // before 1.31
					},
				}},
			},
		},
	}}}, nil
}

func list(resource string, ids ...string) *api.ContainerDevices {
	return &api.ContainerDevices{ResourceName: resource, DeviceIds: ids}
}

// pods are what List says.
func pods() []podresources.Pod {
	return []podresources.Pod{{
		Namespace: "n", Name: "p",
		Containers: []podresources.Container{
			{Name: "none"},
			{
				Name:    "both",
				Devices: []podresources.Device{{Resource: "q", ID: "b"}, {Resource: "r", ID: "a"}, {Resource: "r", ID: "b"}},
				Claims: []podresources.Claim{{Namespace: "n", Name: "c", Devices: []podresources.ClaimDevice{
					{Driver: "d", Pool: "node", Device: "gpu", CDI: []string{"v/c=1", "v/c=2"}}, {CDI: []string{"v/c=3"}},
				}}},
			},
		},
	}}
}

func (k *kubelet) GetAllocatableResources(context.Context, *api.AllocatableResourcesRequest) (*api.AllocatableResourcesResponse, error) {
	return &api.AllocatableResourcesResponse{Devices: []*api.ContainerDevices{list("r", "b"), list("q", "x"), list("r", "a", "b")}}, nil
}

func (k *kubelet) serve(t *testing.T) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kubelet") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, podresources.SocketName)
	stop := k.listen(t, socket)
	t.Cleanup(func() {
		stop()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return socket
}

// listen is a life of kubelet's server.
func (k *kubelet) listen(t *testing.T, socket string) (stop func()) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	api.RegisterPodResourcesListerServer(s, k)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	return sync.OnceFunc(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func dial(t *testing.T, socket string) *podresources.Client {
	t.Helper()
	c := podresources.Dial(socket)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestAllocatable: each device once.
func TestAllocatable(t *testing.T) {
	got, err := dial(t, (&kubelet{}).serve(t)).Allocatable(t.Context())
	want := []podresources.Device{{Resource: "q", ID: "x"}, {Resource: "r", ID: "a"}, {Resource: "r", ID: "b"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
}

// TestKubeletRestarts: a client outlives kubelet. While that is away it says so at once, and the
// first question after its return is answered.
func TestKubeletRestarts(t *testing.T) {
	k := &kubelet{}
	dir := filepath.Dir(k.serve(t))
	socket := filepath.Join(dir, "second.sock")
	c := dial(t, socket)
	for range 5 {
		for range 3 {
			if _, err := c.Pods(t.Context()); err == nil || !strings.Contains(err.Error(), "no such file") {
				t.Fatalf("while kubelet is away: %v", err)
			}
		}
		stop := k.listen(t, socket)
		got, err := c.Pods(t.Context())
		if err != nil || !reflect.DeepEqual(got, pods()) {
			t.Errorf("%+v %v", got, err)
		}
		stop()
	}
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
		got, err := dial(t, k.serve(t)).Pods(t.Context())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || k.asked != c.asked {
			t.Errorf("%s: %v, asked %d times", c.what, err, k.asked)
		}
		if err == nil && !reflect.DeepEqual(got, pods()) {
			t.Errorf("%s: %+v, want %+v", c.what, got, pods())
		}
	}
	k := &kubelet{errs: []error{many, many, many, many, many, many, many, many}}
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if _, err := dial(t, k.serve(t)).Pods(ctx); err == nil {
		t.Error("there is an answer after the end")
	}
}
