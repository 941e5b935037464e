//go:build !kubernetes134

package kubelet

import (
	"context"
	_ "unsafe" // for go:linkname

	cadvisorapi "github.com/google/cadvisor/lib/model"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubernetes/pkg/kubelet/apis/podresources"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	plugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// This file and version_134.go are all that depends on kubelet's version. The rest
// of the package is written for the newest, which is that of go.mod; the file of
// an older one translates.

// Differs tells how this kubelet differs from others.
func Differs() Differences {
	return Differences{
		SecondRegistration: "already connected", // cm/devicemanager/manager.go, PluginConnected
	}
}

type (
	numaNode = cadvisorapi.Node
	manager  = devicemanager.ManagerImpl
	topology = topologymanager.Manager
)

func adapt(m *devicemanager.ManagerImpl) *manager { return m }

// newManagerImpl is kubelet's constructor with a choice of the socket's path. The
// exported one fixes it to /var/lib/kubelet/device-plugins, so that a test could
// only use it as root and in a mount namespace of its own. A function without a
// body needs an assembler file in the package; linkname.s is it.
//
//go:linkname newManagerImpl k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newManagerImpl(log klog.Logger, socket string, nodes []numaNode, store topologymanager.Store) (*devicemanager.ManagerImpl, error)

func newTopology(log klog.Logger, nodes []numaNode, policy string) (topology, error) {
	return topologymanager.NewManager(log, nodes, policy, topologymanager.ContainerTopologyScope, nil)
}

func admit(ctx context.Context, t topology, pod *v1.Pod) lifecycle.PodAdmitResult {
	return t.Admit(ctx, &lifecycle.PodAdmitAttributes{Pod: pod, Operation: lifecycle.AddOperation})
}

func newServer(log klog.Logger, socket string, m *manager, w *watch) (plugin.Server, error) {
	return plugin.NewServer(log, socket, m, w)
}

func (r *registry) asServer() plugin.Server { return r }

func stopServer(log klog.Logger, s plugin.Server) error { return s.Stop(log) }

func disconnect(log klog.Logger, c plugin.Client) error { return c.Disconnect(log) }

// joinLog has nothing to do: kubelet's code is handed its logger.
func joinLog(*lines) {}

func providers(pods activePods, d devices) podresources.PodResourcesProviders {
	return podresources.PodResourcesProviders{Pods: pods, Devices: d, Cpus: nothing{}, Memory: nothing{}, DynamicResources: nothing{}}
}

// nothing stands for the managers that this kubelet lacks.
type nothing struct{}

func (nothing) GetCPUs(*v1.Pod, *v1.Container) []int64 { return nil }
func (nothing) GetPodCPUs(string) []int64              { return nil }
func (nothing) GetAllocatableCPUs() []int64            { return nil }

func (nothing) GetMemory(klog.Logger, *v1.Pod, *v1.Container) []*api.ContainerMemory { return nil }
func (nothing) GetPodMemory(klog.Logger, string) []*api.ContainerMemory              { return nil }
func (nothing) GetAllocatableMemory(klog.Logger) []*api.ContainerMemory              { return nil }

func (nothing) GetDynamicResources(klog.Logger, *v1.Pod, *v1.Container) []*api.DynamicResource {
	return nil
}
