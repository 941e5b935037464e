package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	ourcdi "kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/host"
)

// witness stands where kubelet stands and watches what a plugin does from there. It is
// no substitute for kubelet, which the module under test/ runs the plugin against: it
// sees the single messages, and what is on disk at the moment when one arrives.
type witness struct {
	t     testing.TB
	roots host.Roots
	t0    time.Time

	mu       sync.Mutex
	server   *grpc.Server
	plugins  map[string]*seen
	messages int
	faults   []string
	tampered bool // the test itself changed the CDI directory
	changed  chan struct{}
}

// seen is what the witness knows of one resource.
type seen struct {
	conn     *grpc.ClientConn
	client   pluginapi.DevicePluginClient
	streams  int               // open
	opened   int               // ever
	health   map[string]string // by ID, over all lives
	topology map[string]int64
	socket   string

	healthyCount int
	arrived      time.Time // when the last list came
}

func newWitness(t testing.TB, roots host.Roots) *witness {
	w := &witness{t: t, roots: roots, t0: time.Now(), plugins: map[string]*seen{}, changed: make(chan struct{})}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	if err := notify.Add(roots.CDI); err != nil {
		t.Fatal(err)
	}
	go func() {
		for range notify.Events {
			w.signal()
		}
	}()
	t.Cleanup(func() { notify.Close(); w.stop(); w.blameless() })
	return w
}

// start does what kubelet does: it removes every socket in the directory and listens.
func (w *witness) start() {
	w.t.Helper()
	entries, err := os.ReadDir(w.roots.DevicePlugins)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Type()&os.ModeSocket != 0 {
			os.Remove(filepath.Join(w.roots.DevicePlugins, e.Name()))
		}
	}
	l, err := net.Listen("unix", filepath.Join(w.roots.DevicePlugins, "kubelet.sock"))
	if err != nil {
		w.t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // kubelet leaves it behind
	server := grpc.NewServer()
	pluginapi.RegisterRegistrationServer(server, registry{w: w})
	w.mu.Lock()
	w.server = server
	w.mu.Unlock()
	go func() {
		if err := server.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			w.t.Error(err)
		}
	}()
}

// stop ends kubelet as a process ends: all connections at once, sockets left behind.
func (w *witness) stop() {
	w.mu.Lock()
	server := w.server
	w.server = nil
	var conns []*grpc.ClientConn
	for _, p := range w.plugins {
		if p.conn != nil {
			conns = append(conns, p.conn)
		}
	}
	w.mu.Unlock()
	if server != nil {
		server.Stop()
	}
	for _, c := range conns {
		c.Close()
	}
	w.await("all streams to end", func() bool {
		for _, p := range w.plugins {
			if p.streams > 0 {
				return false
			}
		}
		return true
	})
}

type registry struct {
	pluginapi.UnimplementedRegistrationServer
	w *witness
}

// Register dials back before it answers, as kubelet does.
func (r registry) Register(ctx context.Context, req *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	socket := filepath.Join(r.w.roots.DevicePlugins, req.GetEndpoint())
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	client := pluginapi.NewDevicePluginClient(conn)
	options, err := client.GetDevicePluginOptions(ctx, &pluginapi.Empty{})
	if err != nil {
		conn.Close()
		return nil, err
	}
	w := r.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if options.GetPreStartRequired() || !options.GetGetPreferredAllocationAvailable() {
		w.blame("options are %v", options)
	}
	p := w.plugins[req.GetResourceName()]
	if p == nil {
		p = &seen{health: map[string]string{}, topology: map[string]int64{}}
		w.plugins[req.GetResourceName()] = p
	}
	if p.streams > 0 {
		w.blame("%s registered while a stream was open", req.GetResourceName())
	}
	if p.socket == socket {
		w.blame("%s registered twice on %s", req.GetResourceName(), socket)
	}
	p.conn, p.client, p.socket = conn, client, socket
	p.streams++
	p.opened++
	go w.listen(req.GetResourceName(), p, client)
	return &pluginapi.Empty{}, nil
}

func (w *witness) listen(resource string, p *seen, client pluginapi.DevicePluginClient) {
	defer func() {
		w.mu.Lock()
		p.streams--
		w.mu.Unlock()
		w.signal()
	}()
	stream, err := client.ListAndWatch(context.Background(), &pluginapi.Empty{})
	if err != nil {
		return
	}
	var before []string
	for {
		list, err := stream.Recv()
		if err != nil {
			return
		}
		arrived := time.Now()
		w.mu.Lock()
		p.arrived = arrived
		before = w.check(resource, p, list, before)
		w.messages++
		w.mu.Unlock()
		w.signal()
	}
}

// check holds one message against the invariants.
func (w *witness) check(resource string, p *seen, list *pluginapi.ListAndWatchResponse, before []string) []string {
	var spec *cdi.Spec
	var specErr error
	if !w.tampered {
		spec, specErr = cdi.ReadSpec(filepath.Join(w.roots.CDI, ourcdi.FileName("kata.", resource)), 0)
	}
	// A device that leaves goes from the spec first, and then the list says so. To a kubelet
	// that comes back between the two, the first list is the last one.
	again := before == nil && p.opened > 1
	now := make(map[string]string, len(list.Devices))
	var text []string
	withTopology := 0
	for _, d := range list.Devices {
		now[d.ID] = d.Health
		text = append(text, d.String())
		if d.Topology != nil {
			withTopology++
			p.topology[d.ID] = d.Topology.Nodes[0].ID
		}
		if w.tampered || again {
			continue
		}
		if d.Health == pluginapi.Healthy && specErr != nil {
			w.blame("%s announced healthy, and its CDI spec: %v", d.ID, specErr)
		} else if d.Health == pluginapi.Healthy && spec.GetDevice(d.ID) == nil {
			w.blame("%s announced healthy, and not in the CDI spec", d.ID)
		}
	}
	for id := range p.health {
		if _, ok := now[id]; !ok {
			w.blame("%s was withdrawn from %s", id, resource)
		}
	}
	if withTopology != 0 && withTopology != len(list.Devices) {
		w.blame("%s has topology for %d of %d devices", resource, withTopology, len(list.Devices))
	}
	if slices.Equal(text, before) {
		w.blame("%s was sent again without a change", resource)
	}
	p.health, p.healthyCount = now, 0
	for _, h := range now {
		if h == pluginapi.Healthy {
			p.healthyCount++
		}
	}
	return text
}

// blame notes that an invariant was broken. The caller holds the mutex.
func (w *witness) blame(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

func (w *witness) blameless() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.faults {
		w.t.Error(f)
	}
}

// forget starts the ledger of announced IDs anew, for the next life of a plugin.
func (w *witness) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.plugins {
		p.health = map[string]string{}
	}
}

// tamper says whether the test is changing the CDI directory; what is announced
// meanwhile cannot be held against it.
func (w *witness) tamper(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tampered = on
}

func (w *witness) signal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
}

// await waits until a condition holds, which is tried with the mutex held whenever a
// message arrives, a stream ends or the CDI directory changes.
func (w *witness) await(what string, condition func() bool) {
	w.t.Helper()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for {
		w.mu.Lock()
		ok, changed := condition(), w.changed
		w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			w.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// healthy are the IDs that the resource has as healthy. The caller holds the mutex.
func (w *witness) healthy(resource string) []string {
	ids := []string{}
	if p := w.plugins[resource]; p != nil && p.streams > 0 {
		for id, h := range p.health {
			if h == pluginapi.Healthy {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

func (w *witness) lockedHealthy(resource string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.healthy(resource)
}

// client is the connection to the plugin of a resource.
func (w *witness) client(resource string) pluginapi.DevicePluginClient {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.plugins[resource].client
}

// allocate asks for devices as kubelet does: one container a call.
func (w *witness) allocate(resource string, ids ...string) (*pluginapi.ContainerAllocateResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	resp, err := w.client(resource).Allocate(ctx, &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: ids}},
	})
	if err != nil {
		return nil, err
	}
	if n := len(resp.GetContainerResponses()); n != 1 {
		return nil, fmt.Errorf("%d responses for one container", n)
	}
	return resp.GetContainerResponses()[0], nil
}
