package kubelet_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// plugin is a device plugin that does what its test says. Device "x" is the CDI
// device example.com/dev=x and the node /dev/x.
type plugin struct {
	api.UnimplementedDevicePluginServer
	dir, resource string
	ended         chan struct{} // one value for each stream that has ended

	mu       sync.Mutex
	block    func(context.Context) error // if set, what the options call and Allocate do first
	server   *grpc.Server
	endpoint string
	number   int
	list     []*api.Device
	opened   int // streams
	changed  chan struct{}
	asked    [][]string // one sorted list of IDs for each Allocate
}

// newPlugin serves a plugin, which is not registered yet.
func newPlugin(t *testing.T, dir, resource string, list ...*api.Device) *plugin {
	t.Helper()
	p := &plugin{dir: dir, resource: resource, list: list, ended: make(chan struct{}, 10), changed: make(chan struct{})}
	p.serve(t)
	t.Cleanup(p.stop)
	return p
}

// device is a device on some NUMA nodes.
func device(id, health string, nodes ...int64) *api.Device {
	d := &api.Device{ID: id, Health: health}
	for _, n := range nodes {
		if d.Topology == nil {
			d.Topology = &api.TopologyInfo{}
		}
		d.Topology.Nodes = append(d.Topology.Nodes, &api.NUMANode{ID: n})
	}
	return d
}

// serve listens on a new socket. It is named after a device, so that two plugins with
// different ones can share a directory.
func (p *plugin) serve(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number++
	p.endpoint = fmt.Sprintf("plugin-%s-%d.sock", p.list[0].GetID(), p.number)
	l, err := net.Listen("unix", p.socket())
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	api.RegisterDevicePluginServer(s, p)
	p.server = s
	go func() { _ = s.Serve(l) }()
}

func (p *plugin) socket() string { return filepath.Join(p.dir, p.endpoint) }

// stop ends the plugin as its death would.
func (p *plugin) stop() {
	p.mu.Lock()
	s := p.server
	p.mu.Unlock()
	s.Stop()
}

func (p *plugin) register(ctx context.Context) error {
	conn, err := grpc.NewClient("unix://"+filepath.Join(p.dir, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = api.NewRegistrationClient(conn).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: p.endpoint, ResourceName: p.resource,
	})
	return err
}

// announce replaces the device list.
func (p *plugin) announce(list ...*api.Device) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = list
	close(p.changed)
	p.changed = make(chan struct{})
}

// allocations are the device IDs that Allocate was asked for, one list per call.
func (p *plugin) allocations() [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// streams is how many streams were ever opened.
func (p *plugin) streams() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened
}

// blockOn makes the options call and Allocate do something first.
func (p *plugin) blockOn(block func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.block = block
}

func (p *plugin) wait(ctx context.Context) error {
	p.mu.Lock()
	block := p.block
	p.mu.Unlock()
	if block == nil {
		return nil
	}
	return block(ctx)
}

func (p *plugin) GetDevicePluginOptions(ctx context.Context, _ *api.Empty) (*api.DevicePluginOptions, error) {
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	defer func() { p.ended <- struct{}{} }()
	p.mu.Lock()
	p.opened++
	p.mu.Unlock()
	for {
		p.mu.Lock()
		list, changed := p.list, p.changed
		p.mu.Unlock()
		if err := stream.Send(&api.ListAndWatchResponse{Devices: list}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return context.Cause(stream.Context())
		}
	}
}

func (p *plugin) Allocate(ctx context.Context, r *api.AllocateRequest) (*api.AllocateResponse, error) {
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	response := &api.AllocateResponse{}
	for _, c := range r.GetContainerRequests() {
		ids := slices.Sorted(slices.Values(c.GetDevicesIds()))
		p.mu.Lock()
		p.asked = append(p.asked, ids)
		p.mu.Unlock()
		answer := &api.ContainerAllocateResponse{}
		for _, id := range ids {
			answer.CdiDevices = append(answer.CdiDevices, &api.CDIDevice{Name: "example.com/dev=" + id})
			answer.Devices = append(answer.Devices, &api.DeviceSpec{HostPath: "/dev/" + id, ContainerPath: "/dev/" + id, Permissions: "rw"})
		}
		response.ContainerResponses = append(response.ContainerResponses, answer)
	}
	return response, nil
}
