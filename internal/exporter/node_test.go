package exporter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/grpc"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/lookout"
	"kata-device-plugin/internal/nic"
	"kata-device-plugin/internal/podresources"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sysfs"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// kubelet answers as the real one does: a list for each device and NUMA node, in any order, and no
// plain init containers.
type kubelet struct {
	api.UnimplementedPodResourcesListerServer
	mu      sync.Mutex
	pods    []*api.PodResources
	offers  map[string][]string // IDs by resource
	silent  bool                // about what it offers
	asked   atomic.Int64
	two     map[string]bool // IDs that belong to two NUMA nodes
	shuffle *rand.Rand
}

func (k *kubelet) List(context.Context, *api.ListPodResourcesRequest) (*api.ListPodResourcesResponse, error) {
	k.asked.Add(1)
	k.mu.Lock()
	defer k.mu.Unlock()
	return &api.ListPodResourcesResponse{PodResources: slices.Clone(k.pods)}, nil
}

func (k *kubelet) GetAllocatableResources(context.Context, *api.AllocatableResourcesRequest) (*api.AllocatableResourcesResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.silent {
		return nil, errors.New("it has lost its tongue")
	}
	answer := &api.AllocatableResourcesResponse{}
	for resource, ids := range k.offers {
		answer.Devices = append(answer.Devices, k.devices(resource, ids...)...)
	}
	return answer, nil
}

// devices are the lists of devices of a container.
func (k *kubelet) devices(resource string, ids ...string) []*api.ContainerDevices {
	var all []*api.ContainerDevices
	for _, id := range ids {
		for node := range 2 {
			if node == 0 || k.two[id] {
				all = append(all, &api.ContainerDevices{ResourceName: resource, DeviceIds: []string{id},
					Topology: &api.TopologyInfo{Nodes: []*api.NUMANode{{ID: int64(node)}}}})
			}
		}
	}
	k.shuffle.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func container(name string, devices ...[]*api.ContainerDevices) *api.ContainerResources {
	return &api.ContainerResources{Name: name, Devices: slices.Concat(devices...)}
}

func pod(namespace, name string, containers ...*api.ContainerResources) *api.PodResources {
	return &api.PodResources{Namespace: namespace, Name: name, Containers: containers}
}

// set changes what is answered.
func (k *kubelet) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

// listen is a life of kubelet's server.
func (k *kubelet) listen(t testing.TB, socket string) (stop func()) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	must(t, err)
	s := grpc.NewServer()
	api.RegisterPodResourcesListerServer(s, k)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	return sync.OnceFunc(func() {
		s.Stop()
		if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // before it began
			t.Error(err)
		}
	})
}

// node is a simulated node with a kubelet and the exporter.
type node struct {
	*sim.Node
	t       testing.TB
	dir     string
	roots   host.Roots
	kubelet *kubelet
	stop    func() // of kubelet
	source  host.Source
	last    *host.Snapshot
	scraped scraped // the last
	time    time.Time
	e       *Exporter
}

func options(dir string) Options {
	return Options{
		Listen: ":0", Poll: 10 * time.Second, Stale: 90 * time.Second, Settle: 2 * time.Minute,
		Kubelet: filepath.Join(dir, "var/lib/kubelet"), Dev: filepath.Join(dir, "dev"),
	}
}

// newNode lays a node out. change may change the options.
func newNode(t testing.TB, p sim.Platform, change func(*Options)) *node {
	t.Helper()
	short, err := sim.TempDir() // a socket's path is short
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(short)) })
	dir := filepath.Join(short, "n")
	simulated, err := sim.New(dir, p)
	must(t, err)
	n := &node{Node: simulated, t: t, dir: dir, roots: simulated.Roots("device-exporter"), time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	must(t, os.MkdirAll(n.roots.PodResources, 0o750))
	n.kubelet = &kubelet{offers: map[string][]string{}, two: map[string]bool{}, shuffle: rand.New(rand.NewPCG(1, 2))}
	n.startKubelet()
	t.Cleanup(func() { n.stop() })
	must(t, os.Chtimes(n.socket(), n.time.Add(-time.Hour), n.time.Add(-time.Hour))) // this one is not young
	sys, err := sysfs.Open(n.roots.Sys)
	must(t, err)
	t.Cleanup(func() { must(t, sys.Close()) })
	o := options(dir)
	if change != nil {
		change(&o)
	}
	table := declare.Passthrough()
	n.source = host.Source{Sys: sys, Dev: devfs.Dir(n.roots.Dev), Wanted: table.Wants}
	if len(o.NICs) > 0 {
		n.source.Wanted = func(id host.Identity) bool { return table.Wants(id) || nic.Wants(id) }
		n.source.Network, n.source.Links = nic.Wants, n.Links
	}
	n.e = New("v1", Node{Roots: o.under(n.roots)}, o, slog.New(slog.DiscardHandler))
	n.e.now = func() time.Time { return n.time }
	n.e.collector.now = n.e.now
	t.Cleanup(func() { must(t, n.e.kubelet.Close()) })
	return n
}

func (n *node) socket() string { return filepath.Join(n.roots.PodResources, podresources.SocketName) }

func (n *node) startKubelet() { n.stop = n.kubelet.listen(n.t, n.socket()) }

// ask asks kubelet once, and look looks at all and joins it.
func (n *node) ask() bool { return n.e.kubelet.Ask(n.t.Context(), n.e.now) }

func (n *node) look() {
	n.last = n.source.Look(n.last)
	n.e.observed(n.last, n.time)
	n.e.join(lookout.Full, n.time)
}

// pass lets time pass, and asks and looks at the end.
func (n *node) pass(d time.Duration) {
	n.t.Helper()
	n.time = n.time.Add(d)
	if !n.ask() {
		n.t.Fatalf("kubelet has not answered: %v", n.e.facts.Pods.Err)
	}
	n.look()
}

// given is an entry of kubelet's record.
type given struct {
	PodUID, ContainerName, ResourceName string
	DeviceIDs                           map[string][]string
	AllocResp                           string
}

// checkpoint writes kubelet's record, as kubelet does: whole.
func (n *node) checkpoint(registered map[string][]string, entries ...given) {
	n.t.Helper()
	data, err := json.Marshal(map[string]any{
		"Data": map[string]any{"PodDeviceEntries": entries, "RegisteredDevices": registered}, "Checksum": 1,
	})
	must(n.t, err, os.WriteFile(n.CheckpointPath()+".new", data, 0o600), os.Rename(n.CheckpointPath()+".new", n.CheckpointPath()))
}

// cdiSpec writes the spec of a resource for the functions that are on VFIO.
func (n *node) cdiSpec(owner, kind string, ids ...string) {
	n.t.Helper()
	var all []cdi.Device
	for _, id := range ids {
		number, ok := n.cdev(id)
		if !ok {
			n.t.Fatalf("%s is not on VFIO", id)
		}
		all = append(all, cdi.Device{Name: id, Nodes: []cdi.Node{{Path: fmt.Sprintf("/dev/vfio/devices/vfio%d", number), Permissions: "rw"}}})
	}
	_, err := cdi.NewFile(n.roots.CDI, owner, kind).Sync(all)
	must(n.t, err)
}

// scraped is the text of a scrape, of a view at a time.
type scraped struct {
	of   *view
	at   time.Time
	text string
}

// text is what a scrape gets. Each is linted once.
func (n *node) text() string {
	n.t.Helper()
	if v := n.e.collector.view.Load(); n.scraped.of != v || !n.scraped.at.Equal(n.time) {
		n.scraped = scraped{v, n.time, n.scrape()}
	}
	return n.scraped.text
}

func (n *node) scrape() string {
	n.t.Helper()
	r := prometheus.NewPedanticRegistry()
	must(n.t, r.Register(newChecked(n.e.collector)))
	families, err := r.Gather()
	must(n.t, err)
	n.sameGathered(families)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	must(n.t, err)
	for _, p := range problems {
		n.t.Errorf("%s: %s", p.Metric, p.Text)
	}
	return n.encoded(families)
}

func (n *node) encoded(families []*dto.MetricFamily) string {
	n.t.Helper()
	var b bytes.Buffer
	to := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		must(n.t, to.Encode(f))
	}
	return b.String()
}

// sameGathered wants what a scrape gathers to be what the library's strictest registry makes of the same
// state, but for how long that took.
func (n *node) sameGathered(want []*dto.MetricFamily) {
	n.t.Helper()
	got, err := n.e.collector.Gather()
	must(n.t, err)
	timed := func(f *dto.MetricFamily) bool { return f.GetName() == prefix+"scrape_duration_seconds" }
	made, told := n.encoded(slices.DeleteFunc(slices.Clone(want), timed)), n.encoded(slices.DeleteFunc(got, timed))
	if made != told {
		n.t.Fatalf("gathered is not what is collected (-want +got):\n%s", cmp.Diff(made, told))
	}
}

// series are the lines of a metric, without the metric's name.
func (n *node) series(name string) []string {
	n.t.Helper()
	var all []string
	for line := range strings.Lines(n.text()) {
		if rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), prefix+name); ok && (rest[0] == '{' || rest[0] == ' ') {
			all = append(all, rest)
		}
	}
	return all
}

// want compares the series of a metric.
func (n *node) want(name string, series ...string) {
	n.t.Helper()
	if diff := cmp.Diff(series, n.series(name)); diff != "" && len(series)+len(n.series(name)) > 0 {
		n.t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
