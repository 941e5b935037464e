//go:build node

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/test/peer"
)

// Taints of a device, and their values: a function without a VFIO device, and one whose IOMMU group
// is not VFIO's alone.
const (
	taintUnhealthy = draDriver + "/unhealthy"
	taintPlugged   = draDriver + "/held-by-device-plugin"
	noCdev         = "HST020"
	notViable      = "HST002"
)

// draHealth: a device that falls sick under a pod has a taint, and the pod's status says so, by the
// name that the container has it by. The pod goes on, and is well again when the device is. One that
// is sick when its pod ends is nobody's until it is well.
func draHealth(c *cluster) {
	w := c.joinDRA("dra-health", hgxH100)
	w.driverReady()
	c.template(singleGPU)
	c.pod(claimPod("holder", singleGPU))
	holder := w.holding("holder")
	id := holder.devices[0]
	c.pod(peer.NewPod("rest", gpu, 7)) // so that there is nothing else to give
	rest := w.holding("rest")
	w.claimHealth("holder", id, v1.ResourceHealthStatusHealthy, "")

	c.must(w.Machine.UnbindBusy(w.address(id)))
	w.tainted(id, map[string]string{taintUnhealthy: noCdev})
	w.claimHealth("holder", id, v1.ResourceHealthStatusUnhealthy, noCdev)
	w.untouched(holder, rest)
	c.must(w.Machine.Release(w.address(id)))
	c.must(w.Machine.Bind(w.address(id), "vfio-pci"))
	w.tainted(id, nil)
	w.claimHealth("holder", id, v1.ResourceHealthStatusHealthy, "")
	w.goesOn("device back", holder)
	w.goesOn("device back", rest)

	// Another function of the device takes the group from VFIO: the device stays where it is.
	audio := w.function(id)
	audio.Path = path.Join(path.Dir(audio.Path), strings.TrimSuffix(id, ".0")+".1")
	audio.Class, audio.Device = 0x040300, 0x1aef
	c.must(w.Machine.Add(audio))
	c.must(w.Machine.Bind(audio.Address(), "snd_hda_intel"))
	w.tainted(id, map[string]string{taintUnhealthy: notViable})
	w.claimHealth("holder", id, v1.ResourceHealthStatusUnhealthy, notViable)
	c.pod(claimPod("early", singleGPU))
	c.pending("early", "cannot allocate all claims")
	claim := c.claimOf(c.bound("holder"))
	c.remove("holder")
	c.await("the end of the holder's claim", func(ctx context.Context) error {
		_, err := c.Client().ResourceV1().ResourceClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
	// To the scheduler the device is free now, but for its taint: it says so of a pod that it has not
	// seen before.
	c.pod(claimPod("late", singleGPU))
	c.pending("late", "cannot allocate all claims")
	w.tainted(id, map[string]string{taintUnhealthy: notViable})
	c.must(w.Machine.Unbind(audio.Address()))
	w.tainted(id, nil)
	c.remove("late")
	if got := w.claimed("early"); !slices.Equal(got, []string{id}) {
		c.t.Errorf("the pod that waited has %v, want %s", got, id)
	}
	w.goesOn("holder gone", rest)
}

// tainted waits until a device is published with just these taints, by key and value.
func (w *worker) tainted(id string, want map[string]string) {
	w.t.Helper()
	w.await(fmt.Sprintf("%s to have the taints %v", id, want), func(ctx context.Context) error {
		all, err := w.published(ctx)
		if err != nil {
			return err
		}
		device, there := all[deviceName("gpu", id)]
		if !there {
			return errors.New("it is not published")
		}
		if got := taintsOf(device); !maps.Equal(got, want) {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
}

// taintsOf are a device's taints, by key and value, nil for none. One that evicts is marked.
func taintsOf(device resourceapi.Device) (all map[string]string) {
	for _, taint := range device.Taints {
		if all == nil {
			all = map[string]string{}
		}
		all[taint.Key] = taint.Value
		if taint.Effect != resourceapi.DeviceTaintEffectNoSchedule {
			all[taint.Key] += " " + string(taint.Effect)
		}
	}
	return all
}

// claimHealth waits until the API server shows a health of the only device of a pod's claim, under
// the name by which CDI gives it to the container.
func (w *worker) claimHealth(name, id string, want v1.ResourceHealthStatus, words string) {
	w.t.Helper()
	pods := w.Client().CoreV1().Pods(peer.Namespace)
	w.await(fmt.Sprintf("%s of pod %s to be %s", id, name, want), func(ctx context.Context) error {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		all := peer.Container(pod).AllocatedResourcesStatus
		if len(all) != 1 || len(all[0].Resources) != 1 {
			return fmt.Errorf("its status is %+v", all)
		}
		cdi := fmt.Sprintf("%s/claim=%s-%s", draDriver, w.claimOf(pod).UID, deviceName("gpu", id))
		got, message := all[0].Resources[0], ""
		if got.Message != nil {
			message = *got.Message
		}
		if all[0].Name != "claim:devices" || string(got.ResourceID) != cdi || got.Health != want ||
			!strings.Contains(message, words) || (words == "") != (message == "") {
			return fmt.Errorf("its status is %s: %+v %q, want %s", all[0].Name, got, message, cdi)
		}
		return nil
	})
}

// untouched complains unless pods run in the containers that they had. It does not ask what they have.
func (w *worker) untouched(all ...holding) {
	w.t.Helper()
	for _, before := range all {
		name := before.pod.Name
		pod, err := w.Client().CoreV1().Pods(peer.Namespace).Get(w.ctx, name, metav1.GetOptions{})
		w.must(err)
		was, is := peer.Container(before.pod), peer.Container(pod)
		another := pod.UID != before.pod.UID || is.ContainerID != was.ContainerID
		if another || pod.DeletionTimestamp != nil || is.State.Running == nil || is.RestartCount != 0 {
			w.t.Errorf("pod %s did not go on: %+v", name, is)
		}
	}
}
