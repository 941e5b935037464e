// Command rival is a device plugin that registers somebody else's resource.
//
//	rival SOCKET RESOURCE [ID ...]
//
// It prints "listed" when kubelet has its devices. SIGTERM ends it in good order.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rival:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: rival SOCKET RESOURCE [ID ...]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	const dir = "/var/lib/kubelet/device-plugins"
	listener, err := net.Listen("unix", filepath.Join(dir, args[0]))
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	server := grpc.NewServer()
	pluginapi.RegisterDevicePluginServer(server, &plugin{ids: args[2:]})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if err := register(ctx, filepath.Join(dir, "kubelet.sock"), args[0], args[1]); err != nil {
		return err
	}
	select {
	case err = <-served:
		return err
	case <-ctx.Done():
		server.Stop() // which removes the socket
		return <-served
	}
}

func register(ctx context.Context, kubelet, socket, resource string) error {
	conn, err := grpc.NewClient("unix://"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connect to kubelet: %w", err)
	}
	defer conn.Close()
	_, err = pluginapi.NewRegistrationClient(conn).Register(ctx, &pluginapi.RegisterRequest{
		Version: pluginapi.Version, Endpoint: socket, ResourceName: resource,
	})
	if err != nil {
		return fmt.Errorf("register %s: %w", resource, err)
	}
	return nil
}

// plugin serves devices that are always healthy, and grants nothing with them.
type plugin struct {
	pluginapi.UnimplementedDevicePluginServer
	ids []string
}

// GetDevicePluginOptions implements the device plugin API.
func (p *plugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

// ListAndWatch implements the device plugin API.
func (p *plugin) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	var list pluginapi.ListAndWatchResponse
	for _, id := range p.ids {
		list.Devices = append(list.Devices, &pluginapi.Device{ID: id, Health: pluginapi.Healthy})
	}
	if err := stream.Send(&list); err != nil {
		return err
	}
	fmt.Println("listed")
	<-stream.Context().Done()
	return nil
}

// Allocate implements the device plugin API.
func (p *plugin) Allocate(_ context.Context, req *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	resp := &pluginapi.AllocateResponse{}
	for range req.GetContainerRequests() {
		resp.ContainerResponses = append(resp.ContainerResponses, &pluginapi.ContainerAllocateResponse{})
	}
	return resp, nil
}
