package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

const (
	pluginsDir = "/var/lib/kubelet/device-plugins"
	cdiDir     = "/var/run/cdi"
)

// kubelet stands in kubelet's place. It takes registrations, keeps what is announced, and holds
// every announcement against what has to be true at that moment. What is not, it keeps as a fault.
type kubelet struct {
	mu        sync.Mutex
	server    *grpc.Server
	resources map[string]*resource
	faults    []string
	never     map[string]bool // IDs that must not be announced
	changed   chan struct{}
}

// resource is what is known of one resource.
type resource struct {
	conn     *grpc.ClientConn
	client   pluginapi.DevicePluginClient
	streams  int
	health   map[string]string // by ID, of this life of the plugin
	topology map[string][]int64
	arrived  time.Time // the last list
	lists    int
	before   []string
}

func newKubelet() *kubelet {
	return &kubelet{resources: map[string]*resource{}, never: map[string]bool{}, changed: make(chan struct{})}
}

// start removes all sockets and listens, as kubelet does.
func (k *kubelet) start() error {
	entries, err := os.ReadDir(pluginsDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type()&os.ModeSocket != 0 {
			err := os.Remove(filepath.Join(pluginsDir, e.Name()))
			if err != nil && !errors.Is(err, os.ErrNotExist) { // the plugin may be removing it just now
				return err
			}
		}
	}
	l, err := net.Listen("unix", filepath.Join(pluginsDir, "kubelet.sock"))
	if err != nil {
		return fmt.Errorf("listen as kubelet: %w", err)
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // kubelet leaves it behind
	}
	server := grpc.NewServer()
	pluginapi.RegisterRegistrationServer(server, registry{k: k})
	k.mu.Lock()
	k.server = server
	k.mu.Unlock()
	go func() {
		if err := server.Serve(l); err != nil {
			k.blame("serve as kubelet: %v", err)
		}
	}()
	return nil
}

// stop ends as a process ends: all connections at once.
func (k *kubelet) stop() error {
	k.mu.Lock()
	server, conns := k.server, []*grpc.ClientConn{}
	k.server = nil
	for _, r := range k.resources {
		conns = append(conns, r.conn)
	}
	k.mu.Unlock()
	server.Stop()
	var errs []error
	for _, c := range conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

type registry struct {
	pluginapi.UnimplementedRegistrationServer
	k *kubelet
}

// Register dials back before it answers, as kubelet does.
func (g registry) Register(ctx context.Context, req *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	k, name := g.k, req.GetResourceName()
	conn, err := grpc.NewClient("unix://"+filepath.Join(pluginsDir, req.GetEndpoint()), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	client := pluginapi.NewDevicePluginClient(conn)
	if _, err := client.GetDevicePluginOptions(ctx, &pluginapi.Empty{}); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.resources[name]
	if r == nil {
		r = &resource{}
		k.resources[name] = r
	}
	if r.streams > 0 {
		k.faults = append(k.faults, name+" registered while its stream was open")
	}
	r.conn, r.client, r.before = conn, client, nil
	r.streams++
	go k.listen(name, r, client)
	return &pluginapi.Empty{}, nil
}

func (k *kubelet) listen(name string, r *resource, client pluginapi.DevicePluginClient) {
	defer func() {
		k.mu.Lock()
		r.streams--
		k.mu.Unlock()
		k.signal()
	}()
	stream, err := client.ListAndWatch(context.Background(), &pluginapi.Empty{})
	if err != nil {
		return
	}
	for {
		list, err := stream.Recv()
		if err != nil {
			return
		}
		now := time.Now()
		k.mu.Lock()
		k.check(name, r, list)
		r.arrived = now
		r.lists++
		k.mu.Unlock()
		k.resolvable(name, r, list)
		k.signal()
	}
}

// check holds a list against the invariants, and keeps it. The caller holds the mutex.
func (k *kubelet) check(name string, r *resource, list *pluginapi.ListAndWatchResponse) {
	blame := func(format string, args ...any) {
		k.faults = append(k.faults, fmt.Sprintf(format, args...))
	}
	health, topology := map[string]string{}, map[string][]int64{}
	var text []string
	for _, d := range list.GetDevices() {
		health[d.GetID()] = d.GetHealth()
		text = append(text, d.String())
		for _, n := range d.GetTopology().GetNodes() {
			topology[d.GetID()] = append(topology[d.GetID()], n.GetID())
		}
		if k.never[d.GetID()] {
			blame("%s was announced as %s", d.GetID(), name)
		}
	}
	for id := range r.health {
		if _, ok := health[id]; !ok {
			blame("%s was withdrawn from %s", id, name)
		}
	}
	if slices.Equal(text, r.before) {
		blame("%s was announced again without a change", name)
	}
	r.health, r.topology, r.before = health, topology, text
}

// resolvable checks that the CDI spec has what a list announces as healthy. A list may be old by the
// time it arrives: the plugin has seen a device leave, and has written that. Then another list is on
// its way; without one it was a lie.
func (k *kubelet) resolvable(name string, r *resource, list *pluginapi.ListAndWatchResponse) {
	spec, err := cdi.ReadSpec(specPath(name), 0)
	var missing []string
	for _, d := range list.GetDevices() {
		if d.GetHealth() == pluginapi.Healthy && (err != nil || spec.GetDevice(d.GetID()) == nil) {
			missing = append(missing, d.GetID())
		}
	}
	if len(missing) == 0 {
		return
	}
	k.mu.Lock()
	seen := r.lists
	k.mu.Unlock()
	go func() {
		if !k.await(patience, func() bool { return r.lists > seen || r.streams == 0 }) {
			k.blame("%v of %s were announced healthy, and are not in the CDI spec (%v)", missing, name, err)
		}
	}()
}

func (k *kubelet) blame(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.faults = append(k.faults, fmt.Sprintf(format, args...))
}

// blames returns the faults since the last call.
func (k *kubelet) blames() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.faults
	k.faults = nil
	return f
}

func (k *kubelet) signal() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.changed)
	k.changed = make(chan struct{})
}
