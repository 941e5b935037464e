//go:build node

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"kata-device-plugin/test/peer"
)

// another stands for the DaemonSet of another device plugin: its pods offer nothing. operators is one whose
// nodes an operator selects by a label of its own, which nobody patches.
const (
	another   = "another-plugin"
	operators = "operators-plugin"

	newLabel      = "example.com/kata-device-plugin"
	operatorLabel = "nvidia.com/gpu.deploy.sandbox-device-plugin"
)

// migration changes nodes over from another plugin to this one and back, one at a time, with the patches that
// docs/migration.md prints. The other's pods on other nodes are not restarted by that.
func migration(c *cluster) {
	first, second := c.join("migrate-1", hgxH100), c.join("migrate-2", hgxH100)
	first.ready()
	second.ready()
	c.overlay()
	for _, w := range []*worker{first, second} {
		w.without(daemonSet)
	}

	c.standIn(another, nil)
	stays := second.podReady(another)
	goes := first.podReady(another)
	patched, err := c.Client().AppsV1().DaemonSets(system).Patch(c.ctx, another, types.MergePatchType,
		printed(c, `(?s)patch daemonset OLD --type=merge -p '(.*?)'`), metav1.PatchOptions{})
	c.must(err)
	c.await("the change of the old DaemonSet to be seen", func(ctx context.Context) error {
		ds, err := c.Client().AppsV1().DaemonSets(system).Get(ctx, another, metav1.GetOptions{})
		if err == nil && (ds.Status.ObservedGeneration < patched.Generation || ds.Status.DesiredNumberScheduled != 2) {
			err = fmt.Errorf("its status is %+v", ds.Status)
		}
		return err
	})
	if now := first.podReady(another); now.UID != goes.UID {
		c.t.Errorf("the patch alone has replaced %s by %s", goes.Name, now.Name)
	}

	first.label(newLabel, `"yes"`)
	first.without(another)
	first.ready()
	second.without(daemonSet)
	second.unmoved(another, stays)

	first.label(newLabel, "null")
	first.without(daemonSet)
	first.podReady(another)
	first.await("nothing to be offered", func(ctx context.Context) error { return first.offers(ctx, gpu, 0) })
	second.unmoved(another, stays)

	for _, w := range []*worker{first, second} {
		w.label(newLabel, `"yes"`)
		w.without(another)
		w.ready()
	}
	c.must(c.Client().AppsV1().DaemonSets(system).Delete(c.ctx, another, metav1.DeleteOptions{}))
	c.withoutOverlay()
	c.complete(daemonSet, 2)
	kept := map[*worker]*v1.Pod{first: first.ready(), second: second.ready()}
	for w, pod := range kept {
		w.label(newLabel, "null")
		w.unmoved(daemonSet, pod)
	}
	c.operatorsNode(first, second)
}

// operatorsNode does it by the label of the GPU Operator, whose DaemonSet is not patched.
func (c *cluster) operatorsNode(first, second *worker) {
	c.t.Helper()
	c.overlay()
	for _, w := range []*worker{first, second} {
		w.label(operatorLabel, `"true"`) // as the operator does
		w.without(daemonSet)
	}
	c.standIn(operators, map[string]string{operatorLabel: "true"})
	first.podReady(operators)
	stays := second.podReady(operators)

	first.label(operatorLabel, `"false"`)
	first.label(newLabel, `"yes"`)
	first.without(operators)
	first.ready()
	second.unmoved(operators, stays)

	first.label(newLabel, "null")
	first.label(operatorLabel, `"true"`)
	first.without(daemonSet)
	first.podReady(operators)
	second.unmoved(operators, stays)
	c.withoutOverlay()
	c.complete(daemonSet, 2)
}

// overlay gives the plugin the node selector of the overlay in docs/migration.md. It goes with the part.
func (c *cluster) overlay() {
	c.t.Helper()
	patch, err := yaml.ToJSON(printed(c, `(?m)^      (- \{op: add, path: /spec/template/spec/nodeSelector/.*\})$`))
	c.must(err)
	_, err = c.Client().AppsV1().DaemonSets(system).Patch(c.ctx, daemonSet, types.JSONPatchType, patch, metav1.PatchOptions{})
	c.must(err)
	c.t.Cleanup(c.withoutOverlay)
}

// withoutOverlay is the base again.
func (c *cluster) withoutOverlay() {
	patch := `{"spec":{"template":{"spec":{"nodeSelector":{"` + newLabel + `":null}}}}}`
	_, err := c.Client().AppsV1().DaemonSets(system).Patch(context.Background(), daemonSet, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		c.t.Errorf("take the overlay away: %v", err)
	}
}

// printed is what a document has at a place.
func printed(c *cluster, pattern string) []byte {
	c.t.Helper()
	text, err := os.ReadFile("../../docs/migration.md")
	c.must(err)
	found := regexp.MustCompile(pattern).FindAllSubmatch(text, -1)
	if len(found) != 1 {
		c.t.Fatalf("docs/migration.md has %q %d times, want once", pattern, len(found))
	}
	return found[0][1]
}

// standIn makes a DaemonSet. It goes with the part of the test.
func (c *cluster) standIn(name string, nodes map[string]string) {
	c.t.Helper()
	labels := map[string]string{"app.kubernetes.io/name": name}
	pod := peer.NewPod(name, gpu, 0)
	pod.Spec.Containers[0].Resources = v1.ResourceRequirements{}
	pod.Spec.RestartPolicy, pod.Spec.NodeSelector = v1.RestartPolicyAlways, nodes
	_, err := c.Client().AppsV1().DaemonSets(system).Create(c.ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
		},
	}, metav1.CreateOptions{})
	c.must(err)
	c.t.Cleanup(func() {
		_ = c.Client().AppsV1().DaemonSets(system).Delete(context.Background(), name, metav1.DeleteOptions{}) // or it has gone
	})
}

// label sets a label of the node, or takes it away.
func (w *worker) label(key, value string) {
	w.t.Helper()
	w.patch(`{"metadata":{"labels":{"` + key + `":` + value + `}}}`)
}

// unmoved complains unless a DaemonSet has the same pod on the node, which runs as it ran.
func (w *worker) unmoved(daemonSet string, before *v1.Pod) {
	w.t.Helper()
	now, err := w.agents(w.ctx, daemonSet)
	w.must(err)
	var complaints error
	if len(now) != 1 {
		complaints = fmt.Errorf("there are %d pods", len(now))
	} else if p := now[0]; p.UID != before.UID || p.DeletionTimestamp != nil || peer.Container(&p).RestartCount != 0 {
		complaints = errors.New(strings.Join([]string{"it is", p.Name, string(p.UID), p.Status.String()}, " "))
	}
	if complaints != nil {
		w.t.Errorf("%s is no longer as it was on %s: %v", before.Name, w.Name(), complaints)
	}
}
