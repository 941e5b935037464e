package kubelet

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// plugin answers the five calls of the device plugin API in one life of the server.
type plugin struct {
	pluginapi.UnimplementedDevicePluginServer
	cfg      Config
	feed     *feed
	noteSent func()

	mu      sync.Mutex
	streams int
	opened  chan struct{} // closed when the first ListAndWatch stream begins
	ended   chan struct{} // closed when the last one has ended
}

// begin and end count streams. kubelet has one; that somebody looked on with another
// must not end the registration.
func (p *plugin) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streams++; p.streams == 1 && !closed(p.opened) {
		close(p.opened)
	}
}

func (p *plugin) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streams--; p.streams == 0 && !closed(p.ended) {
		close(p.ended)
	}
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func newPlugin(cfg Config, f *feed, noteSent func()) *plugin {
	return &plugin{cfg: cfg, feed: f, noteSent: noteSent, opened: make(chan struct{}), ended: make(chan struct{})}
}

// GetDevicePluginOptions is what kubelet asks right after it has dialled back.
func (p *plugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return options(), nil
}

func options() *pluginapi.DevicePluginOptions {
	return &pluginapi.DevicePluginOptions{PreStartRequired: false, GetPreferredAllocationAvailable: true}
}

// ListAndWatch sends the list at once, and each list that replaces it.
func (p *plugin) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	p.begin()
	defer p.end()
	var last sent
	for {
		list, now, err := p.feed.after(stream.Context(), last)
		if err != nil {
			return err // the stream or the server has ended
		}
		if err := stream.Send(list); err != nil {
			return err
		}
		last = now
		p.noteSent()
	}
}

// Allocate answers with exactly one response a container: kubelet has crashed on fewer.
func (p *plugin) Allocate(ctx context.Context, req *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	resp := &pluginapi.AllocateResponse{}
	var all []string
	for _, c := range req.GetContainerRequests() {
		if len(c.GetDevicesIds()) == 0 {
			return nil, &Refusal{Kind: Malformed, Reason: "the request names no device"}
		}
		all = append(all, c.GetDevicesIds()...)
	}
	if id, twice := duplicate(all); twice {
		return nil, &Refusal{Device: id, Kind: Malformed, Reason: "named twice in one request"}
	}
	for _, c := range req.GetContainerRequests() {
		answer, err := p.cfg.Allocate(ctx, c.GetDevicesIds())
		if err != nil {
			p.cfg.Log.Warn("refused an allocation", "resource", p.cfg.Resource, "device", c.GetDevicesIds(), "reason", err.Error())
			return nil, err
		}
		resp.ContainerResponses = append(resp.ContainerResponses, container(answer))
	}
	p.cfg.Log.Info("allocated", "resource", p.cfg.Resource, "device", all)
	return resp, nil
}

// container renders an answer: CDI names and nodes. With the names alone containerd 1.7 gives
// the container no device; the nodes are those of the CDI spec, so runtimes that know both see
// one device. Annotations would leak the host's CDI kind into the guest.
func container(a Answer) *pluginapi.ContainerAllocateResponse {
	r := &pluginapi.ContainerAllocateResponse{Envs: a.Env}
	for _, name := range a.CDI {
		r.CdiDevices = append(r.CdiDevices, &pluginapi.CDIDevice{Name: name})
	}
	for _, n := range a.Nodes {
		r.Devices = append(r.Devices, &pluginapi.DeviceSpec{HostPath: n.Host, ContainerPath: n.Container, Permissions: n.Permissions})
	}
	return r
}

func duplicate(ids []string) (string, bool) {
	ids = slices.Sorted(slices.Values(ids))
	for i := 1; i < len(ids); i++ {
		if ids[i] == ids[i-1] {
			return ids[i], true
		}
	}
	return "", false
}

// GetPreferredAllocation never fails: kubelet rejects the pod when it does.
func (p *plugin) GetPreferredAllocation(_ context.Context, req *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	resp := &pluginapi.PreferredAllocationResponse{}
	for _, c := range req.GetContainerRequests() {
		ids := p.cfg.Prefer(c.GetAvailableDeviceIDs(), c.GetMustIncludeDeviceIDs(), int(c.GetAllocationSize()))
		resp.ContainerResponses = append(resp.ContainerResponses, &pluginapi.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return resp, nil
}

// PreStartContainer is not asked for, and has nothing to do.
func (p *plugin) PreStartContainer(context.Context, *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	return &pluginapi.PreStartContainerResponse{}, nil
}
