//go:build node

package node

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kata-device-plugin/test/peer"
)

// TestAllocate: a pod gets its devices through CDI, and everybody who is asked names the
// same ones: the container, PodResources, kubelet's record, and the CDI specs.
func TestAllocate(t *testing.T) {
	n := ready(t, peer.Options{})
	held := n.run("train", 2)
	pod, err := n.PodStatus(n.ctx, "train")
	n.must(err)
	var want []string
	for _, id := range held {
		name := gpu + "=" + id
		want = append(want, name)
		path, err := n.Resolve(name)
		n.must(err)
		if there, _ := n.nodeOf(id); path != there {
			t.Errorf("%s resolves to %s, is %s", name, path, there)
		}
	}
	granted, _, err := n.Granted(string(pod.UID), gpu)
	n.must(err)
	if !slices.Equal(granted, want) {
		t.Errorf("kubelet's record has %v, want %v", granted, want)
	}
	n.apart(held, n.run("other", 6))
	n.must(n.StaticPod(peer.NewPod("too-much", gpu, 1)))
	n.rejected("too-much", "UnexpectedAdmissionError")
	n.must(n.RemovePod(n.ctx, "train"))
	n.run("next", 2)
	for _, args := range [][]string{{"-service=liveness"}, {}} {
		out, err := n.Plugin().Probe(n.ctx, args...)
		n.must(err)
		if !strings.Contains(out, "SERVING") || strings.Contains(out, "NOT") {
			t.Errorf("the probe says %s", out)
		}
	}
}

// TestBothResources: one container gets GPUs and NVSwitches.
func TestBothResources(t *testing.T) {
	n := ready(t, peer.Options{})
	pod := peer.NewPod("train", gpu, 8)
	for _, list := range []v1.ResourceList{pod.Spec.Containers[0].Resources.Limits, pod.Spec.Containers[0].Resources.Requests} {
		list[nvswitch] = resource.MustParse("4")
	}
	n.must(n.StaticPod(pod))
	_, seen, err := n.AwaitRunning(n.ctx, "train")
	n.must(err)
	want := map[string]string{}
	for _, id := range append(n.gpus(), n.Machine.NVSwitches()...) {
		path, number := n.nodeOf(id)
		want[path] = number
	}
	if !maps.Equal(seen, want) {
		t.Errorf("the container sees %v, want %v", seen, want)
	}
}

// rejected waits until kubelet has refused a pod for a reason.
func (n *node) rejected(name, reason string) {
	n.t.Helper()
	_, err := n.AwaitPod(n.ctx, name, "to be refused", refusedFor(reason))
	n.must(err)
}

func refusedFor(reason string) func(*v1.Pod) error {
	return func(pod *v1.Pod) error {
		if pod.Status.Phase != v1.PodFailed || !strings.Contains(pod.Status.Reason, reason) {
			return errors.New("it is not refused for " + reason)
		}
		return nil
	}
}
