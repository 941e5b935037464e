//go:build node

package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kata-device-plugin/test/peer"
)

const (
	gpu = "nvidia.com/gpu"
	// fabric is the resource of the NICs that are bound to VFIO, as the configuration names it.
	fabric = "example.com/fabric"
)

// all are values with every component. The configuration of NICs declares one pool.
func all(tag, pool string) string {
	image := "{pullPolicy: Never, tag: " + tag + "}"
	return "kataDevicePlugin: {image: " + image + "}\n" +
		"draDriver: {enabled: true, image: " + image + "}\n" +
		"exporter: {enabled: true, image: " + image + ", nicRules: {enabled: true}, extraArgs: [--poll-interval=1s]}\n" +
		"nicDevicePlugin:\n  enabled: true\n  image: " + image + "\n  config: |\n    " +
		`{"resourceList": [{"resourceName": "` + strings.TrimPrefix(pool, "example.com/") + `", "resourcePrefix": "example.com", ` +
		`"selectors": {"drivers": ["vfio-pci"]}, "vfioNodes": "cdev"}]}` + "\n"
}

// afternoon is what somebody does who tries everything: install all programs, run a pod with a GPU and a
// NIC, misspell a name in each place where it stands, give the node to DRA, upgrade, take it back,
// upgrade again, and remove everything.
func afternoon(t *testing.T, c *cluster) {
	c.networks()
	before := c.objects()
	c.must(c.helm.install(t.Context(), all("dev", fabric), false))
	c.offers("dev")
	c.allocatable(map[string]int{gpu: len(c.node.Machine.GPUs()), fabric: len(nics())})
	train := c.train()
	c.told(train)
	c.clean("with everything in order")
	c.remove("train")

	c.misspelt()
	c.toClaims()

	train = c.train()
	c.must(c.helm.upgrade(t.Context(), all("dev", fabric)))
	c.offers("dev")
	c.told(train)
	c.goesOn("after an upgrade", train)
	c.resolves()

	c.must(c.helm.uninstall())
	c.allocatable(map[string]int{gpu: 0, fabric: 0})
	c.goesOn("after everything was removed", train)
	c.remove("train")
	c.awaitObjects(before)
	c.cleaned()
}

// toClaims gives the node to the DRA driver, with an upgrade while a pod has a claim, and takes it back.
func (c *cluster) toClaims() {
	c.t.Helper()
	c.patchNode(`{"spec":{"unschedulable":true},"metadata":{"labels":{"node-restriction.kubernetes.io/passthrough-mode":"dra"}}}`)
	c.ready("kata-dra-driver", "dev")
	c.allocatable(map[string]int{gpu: 0, fabric: 0})
	c.published(len(c.node.Machine.GPUs()) + len(c.node.Machine.NVSwitches()) + len(nics()))
	c.patchNode(`{"spec":{"unschedulable":false}}`)
	c.claimant()
	claimant := c.holder("claimant")
	if len(claimant.seen) != 1 {
		c.t.Errorf("a pod with a claim of one GPU sees %v", claimant.seen)
	}
	c.told(claimant)
	c.clean("on a node of the DRA driver")

	c.settled("kata-dra-driver") // or the rollout may wait for ever: docs/dra.md, Upgrade
	c.must(c.helm.upgrade(c.t.Context(), all("next", fabric)))
	c.ready("kata-dra-driver", "next")
	c.goesOn("after an upgrade of the DRA driver", claimant)

	c.claimantGone()
	c.patchNode(`{"metadata":{"labels":{"node-restriction.kubernetes.io/passthrough-mode":null}}}`)
	c.offers("next")
	c.allocatable(map[string]int{gpu: len(c.node.Machine.GPUs()), fabric: len(nics())})
	c.published(0)
	c.clean("on a node that was given back")
}

// train makes a pod with a GPU and a NIC, and waits until it runs with just these.
func (c *cluster) train() *holder {
	c.t.Helper()
	c.create(trainPod(fabric))
	h := c.holder("train")
	want := map[string]string{}
	for _, resource := range []string{gpu, fabric} {
		ids, err := c.node.Held(c.t.Context(), "train", resource)
		c.must(err)
		if len(ids) != 1 {
			c.t.Errorf("the pod holds %v of %s, want one", ids, resource)
		}
		for _, id := range ids {
			path, number, err := c.node.DeviceNode(id)
			c.must(err)
			want[path] = number
		}
		h.ids = append(h.ids, ids...)
	}
	if !maps.Equal(h.seen, want) {
		c.t.Errorf("the pod sees %v, want %v", h.seen, want)
	}
	return h
}

// holder is a pod that runs with devices.
type holder struct {
	pod  *v1.Pod
	seen map[string]string // device nodes, with their numbers
	ids  []string          // of a device plugin
}

func (c *cluster) holder(name string) *holder {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	pod, seen, err := c.node.AwaitRunning(ctx, name)
	c.must(err)
	return &holder{pod: pod, seen: seen}
}

// goesOn complains unless a pod has the same container, with the same devices.
func (c *cluster) goesOn(when string, h *holder) {
	c.t.Helper()
	now := c.holder(h.pod.Name)
	if id := peer.Container(now.pod).ContainerID; id != peer.Container(h.pod).ContainerID || !maps.Equal(now.seen, h.seen) {
		c.t.Errorf("%s: the pod %s is container %s with %v, and was %s with %v", when, h.pod.Name, id, now.seen,
			peer.Container(h.pod).ContainerID, h.seen)
	}
}

// told waits until the exporter says which devices a pod has.
func (c *cluster) told(h *holder) {
	c.t.Helper()
	exporter := c.ready("device-exporter", "")
	c.await("the exporter to tell of "+h.pod.Name, func(ctx context.Context) error {
		text, err := c.Client().CoreV1().Pods(namespace).ProxyGet("http", exporter.Name, "9818", "metrics", nil).DoRaw(ctx)
		if err != nil {
			return err
		}
		var lines []string
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "passthrough_device_allocation_info{") && strings.Contains(line, `pod="`+h.pod.Name+`"`) {
				lines = append(lines, line)
			}
		}
		if len(lines) != len(h.seen) {
			return fmt.Errorf("it tells of %q, want %d devices", lines, len(h.seen))
		}
		for _, id := range h.ids {
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, `"`+id+`"`) }) {
				err = errors.Join(err, fmt.Errorf("%s is not in %q", id, lines))
			}
		}
		return err
	})
}

// settled waits until the only pod of a DaemonSet has been ready for as long as that wants.
func (c *cluster) settled(daemonSet string) {
	c.t.Helper()
	c.await(daemonSet+" to be available", func(ctx context.Context) error {
		ds, err := c.Client().AppsV1().DaemonSets(namespace).Get(ctx, daemonSet, metav1.GetOptions{})
		if err == nil && ds.Status.NumberAvailable != 1 {
			err = fmt.Errorf("%d of its pods are", ds.Status.NumberAvailable)
		}
		return err
	})
}

// resolves complains unless each device has one meaning in the CDI specs of the node.
func (c *cluster) resolves() {
	c.t.Helper()
	names := map[string][]string{gpu: c.node.Machine.GPUs(), fabric: nics()}
	for resource, ids := range names {
		for _, id := range ids {
			want, _, err := c.node.DeviceNode(id)
			c.must(err)
			if got, err := c.node.Resolve(resource + "=" + id); err != nil || got != want {
				c.t.Errorf("%s=%s is %s, want %s: %v", resource, id, got, want, err)
			}
		}
	}
}

func (c *cluster) patchNode(patch string) {
	c.t.Helper()
	_, err := c.Client().CoreV1().Nodes().Patch(c.t.Context(), c.node.Name(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	c.must(err)
}
