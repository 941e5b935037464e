//go:build node

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"kata-device-plugin/test/peer"
)

// TestCluster runs its parts on one control plane, each with nodes of its own: a control
// plane takes long to start, and to the next part a node that has left is no news.
func TestCluster(t *testing.T) {
	c := &cluster{ControlPlane: peer.StartControlPlane(t, programs), t: t}
	c.ctx = t.Context()
	c.apply(manifests)
	for _, part := range []struct {
		name string
		run  func(*cluster)
	}{
		{"install", install},
		{"schedule", schedule},
		{"device lost and back", lostAndBack},
		{"rejected and replaced", rejectedAndReplaced},
		{"cordon and taint", cordonAndTaint},
		{"migration", migration},
		{"kinds of nodes", kindsOfNodes},
		{"rolling update under load", rollingUpdate},
		{"reboot", reboot},
		{"Pod Security", podSecurity},
		{"NodeRestriction and RBAC", restriction},
		// After all others, which are to know nothing of claims.
		{"DRA install", draInstall},
		{"DRA pods", draPods},
		{"DRA force delete", draForceDelete},
		{"DRA restarts", draRestarts},
		{"DRA reboot", draReboot},
		{"DRA choice", draChoice},
		{"DRA alignment", draAlignment},
		{"DRA health", draHealth},
		{"DRA migration", draMigration},
		{"DRA rollback", draRollback},
		{"both mechanisms", bothMechanisms},
	} {
		t.Run(part.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			part.run(&cluster{ControlPlane: c.ControlPlane, t: t, ctx: ctx})
		})
	}
}

// cluster is the control plane, as a part of the test has it.
type cluster struct {
	*peer.ControlPlane
	t   *testing.T
	ctx context.Context
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// await waits until there is nothing to complain about.
func (c *cluster) await(what string, look func(context.Context) error) {
	c.t.Helper()
	c.must(peer.Await(c.ctx, what, look))
}

// apply does what `kubectl apply --server-side` does with a file, or with the objects of one kind
// in it.
func (c *cluster) apply(file string, kinds ...string) {
	c.t.Helper()
	text, err := os.ReadFile(file)
	c.must(err)
	groups, err := restmapper.GetAPIGroupResources(c.Client().Discovery())
	c.must(err)
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	client, err := dynamic.NewForConfig(c.Config())
	c.must(err)
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var object unstructured.Unstructured
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return
		}
		c.must(err)
		kind := object.GroupVersionKind()
		if len(kinds) > 0 && !slices.Contains(kinds, kind.Kind) {
			continue
		}
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		c.must(err)
		if object.GetNamespace() == "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			object.SetNamespace(peer.Namespace)
		}
		_, err = client.Resource(mapping.Resource).Namespace(object.GetNamespace()).
			Apply(c.ctx, object.GetName(), &object, metav1.ApplyOptions{FieldManager: "test"})
		c.must(err)
	}
}

// worker is a node that has joined.
type worker struct {
	*peer.Node
	*cluster
}

// join starts a node with the plugin's image on it, and those of other agents. The node leaves with
// the part of the test.
func (c *cluster) join(name, platform string, others ...string) *worker {
	c.t.Helper()
	w := c.prepare(name, platform, append(others, daemonSet)...)
	c.must(w.Kubelet().Start(c.ctx))
	c.t.Cleanup(w.leave)
	return w
}

// prepare starts a node without kubelet, with the images of agents and those that an upgrade has.
func (c *cluster) prepare(name, platform string, agents ...string) *worker {
	c.t.Helper()
	n := peer.StartNode(c.t, peer.Options{Programs: programs, Name: name, Platform: platform, Join: c.ControlPlane, Stopped: true})
	for _, agent := range agents {
		c.must(n.Containerd().Import(c.ctx, archive(agent)))
		imported := "docker.io/library/" + agent
		_, err := n.Containerd().Ctr(c.ctx, "image", "tag", imported+":dev", imported+":next")
		c.must(err)
	}
	return &worker{Node: n, cluster: c}
}

// leave takes a node out of the cluster, and waits until its pods have gone as well.
func (w *worker) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	none := int64(0)
	err := w.Client().CoreV1().Nodes().Delete(ctx, w.Name(), metav1.DeleteOptions{})
	if err == nil {
		err = peer.Await(ctx, "the pods of "+w.Name()+" to go", func(ctx context.Context) error {
			list, err := w.Client().CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + w.Name()})
			if err != nil {
				return err
			}
			for i := range list.Items {
				p := &list.Items[i]
				err = errors.Join(err, fmt.Errorf("%s is there", p.Name))
				_ = w.Client().CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &none}) // the next look tells
			}
			return err
		})
	}
	if err != nil {
		w.t.Errorf("take %s out of the cluster: %v", w.Name(), err)
	}
}

// ready waits until the DaemonSet's pod on the node is ready, and until the API server
// shows all devices of the node. It returns the pod.
func (w *worker) ready() *v1.Pod {
	w.t.Helper()
	pod := w.pluginReady()
	w.await("the node's devices", func(ctx context.Context) error {
		return errors.Join(w.offers(ctx, gpu, len(w.gpus())), w.offers(ctx, nvswitch, len(w.switches())))
	})
	return pod
}

// pluginReady waits until the plugin's pod on the node is ready.
func (w *worker) pluginReady() (pod *v1.Pod) {
	w.t.Helper()
	return w.podReady(daemonSet)
}

// podReady waits until a DaemonSet's pod on the node is ready.
func (w *worker) podReady(daemonSet string) (pod *v1.Pod) {
	w.t.Helper()
	w.await("the pod of "+daemonSet+" on "+w.Name(), func(ctx context.Context) error {
		list, err := w.Client().CoreV1().Pods(system).List(ctx, metav1.ListOptions{
			FieldSelector: "spec.nodeName=" + w.Name(), LabelSelector: "app.kubernetes.io/name=" + daemonSet,
		})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if pod = &list.Items[i]; pod.DeletionTimestamp == nil && isReady(pod) {
				return nil
			}
			err = errors.Join(err, fmt.Errorf("%s: %s, %+v", pod.Name, pod.Status.Phase, pod.Status.ContainerStatuses))
		}
		return errors.Join(err, errors.New("none is ready"))
	})
	return pod
}

func isReady(pod *v1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

func (w *worker) gpus() []string     { return w.Machine.GPUs() }
func (w *worker) switches() []string { return w.Machine.NVSwitches() }

// offers complains if the API server shows another number of a resource as allocatable.
func (w *worker) offers(ctx context.Context, resource string, want int) error {
	node, err := w.Client().CoreV1().Nodes().Get(ctx, w.Name(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	got, there := node.Status.Allocatable[v1.ResourceName(resource)]
	if got.Value() != int64(want) || !there {
		return fmt.Errorf("%s has %s of %s allocatable, want %d", w.Name(), got.String(), resource, want)
	}
	return nil
}

// replicas makes a ReplicaSet of unmodified pods that ask for devices. It goes with the
// part of the test.
func (c *cluster) replicas(name string, pods int32, devices int64) {
	c.t.Helper()
	labels := map[string]string{"app": name}
	pod := peer.NewPod(name, gpu, devices)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: peer.Namespace},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &pods, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
		},
	}
	_, err := c.Client().AppsV1().ReplicaSets(peer.Namespace).Create(c.ctx, rs, metav1.CreateOptions{})
	c.must(err)
	c.t.Cleanup(func() { c.discard(name) })
}

// discard removes a ReplicaSet and its pods, also those that wait for a node: they would get
// devices of the next part's.
func (c *cluster) discard(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	background := metav1.DeletePropagationBackground
	err := c.Client().AppsV1().ReplicaSets(peer.Namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	if err == nil {
		err = c.noPods(ctx, name)
	}
	if err != nil {
		c.t.Errorf("remove the pods of %s: %v", name, err)
	}
}

// noPods waits until a ReplicaSet has no pods any more.
func (c *cluster) noPods(ctx context.Context, name string) error {
	return peer.Await(ctx, "the pods of "+name+" to go", func(ctx context.Context) error {
		list, err := c.Client().CoreV1().Pods(peer.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("there are %d", len(list.Items))
		}
		return err
	})
}

// scale sets the number of a ReplicaSet's pods.
func (c *cluster) scale(name string, pods int32) {
	c.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, pods)
	_, err := c.Client().AppsV1().ReplicaSets(peer.Namespace).Patch(c.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	c.must(err)
}

// pods are those of a ReplicaSet that are not on their way out.
func (c *cluster) pods(ctx context.Context, name string) (pods []v1.Pod, err error) {
	list, err := c.Client().CoreV1().Pods(peer.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			pods = append(pods, list.Items[i])
		}
	}
	return pods, nil
}
