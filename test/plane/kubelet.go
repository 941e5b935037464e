//go:build !kubernetes134

package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
)

// kubelet is one life of a node's kubelet.
type kubelet struct {
	node    *Node
	client  kubernetes.Interface
	log     klog.Logger
	manager *dra.Manager
	factory informers.SharedInformerFactory
	pods    cache.SharedIndexInformer // those bound to the node
	server  *grpc.Server              // of PodResources
	queue   workqueue.TypedRateLimitingInterface[types.UID]

	ctx     context.Context // ends with it
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// Start starts the kubelet, over the state that an earlier one has left. As each start does,
// it removes all the node's slices.
func (n *Node) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kubelet != nil {
		return errors.New("it runs already")
	}
	k := &kubelet{node: n, client: n.client}
	k.ctx, k.cancel = context.WithCancel(n.plane.context())
	k.log = klog.FromContext(k.ctx).WithValues("node", n.Name)
	if err := k.start(); err != nil {
		k.stop()
		return err
	}
	n.kubelet = k
	if n.runs {
		k.run(n.residents)
	}
	return nil
}

// Stop ends the kubelet as the death of its process does: sockets and state stay, pods too.
func (n *Node) Stop() {
	n.mu.Lock()
	k := n.kubelet
	n.kubelet = nil
	n.mu.Unlock() // what runs in it may need it to end
	if k != nil {
		k.stop()
	}
}

// Restart is Stop and Start.
func (n *Node) Restart(t testing.TB) {
	t.Helper()
	n.Stop()
	if err := n.Start(); err != nil {
		t.Fatalf("start the kubelet of node %s again: %v", n.Name, err)
	}
}

// Reboot is Restart with what a reboot takes along: the pods' sandboxes and the CDI specs,
// which are below /run. What kubelet keeps on disk stays. A driver that runs has to be
// stopped before.
func (n *Node) Reboot(t testing.TB) {
	t.Helper()
	n.Stop()
	err := errors.Join(os.RemoveAll(n.CDI), os.MkdirAll(n.CDI, 0o750))
	if err != nil {
		t.Fatalf("empty the CDI directory of node %s: %v", n.Name, err)
	}
	n.mu.Lock()
	clear(n.residents)
	n.mu.Unlock()
	n.Restart(t)
}

func (k *kubelet) start() (err error) {
	n := k.node
	if k.manager, err = dra.NewManager(k.log, k.client, n.Root); err != nil {
		return fmt.Errorf("make its DRA manager: %w", err)
	}
	k.factory = informers.NewSharedInformerFactoryWithOptions(k.client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", n.Name).String()
	}))
	k.pods = k.factory.Core().V1().Pods().Informer()
	getNode := func(ctx context.Context) (*v1.Node, error) {
		return k.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	}
	if err := startManager(k.ctx, &k.running, k.manager, n.options, k.GetActivePods, getNode, sources{k.pods}); err != nil {
		return err
	}
	k.factory.StartWithContext(k.ctx)
	plugins := pluginmanager.NewPluginManager(n.Registry(), &record.FakeRecorder{})
	plugins.AddHandler(registration.DRAPlugin, k.manager.GetWatcherHandler())
	k.running.Go(func() { plugins.Run(k.ctx, sources{k.pods}, k.ctx.Done()) })
	return k.servePodResources(n.PodResources())
}

func (k *kubelet) stop() {
	k.cancel()
	if k.server != nil {
		k.server.Stop()
	}
	if k.manager != nil {
		k.manager.Stop()
	}
	k.running.Wait()
	if k.factory != nil {
		k.factory.Shutdown()
	}
}

// sources answers whether kubelet has heard of its pods. Until then nothing is released.
type sources struct{ pods cache.SharedIndexInformer }

// AddSource implements config.SourcesReady.
func (sources) AddSource(string) {}

// AllReady implements config.SourcesReady.
func (s sources) AllReady() bool { return s.pods.HasSynced() }

// GetPods are the node's pods, as PodResources sees them.
func (k *kubelet) GetPods() []*v1.Pod {
	var list []*v1.Pod
	for _, o := range k.pods.GetStore().List() {
		if pod, ok := o.(*v1.Pod); ok {
			list = append(list, pod)
		}
	}
	return list
}

// GetActivePods are those that have not ended.
func (k *kubelet) GetActivePods() []*v1.Pod {
	var list []*v1.Pod
	for _, pod := range k.GetPods() {
		if !ended(pod) {
			list = append(list, pod)
		}
	}
	return list
}

// GetPodByName finds one of the node's pods.
func (k *kubelet) GetPodByName(namespace, name string) (*v1.Pod, bool) {
	o, _, err := k.pods.GetStore().GetByKey(namespace + "/" + name)
	pod, ok := o.(*v1.Pod)
	return pod, err == nil && ok
}

// pod is what kubelet knows of a pod, or nil.
func (k *kubelet) pod(uid types.UID) *v1.Pod {
	for _, pod := range k.GetPods() {
		if pod.UID == uid {
			return pod
		}
	}
	return nil
}

func ended(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}
