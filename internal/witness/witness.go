// Package witness is a kubelet for tests that sees each message of a device plugin, and holds
// it against the design's invariants and against what is on disk when it arrives. It is no
// substitute for kubelet, which the module under test/ runs the plugins against.
package witness

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

// Witness stands where kubelet stands.
type Witness struct {
	t     testing.TB
	roots host.Roots

	specs string // begins the names of the plugin's CDI specs
	bare  func(resource, id string) bool

	Mu       sync.Mutex
	server   *grpc.Server
	Plugins  map[string]*Seen // by resource
	Messages int              // device lists
	faults   []string
	tampered bool // the test itself changed the CDI directory
	changed  chan struct{}
}

// Seen is what the witness knows of one resource.
type Seen struct {
	conn     *grpc.ClientConn
	Client   pluginapi.DevicePluginClient
	Streams  int               // open
	Opened   int               // ever
	Health   map[string]string // by ID, over all lives
	Topology map[string]int64
	socket   string

	HealthyCount int
	Arrived      time.Time // when the last list came
}

// New is a kubelet that does not run yet. specs begins the names of the plugin's CDI specs.
// bare says which devices have no node, and so no place in a spec; nil is for none. What was
// broken is told when the test ends.
func New(t testing.TB, roots host.Roots, specs string, bare func(resource, id string) bool) *Witness {
	if bare == nil {
		bare = func(string, string) bool { return false }
	}
	w := &Witness{t: t, roots: roots, specs: specs, bare: bare, Plugins: map[string]*Seen{}, changed: make(chan struct{})}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	if err := notify.Add(roots.CDI); err != nil {
		t.Fatal(err)
	}
	go func() {
		for range notify.Events {
			w.Signal()
		}
	}()
	t.Cleanup(func() { notify.Close(); w.Stop(); w.blameless() })
	return w
}

// Start does what kubelet does: it removes every socket in the directory and listens.
func (w *Witness) Start() {
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
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	pluginapi.RegisterRegistrationServer(server, registry{w: w})
	w.Mu.Lock()
	w.server = server
	w.Mu.Unlock()
	go func() {
		if err := server.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			w.t.Error(err)
		}
	}()
}

// Stop ends kubelet as a process ends: all connections at once, sockets left behind.
func (w *Witness) Stop() {
	w.Mu.Lock()
	server := w.server
	w.server = nil
	w.Mu.Unlock()
	if server != nil {
		server.Stop() // when no registration is under way any more
	}
	w.Mu.Lock()
	var conns []*grpc.ClientConn
	for _, p := range w.Plugins {
		if p.conn != nil {
			conns = append(conns, p.conn)
		}
	}
	w.Mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
	w.Await("all streams to end", func() bool {
		for _, p := range w.Plugins {
			if p.Streams > 0 {
				return false
			}
		}
		return true
	})
}

type registry struct {
	pluginapi.UnimplementedRegistrationServer
	w *Witness
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
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if options.GetPreStartRequired() || !options.GetGetPreferredAllocationAvailable() {
		w.blame("options are %v", options)
	}
	p := w.Plugins[req.GetResourceName()]
	if p == nil {
		p = &Seen{Health: map[string]string{}, Topology: map[string]int64{}}
		w.Plugins[req.GetResourceName()] = p
	}
	if p.Streams > 0 {
		w.blame("%s registered while a stream was open", req.GetResourceName())
	}
	if p.socket == socket {
		w.blame("%s registered twice on %s", req.GetResourceName(), socket)
	}
	p.conn, p.Client, p.socket = conn, client, socket
	p.Streams++
	p.Opened++
	go w.listen(req.GetResourceName(), p, client)
	return &pluginapi.Empty{}, nil
}

func (w *Witness) listen(resource string, p *Seen, client pluginapi.DevicePluginClient) {
	defer func() {
		w.Mu.Lock()
		p.Streams--
		w.Mu.Unlock()
		w.Signal()
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
		w.Mu.Lock()
		p.Arrived = arrived
		before = w.check(resource, p, list, before)
		w.Messages++
		w.Mu.Unlock()
		w.Signal()
	}
}

// check holds one message against the invariants.
func (w *Witness) check(resource string, p *Seen, list *pluginapi.ListAndWatchResponse, before []string) []string {
	var spec *cdi.Spec
	var specErr error
	if !w.tampered {
		spec, specErr = cdi.ReadSpec(filepath.Join(w.roots.CDI, ourcdi.FileName(w.specs, resource)), 0)
	}
	// A device that leaves goes from the spec first, and then the list says so. To a kubelet
	// that comes back between the two, the first list is the last one.
	again := before == nil && p.Opened > 1
	now := make(map[string]string, len(list.Devices))
	var text []string
	withTopology := 0
	for _, d := range list.Devices {
		now[d.ID] = d.Health
		text = append(text, d.String())
		if d.Topology != nil {
			withTopology++
			p.Topology[d.ID] = d.Topology.Nodes[0].ID
		}
		if w.tampered || again || w.bare(resource, d.ID) {
			continue
		}
		if d.Health == pluginapi.Healthy && specErr != nil {
			w.blame("%s announced healthy, and its CDI spec: %v", d.ID, specErr)
		} else if d.Health == pluginapi.Healthy && spec.GetDevice(d.ID) == nil {
			w.blame("%s announced healthy, and not in the CDI spec", d.ID)
		}
	}
	for id := range p.Health {
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
	p.Health, p.HealthyCount = now, 0
	for _, h := range now {
		if h == pluginapi.Healthy {
			p.HealthyCount++
		}
	}
	return text
}

// blame notes that an invariant was broken. The caller holds the mutex.
func (w *Witness) blame(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

func (w *Witness) blameless() {
	w.t.Helper()
	w.Mu.Lock()
	defer w.Mu.Unlock()
	for _, f := range w.faults {
		w.t.Error(f)
	}
}

// Forget starts the ledger of announced IDs anew, for the next life of a plugin.
func (w *Witness) Forget() {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	for _, p := range w.Plugins {
		p.Health = map[string]string{}
	}
}

// Tamper says whether the test is changing the CDI directory; what is announced
// meanwhile cannot be held against it.
func (w *Witness) Tamper(on bool) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.tampered = on
}

// Signal makes Await look again.
func (w *Witness) Signal() {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
}

// Await waits until a condition holds, which is tried with the mutex held whenever a
// message arrives, a stream ends or the CDI directory changes.
func (w *Witness) Await(what string, condition func() bool) {
	w.t.Helper()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for {
		w.Mu.Lock()
		ok, changed := condition(), w.changed
		w.Mu.Unlock()
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

// Healthy are the IDs that the resource has as healthy. The caller holds the mutex.
func (w *Witness) Healthy(resource string) []string {
	ids := []string{}
	if p := w.Plugins[resource]; p != nil && p.Streams > 0 {
		for id, h := range p.Health {
			if h == pluginapi.Healthy {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// LockedHealthy is Healthy for a caller that does not hold the mutex.
func (w *Witness) LockedHealthy(resource string) []string {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.Healthy(resource)
}

// Client is the connection to the plugin of a resource.
func (w *Witness) Client(resource string) pluginapi.DevicePluginClient {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.Plugins[resource].Client
}

// Allocate asks for devices as kubelet does: one container a call.
func (w *Witness) Allocate(resource string, ids ...string) (*pluginapi.ContainerAllocateResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	resp, err := w.Client(resource).Allocate(ctx, &pluginapi.AllocateRequest{
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
