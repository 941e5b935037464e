package dradriver

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/internal/dra"
	ours "kata-device-plugin/internal/podresources"
	"kata-device-plugin/internal/prepare"
)

// TestViewer: who asks while a question runs waits for the next one, with all others who do.
func TestViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		v := &viewer{ask: func(context.Context) (prepare.View, error) {
			n := asked.Add(1)
			time.Sleep(time.Second)
			if n == 3 {
				return prepare.View{}, errors.New("third")
			}
			return prepare.View{Plugged: map[string]string{"n": string('0' + n)}}, nil
		}}
		get := func(want string, after time.Duration) {
			begun := time.Now()
			got, err := v.view(t.Context())
			if err != nil || got.Plugged["n"] != want || time.Since(begun) != after {
				t.Errorf("%v, %v after %s; want %s after %s", got.Plugged, err, time.Since(begun), want, after)
			}
		}
		var all sync.WaitGroup
		all.Go(func() { get("1", time.Second) })
		synctest.Wait()
		time.Sleep(time.Second / 4)
		gone, leave := context.WithCancel(t.Context())
		all.Go(func() {
			if _, err := v.view(gone); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		for range 32 {
			all.Go(func() { get("2", 3*time.Second/4+time.Second) })
		}
		synctest.Wait()
		leave()
		all.Wait()
		if n := asked.Load(); n != 2 {
			t.Errorf("asked %d times", n)
		}
		if _, err := v.view(t.Context()); err == nil || err.Error() != "third" {
			t.Error(err)
		}
		get("4", time.Second)
	})
}

// limited is a kubelet that refuses the first calls of each kind, as its limit does it
// (pkg/kubelet/apis/grpc/ratelimit.go), or never answers.
type limited struct {
	podresources.UnimplementedPodResourcesListerServer
	refusals atomic.Int32
	hangs    bool
}

func (l *limited) answer(ctx context.Context) error {
	if l.hangs {
		<-ctx.Done()
	}
	if l.refusals.Add(-1) >= 0 {
		return status.Error(codes.ResourceExhausted, "rejected by rate limit")
	}
	return nil
}

func (l *limited) List(ctx context.Context, _ *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	return &podresources.ListPodResourcesResponse{}, l.answer(ctx)
}

func (l *limited) GetAllocatableResources(ctx context.Context, _ *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	return &podresources.AllocatableResourcesResponse{}, l.answer(ctx)
}

// serve returns the directory of the socket.
func (l *limited) serve(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kubelet") // a socket's path is short
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	listener, err := net.Listen("unix", filepath.Join(dir, "kubelet.sock"))
	must(t, err)
	s := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(s, l)
	done := make(chan error, 1)
	go func() { done <- s.Serve(listener) }()
	t.Cleanup(func() { s.Stop(); must(t, <-done) })
	return dir
}

// TestTooMany: kubelet that has had too many questions is asked again, while there is time.
func TestTooMany(t *testing.T) {
	kubelet := &limited{}
	client := ours.Dial(filepath.Join(kubelet.serve(t), "kubelet.sock"))
	defer func() { must(t, client.Close()) }()
	kubelet.refusals.Store(2)
	_, err := view(t.Context(), client)
	must(t, err)
	kubelet.refusals.Store(1 << 20)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := view(ctx, client); err == nil {
		t.Error("an answer")
	}
}

// TestAskBoth: a kubelet that is silent says nothing about the API server.
func TestAskBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Driver{
			api: &api{client: fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}), node: "n"},
			viewer: &viewer{ask: func(ctx context.Context) (prepare.View, error) {
				<-ctx.Done()
				return prepare.View{}, ctx.Err()
			}},
		}
		if d.ask(t.Context()) {
			t.Error("both have answered")
		}
		view, viewErr, node, nodeErr := d.answers.last()
		if view != nil || viewErr == nil || node == nil || node.uid != "u" || nodeErr != nil {
			t.Errorf("kubelet: %v %v, API server: %v %v", view, viewErr, node, nodeErr)
		}
	})
}

// TestAskSooner: while the node has devices of a device plugin it is asked again soon, since nobody
// offers them.
func TestAskSooner(t *testing.T) {
	for name, settled := range map[corev1.ResourceName]bool{"nvidia.com/gpu": false, "nvidia.com/nvswitch": false, "example.com/gpu": true, "cpu": true} {
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}
		node.Status.Allocatable = corev1.ResourceList{name: resource.MustParse("8")}
		d := &Driver{
			api:    &api{client: fake.NewClientset(&node), node: "n"},
			viewer: &viewer{ask: func(context.Context) (prepare.View, error) { return prepare.View{}, nil }},
		}
		if got := d.ask(t.Context()); got != settled {
			t.Errorf("%s: settled %v", name, got)
		}
		d.plugged = time.Now().Add(-leaving)
		if !d.ask(t.Context()) {
			t.Errorf("%s: it hurries for ever", name)
		}
		d.plugged, d.options.Excluded = time.Time{}, []dra.Type{dra.GPU, dra.NVSwitch}
		if !d.ask(t.Context()) {
			t.Errorf("%s: it hurries for what it does not offer", name)
		}
	}
}
