//go:build kubernetes134

package kubelet

import (
	"context"
	"slices"
	"strconv"
	"sync"
	_ "unsafe" // for go:linkname

	cadvisorapi "github.com/google/cadvisor/info/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	deviceapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubernetes/pkg/kubelet/apis/podresources"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	plugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// This file translates between the package, which is written for the kubelet of
// version_newest.go, and kubelet 1.34. That one logs through the process-wide klog
// and passes hardly a context on, so what is handed over for either ends here.

// Differs tells how this kubelet differs from others. It keeps one connection for
// each resource and looks it up by the resource's name alone: runClient and
// getClient in cm/devicemanager/plugin/v1beta1/handler.go.
func Differs() Differences {
	return Differences{HangsUpOnSuccessor: true}
}

type (
	numaNode = cadvisorapi.Node
	manager  struct{ *devicemanager.ManagerImpl }
	topology struct{ topologymanager.Manager }
)

func adapt(m *devicemanager.ManagerImpl) *manager { return &manager{m} }

func newManagerImpl(_ klog.Logger, socket string, nodes []numaNode, store topologymanager.Store) (*devicemanager.ManagerImpl, error) {
	return newManagerImpl134(socket, nodes, store)
}

// newManagerImpl134 is kubelet's constructor; version_newest.go says why this one.
//
//go:linkname newManagerImpl134 k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newManagerImpl134(socket string, nodes []numaNode, store topologymanager.Store) (*devicemanager.ManagerImpl, error)

func (m *manager) Start(_ klog.Logger, pods devicemanager.ActivePodsFunc, s config.SourcesReady, c containermap.ContainerMap, running sets.Set[string]) error {
	return m.ManagerImpl.Start(pods, s, c, running)
}

func (m *manager) Stop(klog.Logger) error { return m.ManagerImpl.Stop() }

func (m *manager) CleanupPluginDirectory(_ klog.Logger, dir string) error {
	return m.ManagerImpl.CleanupPluginDirectory(dir)
}

func (m *manager) PluginConnected(_ context.Context, resource string, p plugin.DevicePlugin) error {
	return m.ManagerImpl.PluginConnected(resource, p)
}

func (m *manager) PluginDisconnected(_ klog.Logger, resource, _ string) {
	m.ManagerImpl.PluginDisconnected(resource)
}

func (m *manager) PluginListAndWatchReceiver(_ klog.Logger, resource string, list *deviceapi.ListAndWatchResponse) {
	m.ManagerImpl.PluginListAndWatchReceiver(resource, list)
}

func (m *manager) GetCapacity(klog.Logger) (capacity, allocatable v1.ResourceList, gone []string) {
	return m.ManagerImpl.GetCapacity()
}

func (m *manager) GetAllocatableDevices(klog.Logger) devicemanager.ResourceDeviceInstances {
	return m.ManagerImpl.GetAllocatableDevices()
}

func (m *manager) UpdateAllocatedDevices(klog.Logger) { m.ManagerImpl.UpdateAllocatedDevices() }

// UpdateAllocatedResourcesStatus works in this version too. A node calls it only
// with the feature gate ResourceHealthStatus, which is off by default until 1.36.
func (m *manager) UpdateAllocatedResourcesStatus(_ klog.Logger, pod *v1.Pod, status *v1.PodStatus) {
	m.ManagerImpl.UpdateAllocatedResourcesStatus(pod, status)
}

func (m *manager) GetDeviceRunContainerOptions(_ context.Context, pod *v1.Pod, c *v1.Container) (*devicemanager.DeviceRunContainerOptions, error) {
	return m.ManagerImpl.GetDeviceRunContainerOptions(pod, c)
}

func newTopology(_ klog.Logger, nodes []numaNode, policy string) (topology, error) {
	const scope = "container" // the constant is not exported in this version
	m, err := topologymanager.NewManager(nodes, policy, scope, nil)
	return topology{m}, err
}

func (t topology) AddHintProvider(_ klog.Logger, m *manager) {
	t.Manager.AddHintProvider(m.ManagerImpl)
}

func admit(_ context.Context, t topology, pod *v1.Pod) lifecycle.PodAdmitResult {
	return t.Admit(&lifecycle.PodAdmitAttributes{Pod: pod})
}

func newServer(_ klog.Logger, socket string, m *manager, w *watch) (plugin.Server, error) {
	return plugin.NewServer(socket, m.ManagerImpl, watch134{w})
}

// watch134 is a watch as this kubelet's connections call it.
type watch134 struct{ *watch }

func (w watch134) PluginConnected(resource string, p plugin.DevicePlugin) error {
	return w.watch.PluginConnected(context.Background(), resource, p)
}

func (w watch134) PluginDisconnected(resource string) {
	w.watch.PluginDisconnected(klog.Background(), resource, "")
}

func (w watch134) PluginListAndWatchReceiver(resource string, list *deviceapi.ListAndWatchResponse) {
	w.watch.PluginListAndWatchReceiver(klog.Background(), resource, list)
}

// registry134 is a registry as this kubelet's manager calls it.
type registry134 struct{ *registry }

func (r registry134) Start() error { return r.registry.Start(r.log) }
func (r registry134) Stop() error  { return r.registry.Stop(r.log) }

func (r *registry) asServer() plugin.Server { return registry134{r} }

func stopServer(_ klog.Logger, s plugin.Server) error { return s.Stop() }

func disconnect(_ klog.Logger, c plugin.Client) error { return c.Disconnect() }

// process is klog's only logger in this process: what any kubelet logs, all that
// run at the time receive. It cannot belong to one of them, because kubelet's code
// asks for it without saying for whom.
var process sharedLog

type sharedLog struct {
	once sync.Once
	mu   sync.Mutex
	all  []*lines
}

// Write implements io.Writer.
func (s *sharedLog) Write(line []byte) (int, error) {
	s.mu.Lock()
	all := slices.Clone(s.all)
	s.mu.Unlock()
	for _, l := range all {
		if n, err := l.Write(line); err != nil {
			return n, err
		}
	}
	return len(line), nil
}

// joinLog has l receive what kubelets log, until it is ended.
func joinLog(l *lines) {
	process.once.Do(func() { // before the first kubelet runs: klog is not made for a change while it is used
		klog.SetLogger(newLogger(&process))
		var level klog.Level
		_ = level.Set(strconv.Itoa(verbosity)) // its only error is that of a number that is none
	})
	process.mu.Lock()
	defer process.mu.Unlock()
	process.all = append(slices.DeleteFunc(process.all, (*lines).ended), l)
}

func providers(pods activePods, d devices) podresources.PodResourcesProviders {
	return podresources.PodResourcesProviders{Pods: pods, Devices: devices134{d}, Cpus: nothing{}, Memory: nothing{}, DynamicResources: nothing{}}
}

// devices134 is the device manager as this kubelet's PodResources asks it.
type devices134 struct{ devices }

func (d devices134) UpdateAllocatedDevices() { d.devices.UpdateAllocatedDevices(klog.Background()) }

func (d devices134) GetAllocatableDevices() []*api.ContainerDevices {
	return d.devices.GetAllocatableDevices(klog.Background())
}

// nothing stands for the managers that this kubelet lacks.
type nothing struct{}

func (nothing) GetCPUs(_, _ string) []int64 { return nil }
func (nothing) GetAllocatableCPUs() []int64 { return nil }

func (nothing) GetMemory(_, _ string) []*api.ContainerMemory { return nil }
func (nothing) GetAllocatableMemory() []*api.ContainerMemory { return nil }

func (nothing) GetDynamicResources(*v1.Pod, *v1.Container) []*api.DynamicResource { return nil }

// ended says whether nothing is written any more.
func (l *lines) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to == nil
}
