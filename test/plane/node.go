//go:build !kubernetes134

package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// NodeOptions say what a node is like. The zero value has kubelet's delays and directories
// of its own.
type NodeOptions struct {
	Labels map[string]string
	// Root is kubelet's root directory, and CDI that of the CDI specs. Empty makes one, with
	// a path so short that the sockets of a rolling update fit.
	Root, CDI string
	// Wiping is how long after the loss of a driver kubelet removes its slices. 0 means
	// kubelet's 30 seconds.
	Wiping time.Duration
	// Reconcile is how often kubelet looks for claims whose pods are gone. 0 means kubelet's
	// minute.
	Reconcile time.Duration
}

// Node is a node and the parts of its kubelet that have to do with DRA.
type Node struct {
	Name string
	Root string // kubelet's root directory
	CDI  string // of CDI specs

	plane   *Plane
	options NodeOptions
	client  kubernetes.Interface // as the node

	mu        sync.Mutex
	kubelet   *kubelet // nil while it is stopped
	runs      bool     // pods by itself
	residents map[types.UID]*resident
	plugins   plugins
}

// Node adds a node that is ready and starts its kubelet. Both end with the test.
func (p *Plane) Node(t testing.TB, name string, o NodeOptions) *Node {
	t.Helper()
	n := &Node{Name: name, Root: o.Root, CDI: o.CDI, plane: p, options: o, residents: map[types.UID]*resident{}}
	if err := n.layOut(t); err != nil {
		t.Fatalf("lay out node %s: %v", name, err)
	}
	// The Node authorizer and the admission plugin NodeRestriction know kubelets by these names.
	config := p.ConfigFor("system:node:"+name, []string{"system:nodes", "system:authenticated"}, nil)
	config.UserAgent = "kubelet/" + name
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("make a client for node %s: %v", name, err)
	}
	n.client = client
	if err := p.addNode(t.Context(), name, o.Labels); err != nil {
		t.Fatalf("add node %s: %v", name, err)
	}
	t.Cleanup(n.Stop)
	if err := n.Start(); err != nil {
		t.Fatalf("start the kubelet of node %s: %v", name, err)
	}
	return n
}

func (n *Node) layOut(t testing.TB) error {
	if n.Root == "" || n.CDI == "" {
		dir, err := os.MkdirTemp("", "n")
		if err != nil {
			return err
		}
		t.Cleanup(func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Errorf("remove the directory of node %s: %v", n.Name, err)
			}
		})
		if n.Root == "" {
			n.Root = filepath.Join(dir, "k")
		}
		if n.CDI == "" {
			n.CDI = filepath.Join(dir, "cdi")
		}
	}
	for _, dir := range []string{n.Registry(), filepath.Dir(n.PodResources()), n.CDI} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return err
		}
	}
	return nil
}

// Registry is where drivers place their registration sockets.
func (n *Node) Registry() string { return filepath.Join(n.Root, "plugins_registry") }

// PodResources is the path of kubelet's PodResources socket.
func (n *Node) PodResources() string { return filepath.Join(n.Root, "pod-resources", "kubelet.sock") }

// PluginDir makes the directory of a driver's own socket, as its DaemonSet's volume does.
func (n *Node) PluginDir(t testing.TB, driver string) string {
	t.Helper()
	dir := filepath.Join(n.Root, "plugins", driver)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatalf("make the directory of driver %s: %v", driver, err)
	}
	return dir
}

// addNode makes a Node object with room for pods. Admission gives a new one a taint, which
// the controller of node life cycles would remove.
func (p *Plane) addNode(ctx context.Context, name string, labels map[string]string) error {
	nodes := p.client.CoreV1().Nodes()
	n, err := nodes.Create(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	n.Spec.Taints = nil
	if n, err = nodes.Update(ctx, n, metav1.UpdateOptions{}); err != nil {
		return err
	}
	room := v1.ResourceList{v1.ResourceCPU: resource.MustParse("64"), v1.ResourceMemory: resource.MustParse("256Gi"), v1.ResourcePods: resource.MustParse("110")}
	n.Status.Capacity, n.Status.Allocatable = room, room
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	_, err = nodes.UpdateStatus(ctx, n, metav1.UpdateOptions{})
	return err
}

// SetAllocatable makes the node's status say how many of a resource a device plugin offers.
// After one has left, kubelet says 0; -1 is a node that has never heard of it.
func (n *Node) SetAllocatable(t testing.TB, name string, count int64) {
	t.Helper()
	var value *string
	if count >= 0 {
		value = new(strconv.FormatInt(count, 10))
	}
	list := map[string]*string{name: value}
	n.patch(t, map[string]any{"status": map[string]any{"capacity": list, "allocatable": list}}, "status")
}

// AwaitSeen waits until the scheduler has what the node's status says now. Nothing tells but a pod for which there was
// no place before.
func (n *Node) AwaitSeen(t testing.TB) {
	t.Helper()
	const news = "test.example/news"
	n.SetAllocatable(t, news, 1)
	n.plane.ForceDelete(t, n.plane.AwaitBound(t, n.plane.Pod(t, On(ExtendedPod("news", news, 1), n.Name))))
	n.SetAllocatable(t, news, -1)
}

// SetReady makes the node ready or not, with the taint that goes with it.
func (n *Node) SetReady(t testing.TB, ready bool) {
	t.Helper()
	status, taints := v1.ConditionTrue, []v1.Taint{}
	if !ready {
		status, taints = v1.ConditionUnknown, []v1.Taint{{Key: v1.TaintNodeUnreachable, Effect: v1.TaintEffectNoSchedule}}
	}
	n.patch(t, map[string]any{"status": map[string]any{"conditions": []v1.NodeCondition{{Type: v1.NodeReady, Status: status}}}}, "status")
	n.patch(t, map[string]any{"spec": map[string]any{"taints": taints}})
}

func (n *Node) patch(t testing.TB, change map[string]any, subresources ...string) {
	t.Helper()
	data, err := json.Marshal(change)
	if err == nil {
		_, err = n.plane.client.CoreV1().Nodes().Patch(t.Context(), n.Name, types.MergePatchType, data, metav1.PatchOptions{}, subresources...)
	}
	if err != nil {
		t.Fatalf("change node %s: %v", n.Name, err)
	}
}

// alive is the kubelet, or an error while there is none.
func (n *Node) alive() (*kubelet, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kubelet == nil {
		return nil, fmt.Errorf("node %s: %w", n.Name, errors.New("its kubelet is stopped"))
	}
	return n.kubelet, nil
}
