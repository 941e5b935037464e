// Package kubelet runs, inside a test or a demo, the parts of kubelet that a
// device plugin meets: registration, the device and topology managers with their
// checkpoint, and the PodResources API.
//
// It is kubelet's own code, not an imitation, so what it accepts, refuses or gets
// wrong is what a node would. What it leaves out is everything around: no
// container runtime, no API server, no root. Pods are admitted by calling Admit.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

// Options say what the node is like. The zero value is a node with one NUMA node
// and no topology policy that runs no pod yet.
type Options struct {
	// NUMANodes is the number of NUMA nodes, as cAdvisor would count them. 0 means 1.
	NUMANodes int
	// Policy is the topology manager's policy, such as "single-numa-node". Empty
	// means "none".
	Policy string
	// Running are the pods whose containers outlived the kubelet that ran in this
	// directory before. They keep their devices. A pod that is neither here
	// nor known, and not admitted, loses them to the next pod that asks.
	Running []*v1.Pod
	// Known are pods that are the node's and whose containers do not run, as after a boot.
	// Their devices are theirs until they are admitted, which does not happen by itself.
	Known []*v1.Pod
	// Listed is called with each device list as it arrives, before kubelet sees it, one
	// at a time for each resource. Nil does nothing.
	Listed func(resource string, list *api.ListAndWatchResponse)
	// Log receives what kubelet logs, up to verbosity 4. No line is written to it
	// after Stop has returned. Nil discards everything.
	Log io.Writer
}

// Kubelet is one node's kubelet as far as devices go. It is safe for concurrent
// use, and any number of them run in one process.
type Kubelet struct {
	dir      string
	log      klog.Logger
	lines    *lines
	manager  *manager
	topology topology
	sources  *sources
	changes  *changes
	done     chan struct{} // closed when Stop begins
	stop     func() error

	// admission admits one pod at a time. Kubelet does the same, and the device
	// manager's record of reusable devices has no lock because of it.
	admission sync.Mutex

	mu      sync.Mutex
	pods    []*v1.Pod
	servers []*grpc.Server
	serving sync.WaitGroup
}

// Start starts a kubelet whose device plugin directory is dir. It runs until Stop
// or until ctx ends.
//
// To start a second one in the same directory after Stop is what a restart of
// kubelet is to a plugin: all sockets in the directory are removed, kubelet.sock
// is made anew, the checkpoint is read, and nothing is allocatable until the
// plugin registers again.
func Start(ctx context.Context, dir string, o Options) (*Kubelet, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolve the device plugin directory: %w", err)
	}
	k := &Kubelet{
		dir:     dir,
		lines:   &lines{to: o.Log},
		sources: &sources{},
		changes: newChanges(),
		done:    make(chan struct{}),
		pods:    slices.Concat(o.Running, o.Known),
	}
	k.log = logger(o.Log, k.lines)
	joinLog(k.lines)
	k.stop = sync.OnceValue(k.shutdown)
	if err := k.assemble(o); err != nil {
		return nil, fmt.Errorf("assemble a kubelet in %s: %w", dir, err)
	}
	containers, running := containersOf(o.Running)
	if err := k.manager.Start(k.log, k.active, k.sources, containers, running); err != nil {
		_ = k.Stop()
		return nil, fmt.Errorf("start the device manager in %s: %w", dir, err)
	}
	if err := k.readmit(ctx, o.Running); err != nil {
		_ = k.Stop()
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = k.Stop() })
	return k, nil
}

// assemble makes the managers and introduces them to each other.
func (k *Kubelet) assemble(o Options) error {
	var nodes []numaNode
	for id := range max(o.NUMANodes, 1) {
		nodes = append(nodes, numaNode{Id: id})
	}
	policy := o.Policy
	if policy == "" {
		policy = topologymanager.PolicyNone
	}
	listed := o.Listed
	if listed == nil {
		listed = func(string, *api.ListAndWatchResponse) {}
	}
	var err error
	k.topology, err = newTopology(k.log, nodes, policy)
	if err != nil {
		return fmt.Errorf("make the topology manager: %w", err)
	}
	k.manager, err = newManager(k.log, filepath.Join(k.dir, "kubelet.sock"), nodes, k.topology, &watch{changed: k.changed, listed: listed})
	if err != nil {
		return fmt.Errorf("make the device manager: %w", err)
	}
	k.topology.AddHintProvider(k.log, k.manager)
	return nil
}

// Stop ends the kubelet as the death of its process would: every stream and every
// call to or from a plugin ends, nothing more is written to the checkpoint, and
// all sockets stay in the directory, where they answer no more. Further calls do
// nothing and return what the first one returned.
func (k *Kubelet) Stop() error { return k.stop() }

func (k *Kubelet) shutdown() error {
	close(k.done)
	err := k.manager.Stop(k.log)
	k.mu.Lock()
	for _, s := range k.servers {
		s.Stop()
	}
	k.mu.Unlock()
	k.serving.Wait()
	k.admission.Lock() // an admission under way ends with the connection it waits on
	defer k.admission.Unlock()
	k.changes.broadcast()
	k.lines.end()
	if err != nil {
		return fmt.Errorf("stop the device manager in %s: %w", k.dir, err)
	}
	return nil
}

// alive is an error once Stop has begun.
func (k *Kubelet) alive() error {
	select {
	case <-k.done:
		return errors.New("kubelet is stopped")
	default:
		return nil
	}
}

// changed is called after each event that can change what the kubelet shows.
func (k *Kubelet) changed() {
	select {
	case <-k.manager.Updates(): // kubelet's pod workers would take it; unread, the channel fills
	default:
	}
	k.changes.broadcast()
}
