//go:build node

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kata-device-plugin/test/peer"
)

// heldElsewhere is what is said of a resource that another agent offers.
const heldElsewhere = "PLG018"

// bothMechanisms: the label that keeps the plugin from the driver's nodes is of no effect, so both are
// on one node. Who comes second offers nothing, is not ready, and says who has the devices; it takes
// over when that one leaves. When both start at once, each type is still offered by one.
func bothMechanisms(c *cluster) {
	c.apply(draManifests)
	w := c.join("both", hgxH100, draDaemonSet)
	c.everywhere()
	c.complete(daemonSet, 1)
	plugin := w.ready()
	c.template(singleGPU)
	watch := w.watchHolders()

	w.mode(`"dra"`)
	w.refused(draDaemonSet, plugin)
	w.must(w.offered(c.ctx, true, gpu, nvswitch))
	c.pod(peer.NewPod("by-plugin", gpu, 1))
	held := w.plugged("by-plugin", 1)
	c.pod(claimPod("by-claim", singleGPU))
	c.pending("by-claim", "cannot allocate all claims")

	c.apply(manifests) // with the label in effect
	w.without(daemonSet)
	driver := w.driverReady()
	w.must(w.offered(c.ctx, false, gpu, nvswitch))
	w.tainted(held.devices[0], map[string]string{taintPlugged: heldByPlugin})
	if got := w.claimed("by-claim"); slices.Equal(got, held.devices) {
		c.t.Errorf("one pod has %v of the plugin, and another one by its claim", got)
	}

	c.everywhere()
	w.refused(daemonSet, driver)
	w.must(w.offered(c.ctx, false, gpu, nvswitch))
	w.same("plugin back", held, w.plugged("by-plugin", 1))
	c.remove("by-claim")
	w.mode("null")
	w.without(draDaemonSet)
	w.ready()
	w.same("driver gone", held, w.plugged("by-plugin", 1))

	w.mode(`"dra"`)
	w.refused(draDaemonSet, w.pluginReady())
	w.killAll(daemonSet, draDaemonSet)
	for _, resource := range []string{gpu, nvswitch} {
		winner := w.winner(resource)
		w.await(resource+" from "+winner, func(ctx context.Context) error {
			return w.offered(ctx, winner == daemonSet, resource)
		})
	}
	c.must(watch.end())
}

// everywhere takes out of the plugin's DaemonSet what keeps it off the driver's nodes, until the part of
// the test ends.
func (c *cluster) everywhere() {
	c.t.Helper()
	patch := `[{"op":"remove","path":"/spec/template/spec/affinity"}]`
	sets := c.Client().AppsV1().DaemonSets(system)
	_, err := sets.Patch(c.ctx, daemonSet, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	c.must(err)
	c.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		(&cluster{ControlPlane: c.ControlPlane, t: c.t, ctx: ctx}).apply(manifests)
	})
}

// refused waits until a DaemonSet's pod on the node says that another pod has what it would offer. It
// runs then, and is not ready.
func (w *worker) refused(daemonSet string, holder *v1.Pod) {
	w.t.Helper()
	var pod *v1.Pod
	w.await(daemonSet+" to run, and not to be ready", func(ctx context.Context) error {
		pods, err := w.agents(ctx, daemonSet)
		if err != nil {
			return err
		}
		if len(pods) != 1 {
			return fmt.Errorf("there are %d pods", len(pods))
		}
		pod = &pods[0]
		if s := peer.Container(pod); s.Started == nil || !*s.Started || isReady(pod) {
			return fmt.Errorf("%s is %+v", pod.Name, s)
		}
		return nil
	})
	for _, resource := range []string{gpu, nvswitch} {
		w.says(pod, heldElsewhere, `"resource":"`+resource+`"`, "held by", holder.Name)
	}
	if daemonSet == draDaemonSet {
		w.tells("DevicesNotOffered", heldElsewhere)
	}
	now, err := w.Client().CoreV1().Pods(system).Get(w.ctx, pod.Name, metav1.GetOptions{})
	w.must(err)
	if s := peer.Container(now); isReady(now) || s.RestartCount != 0 || s.State.Running == nil {
		w.t.Errorf("%s is %+v", pod.Name, s)
	}
}

// tells waits for an event at the node that has a finding.
func (w *worker) tells(reason, id string) {
	w.t.Helper()
	w.await("an event at the node", func(ctx context.Context) error {
		list, err := w.Client().CoreV1().Events("").List(ctx, metav1.ListOptions{
			FieldSelector: "reason=" + reason + ",involvedObject.name=" + w.Name(),
		})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if strings.Contains(list.Items[i].Message, id) {
				return nil
			}
		}
		return fmt.Errorf("there are %d", len(list.Items))
	})
}

// winner waits until one of the two agents says that the other has a resource, and returns that one's
// DaemonSet.
func (w *worker) winner(resource string) (name string) {
	w.t.Helper()
	w.await("the loser of "+resource, func(ctx context.Context) error {
		for loser, winner := range map[string]string{daemonSet: draDaemonSet, draDaemonSet: daemonSet} {
			lines, err := w.logNow(ctx, w.agent(loser))
			if err != nil {
				return err
			}
			if name = winner; said(lines, heldElsewhere, `"resource":"`+resource+`"`, "held by "+winner) {
				return nil
			}
		}
		return errors.New("neither says so")
	})
	w.t.Logf("%s is offered by %s", resource, name)
	return name
}

// offered complains unless resources are offered by the plugin alone, or by the driver alone.
func (w *worker) offered(ctx context.Context, plugin bool, resources ...string) error {
	var errs []error
	for _, resource := range resources {
		kind, all := "gpu", w.gpus()
		if resource == nvswitch {
			kind, all = "nvswitch", w.switches()
		}
		allocatable, inSlices := len(all), 0
		if !plugin {
			allocatable, inSlices = 0, len(all)
		}
		errs = append(errs, w.offers(ctx, resource, allocatable))
		published, err := w.published(ctx)
		errs = append(errs, err)
		count := 0
		for _, id := range all {
			if _, there := published[deviceName(kind, id)]; there {
				count++
			}
		}
		if count != inSlices {
			errs = append(errs, fmt.Errorf("%d of %s are published, want %d", count, resource, inSlices))
		}
	}
	return errors.Join(errs...)
}

// killAll kills the containers of DaemonSets on the node at once, and waits for their next lives.
func (w *worker) killAll(daemonSets ...string) {
	w.t.Helper()
	before := map[string]string{}
	var kills sync.WaitGroup
	errs := make(chan error, len(daemonSets))
	for _, name := range daemonSets {
		before[name] = peer.Container(w.agent(name)).ContainerID
	}
	for _, id := range before {
		kills.Go(func() { errs <- w.Containerd().KillTask(w.ctx, id) })
	}
	kills.Wait()
	for range daemonSets {
		w.must(<-errs)
	}
	for _, name := range daemonSets {
		w.await("the next life of "+name, func(context.Context) error {
			if s := peer.Container(w.agent(name)); s.ContainerID == before[name] || s.State.Running == nil {
				return fmt.Errorf("it is %+v", s)
			}
			return nil
		})
	}
}
