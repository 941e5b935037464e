// Package dradriver makes kata-dra-driver of its parts: it looks at the node, publishes what can
// be handed out, and prepares it for the claims that get it.
package dradriver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	metadatav1beta1 "k8s.io/dynamic-resource-allocation/api/metadata/v1beta1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"

	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/health"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/journal"
	"kata-device-plugin/internal/lookout"
	"kata-device-plugin/internal/nodelock"
	"kata-device-plugin/internal/podresources"
	"kata-device-plugin/internal/prepare"
	"kata-device-plugin/internal/sysfs"
)

// Driver is kata-dra-driver on a node.
type Driver struct {
	name, version string
	roots         host.Roots
	options       Options
	log           *slog.Logger
	journal       *journal.Journal

	source    host.Source
	lookout   *lookout.Lookout
	inventory atomic.Pointer[dra.Inventory]
	owner     *ownership
	engine    *prepare.Engine
	plugin    *plugin
	api       *api
	serving   *serving
	publisher *publisher
	health    *health.Server
	answers   answers
	viewer    *viewer
	turn      *nodelock.Kept // the right to publish
	state     state
	plugged   time.Time // since when a device plugin has devices of ours; of keepAsking
}

// New makes a driver. It reads and starts nothing yet.
func New(name, version string, roots host.Roots, o Options, log *slog.Logger) *Driver {
	roots.PodResources = filepath.Join(o.Kubelet, "pod-resources") // it follows kubelet's --root-dir
	d := &Driver{
		name: name, version: version, roots: roots, options: o, log: log, journal: journal.New(log),
	}
	d.owner = newOwnership(roots.CDI, d.holder())
	d.turn = nodelock.NewKept(d.data(), "publish", d.holder())
	return d
}

// data is the driver's directory below kubelet's. Its path has to be the same inside and outside
// of the container, since kubelet dials the socket in it.
func (d *Driver) data() string { return filepath.Join(d.options.Kubelet, "plugins", dra.Driver) }

// registry is where kubelet looks for plugins.
func (d *Driver) registry() string { return filepath.Join(d.options.Kubelet, "plugins_registry") }

// Run offers the node's devices until ctx ends. The records and CDI specs of claims stay, and so do
// the slices: pods go on with their devices, and kubelet removes the slices by itself when nobody
// comes back.
func (d *Driver) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client, err := connect(d.options.Kubeconfig, d.name+"/"+d.version)
	if err != nil {
		return err
	}
	kubelet := podresources.Dial(filepath.Join(d.roots.PodResources, podresources.SocketName))
	defer kubelet.Close()
	d.viewer = &viewer{ask: func(ctx context.Context) (prepare.View, error) { return view(ctx, kubelet) }}
	sys, err := sysfs.Open(d.roots.Sys)
	if err != nil {
		return err
	}
	defer sys.Close()
	d.source = host.Source{Sys: sys, Dev: devfs.Dir(d.roots.Dev), Wanted: dra.Wants, PCIeLink: dra.Wants}
	d.api = &api{client: client, node: d.options.Node}
	d.health, err = health.Serve(d.roots.Run, d.log)
	switch {
	case errors.Is(err, health.ErrNoDirectory):
		d.log.Info("running without a health socket", "reason", err.Error())
	case err != nil:
		return err
	}
	d.confine()
	err = d.serve(ctx, cancel, client)
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return errors.Join(err, d.turn.Release(), d.owner.release(), d.health.Close())
}

// serve starts what answers, and looks until ctx ends.
func (d *Driver) serve(ctx context.Context, cancel context.CancelCauseFunc, client kubernetes.Interface) error {
	if err := d.prepareEngine(); err != nil {
		return err
	}
	events := newEvents(client, d.name, d.options.Node)
	defer events.close()
	metrics := newMetrics(d.version)
	d.lookout = lookout.New(lookout.Config{
		Source:   d.source,
		Hardware: []string{d.roots.VFIO(), d.roots.VFIODevices()},
		Files:    []string{d.roots.CDI, filepath.Join(d.data(), "claims"), d.data(), d.registry()},
		Times:    lookout.DefaultTimes(),
		Report:   d.journal.Once,
	})
	defer d.lookout.Close()
	d.plugin = &plugin{
		engine: d.engine, feed: newFeed(), metrics: metrics, events: events, log: d.log,
		again: d.lookout.Poke, fatal: cancel,
	}
	stop, err := d.serveMetrics(ctx, cancel)
	if err != nil {
		return err
	}
	defer stop()
	logging := d.logging(ctx)
	d.serving = &serving{
		start: func() (*kubeletplugin.Helper, error) {
			return kubeletplugin.Start(logging, d.plugin, d.helperOptions(client)...)
		},
		sockets: socketsOf(d.registry(), d.data(), d.options.Pod),
	}
	if err := d.serving.begin(); err != nil {
		return err
	}
	defer func() { d.serving.end() }()
	d.publisher = newPublisher(logging, client, d.options.Node, d.plugin.problem)
	defer d.publisher.stop()
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { d.keepAsking(ctx) })
	background.Go(func() { d.keepChecking(ctx) })
	background.Go(func() { d.keepSweeping(ctx) })
	d.keepLooking(ctx)
	return nil
}

// prepareEngine makes the engine, and the directories that it works in.
func (d *Driver) prepareEngine() error {
	records, err := claim.Open(filepath.Join(d.data(), "claims"))
	if err != nil {
		return err
	}
	boot, err := bootID(d.roots.Proc)
	if err != nil {
		return err
	}
	d.engine = prepare.New(prepare.Config{
		Pool: d.options.Node, Records: records, CDI: d.roots.CDI, Boot: boot,
		Fresh:   d.fresh,
		HasNode: d.source.HasNode,
		Current: d.current,
		Kubelet: d.viewer.view,
		Owns:    d.owner.owns,
		Claim:   d.api.claim,
		Now:     time.Now,
		Log:     d.log,
	})
	return nil
}

// bootID tells this boot of the node from all others (Linux, drivers/char/random.c).
func bootID(proc string) (string, error) {
	text, err := os.ReadFile(filepath.Join(proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return "", fmt.Errorf("read the ID of this boot: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// current says whether a node of VFIO's is a device's at this moment. The class has a link for each
// number, into the device's directory.
func (d *Driver) current(address, node string) bool {
	link, err := d.source.Sys.ReadLink("class/vfio-dev/" + filepath.Base(node))
	return err == nil && strings.Contains(link, "/"+address+"/vfio-dev/")
}

// fresh is what a look found that began after the call.
func (d *Driver) fresh(ctx context.Context) (*dra.Inventory, error) {
	if err := d.lookout.Refresh(ctx); err != nil {
		return nil, err
	}
	return d.inventory.Load(), nil
}

// holder is how this process names itself to other agents.
func (d *Driver) holder() string {
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "unknown host name"
	}
	return d.name + " in " + hostname
}

// logging makes the libraries log as we do. What they say of each call is left out.
func (d *Driver) logging(ctx context.Context) context.Context {
	logger := logr.FromSlogHandler(quiet{d.log.Handler()})
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	return klog.NewContext(ctx, logger)
}

// helperOptions are what the helper for DRA drivers is told.
func (d *Driver) helperOptions(client kubernetes.Interface) []kubeletplugin.Option {
	options := []kubeletplugin.Option{
		kubeletplugin.DriverName(dra.Driver),
		kubeletplugin.KubeClient(client),
		kubeletplugin.NodeName(d.options.Node),
		kubeletplugin.RegistrarDirectoryPath(d.registry()),
		kubeletplugin.PluginDataDirectoryPath(d.data()),
		kubeletplugin.RegistrarListener(d.listenForRegistration),
		kubeletplugin.PluginListener(d.listen),
		kubeletplugin.GRPCVerbosity(-1),
		// The records' lock does it, which sweeps and looks take as well.
		kubeletplugin.Serialize(false),
	}
	if d.options.Pod != "" {
		options = append(options, kubeletplugin.RollingUpdate(types.UID(d.options.Pod)))
	}
	if d.options.Metadata {
		options = append(options, kubeletplugin.CDIDirectory(d.roots.CDI),
			kubeletplugin.EnableDeviceMetadata(true, []schema.GroupVersion{metadatav1beta1.SchemeGroupVersion}))
	}
	return options
}
