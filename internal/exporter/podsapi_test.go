package exporter

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
	pods "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"kata-device-plugin/internal/exporter/podsapi"
)

// podsServer is kubelet's Pods API.
type podsServer struct {
	pods.UnimplementedPodsServer
	all   atomic.Pointer[[][]byte]
	asked atomic.Int64
}

func (s *podsServer) ListPods(context.Context, *pods.ListPodsRequest) (*pods.ListPodsResponse, error) {
	s.asked.Add(1)
	return &pods.ListPodsResponse{Pods: *s.all.Load()}, nil
}

// named is a pod of which only the metadata is encoded.
func named(namespace, name, uid string) []byte {
	var meta []byte
	for number, text := range map[protowire.Number]string{1: name, 3: namespace, 5: uid} {
		meta = protowire.AppendString(protowire.AppendTag(meta, number, protowire.BytesType), text)
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), meta)
}

// TestPodsAPI: the UID is that of the Pods API, which is asked when pods have changed, and rarely
// else. A kubelet that does not have it, or has it no more, is asked what it has.
func TestPodsAPI(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"), func(o *Options) { o.UIDs = true })
	all := n.GPUs()
	give := func(count int) {
		n.kubelet.set(func() {
			n.kubelet.pods = []*api.PodResources{pod("ml", "one", container("main", n.kubelet.devices(gpu, all[:count]...)))}
		})
	}
	give(1)
	n.pass(0)
	n.want("pod_uids", `{result="ambiguous"} 0`, `{result="resolved"} 0`, `{result="unknown"} 1`)

	socket := filepath.Join(n.e.options.Kubelet, podsapi.Socket)
	must(t, os.MkdirAll(filepath.Dir(socket), 0o750))
	l, err := net.Listen("unix", socket)
	must(t, err)
	s, server := grpc.NewServer(), &podsServer{}
	server.all.Store(&[][]byte{named("ml", "one", "u-1"), named("other", "one", "u-2")})
	pods.RegisterPodsServer(s, server)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	asked := func(when string, want int64) {
		t.Helper()
		if got := server.asked.Load(); got != want {
			t.Errorf("%s: asked %d times, want %d", when, got, want)
		}
	}
	give(2)
	n.pass(10 * time.Second)
	n.want("pod_uids", `{result="ambiguous"} 0`, `{result="resolved"} 1`, `{result="unknown"} 0`)
	asked("after a change", 1)
	n.pass(10 * time.Second)
	n.pass(10 * time.Second)
	asked("without a change", 1)
	n.pass(10 * time.Second)
	asked("after 30 seconds", 2)
	// The pod is made anew under its name, while the old one ends.
	server.all.Store(&[][]byte{named("ml", "one", "u-1"), named("ml", "one", "u-3")})
	give(3)
	n.pass(10 * time.Second)
	n.want("pod_uids", `{result="ambiguous"} 1`, `{result="resolved"} 0`, `{result="unknown"} 0`)
	s.Stop()
	must(t, <-done)
	give(1)
	n.pass(10 * time.Second)
	n.want("pod_uids", `{result="ambiguous"} 0`, `{result="resolved"} 0`, `{result="unknown"} 1`)
}
