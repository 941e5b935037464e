//go:build node

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// cordon closes the node to new pods, or opens it.
func (w *worker) cordon(closed bool) {
	w.t.Helper()
	w.patch(fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, closed))
}

// mode sets the label that says whose the node's devices are, to a value in JSON.
func (w *worker) mode(value string) {
	w.t.Helper()
	w.patch(fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, modeLabel, value))
}

func (w *worker) patch(text string) {
	w.t.Helper()
	_, err := w.Client().CoreV1().Nodes().Patch(w.ctx, w.Name(), types.MergePatchType, []byte(text), metav1.PatchOptions{})
	w.must(err)
}

// agents are the pods of a DaemonSet on the node.
func (w *worker) agents(ctx context.Context, daemonSet string) ([]v1.Pod, error) {
	list, err := w.Client().CoreV1().Pods(system).List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName=" + w.Name(), LabelSelector: "app.kubernetes.io/name=" + daemonSet,
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// agent is the only pod of a DaemonSet on the node.
func (w *worker) agent(daemonSet string) *v1.Pod {
	w.t.Helper()
	pods, err := w.agents(w.ctx, daemonSet)
	w.must(err)
	if len(pods) != 1 {
		w.t.Fatalf("%d pods of %s are on %s, want one", len(pods), daemonSet, w.Name())
	}
	return &pods[0]
}

// without waits until a DaemonSet has no pod on the node.
func (w *worker) without(daemonSet string) {
	w.t.Helper()
	w.await(daemonSet+" to leave", func(ctx context.Context) error {
		pods, err := w.agents(ctx, daemonSet)
		if err == nil && len(pods) > 0 {
			err = errors.New("it is there")
		}
		return err
	})
}

// says waits until a line of a pod's log has a finding and some words.
func (w *worker) says(pod *v1.Pod, id string, words ...string) {
	w.t.Helper()
	w.await(fmt.Sprintf("%s of %v from %s", id, words, pod.Name), func(ctx context.Context) error {
		lines, err := w.logNow(ctx, pod)
		if err == nil && !said(lines, id, words...) {
			err = fmt.Errorf("it says:\n%s", strings.Join(lines, "\n"))
		}
		return err
	})
}

// said says whether some line has a finding and some words.
func said(lines []string, id string, words ...string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		missing := func(word string) bool { return !strings.Contains(line, word) }
		return !missing(`"finding":"`+id+`"`) && !slices.ContainsFunc(words, missing)
	})
}
