package e2e

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"kata-device-plugin/test/harness"
	"kata-device-plugin/test/kubelet"
)

// rival is another plugin for our resource.
type rival struct {
	api.UnimplementedDevicePluginServer
	list *api.ListAndWatchResponse
}

func (r *rival) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (r *rival) ListAndWatch(_ *api.Empty, s grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	if err := s.Send(r.list); err != nil {
		return err
	}
	<-s.Context().Done()
	return nil
}

// serve registers the rival and returns what kills it: its socket stays.
func (n *node) serve(r *rival) (kill func()) {
	n.t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(n.Roots.DevicePlugins, "nvidia-gpu.sock"), Net: "unix"})
	n.must(err)
	l.SetUnlinkOnClose(false)
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, r)
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	conn, err := grpc.NewClient("unix://"+filepath.Join(n.Roots.DevicePlugins, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	n.must(err)
	defer conn.Close()
	_, err = api.NewRegistrationClient(conn).Register(n.ctx, &api.RegisterRequest{Version: api.Version, Endpoint: "nvidia-gpu.sock", ResourceName: harness.GPU})
	n.must(err)
	return func() {
		server.Stop()
		if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			n.t.Error(err)
		}
	}
}

// TestContested: kubelet believes another plugin; that is said and not fought, and when
// the other one is killed, pods get our devices again.
func TestContested(t *testing.T) {
	n := newNode(t, "gb200")
	n.start()
	logged := func(texts ...string) func() bool {
		return func() bool {
			for line := range strings.Lines(n.log.String()) {
				all := true
				for _, text := range texts {
					all = all && strings.Contains(line, text)
				}
				if all {
					return true
				}
			}
			return false
		}
	}
	kill := n.serve(&rival{list: &api.ListAndWatchResponse{Devices: []*api.Device{{ID: "GPU-1", Health: api.Healthy}}}})
	n.must(n.Kubelet.Await(n.ctx, func() bool { return len(n.Kubelet.Allocatable(harness.GPU)) == 1 }))
	n.must(n.Kubelet.Await(n.ctx, logged("PLG007", "GPU-1", n.GPUs()[0])))
	n.must(n.Kubelet.Await(n.ctx, logged("not ready", "PLG007")))
	if ids := n.Kubelet.Allocatable(harness.GPU); len(ids) != 1 || ids[0] != "GPU-1" {
		t.Errorf("it was fought: kubelet has %v", ids)
	}
	kill()
	n.must(n.AwaitAll(n.ctx))
	n.must(n.Kubelet.Admit(n.ctx, kubelet.Pod("train", harness.GPU, 4)))
}

// TestRivalLeavesFirst: a plugin that registered before ours ends. Where kubelet hangs up
// on ours for that, ours registers again.
func TestRivalLeavesFirst(t *testing.T) {
	n := newNode(t, "gb200")
	n.must(n.StartKubelet(n.ctx))
	kill := n.serve(&rival{list: &api.ListAndWatchResponse{Devices: []*api.Device{{ID: "GPU-1", Health: api.Healthy}}}})
	n.must(n.Kubelet.Await(n.ctx, func() bool { return len(n.Kubelet.Allocatable(harness.GPU)) == 1 }))
	n.must(n.StartPlugin(n.ctx))
	n.must(n.AwaitAll(n.ctx))
	kill()
	registrations := 1
	if kubelet.Differs().HangsUpOnSuccessor {
		registrations = 2
	}
	n.must(n.Kubelet.Await(n.ctx, func() bool {
		return strings.Count(n.log.String(), `"msg":"registered with kubelet","resource":"`+harness.GPU) >= registrations
	}))
	n.must(n.AwaitAll(n.ctx))
	n.must(n.Kubelet.Admit(n.ctx, kubelet.Pod("train", harness.GPU, 4)))
}
