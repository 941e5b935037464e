//go:build node

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// watch looks who has which device until it is ended.
type watch struct {
	stop context.CancelFunc
	done chan error
	seen int // answers with a device in them
}

// end ends the watch. That two pods had a device at one time is an error, and so is that nobody was
// seen to have any.
func (a *watch) end() error {
	a.stop()
	err := <-a.done
	if err == nil && a.seen == 0 {
		err = errors.New("watch who has which device: nobody had any: nothing is shown")
	}
	return err
}

// watchHolders looks ten times a second who has which device to kubelet, by whichever mechanism.
func (w *worker) watchHolders() *watch {
	ctx, cancel := context.WithCancel(w.ctx)
	a := &watch{stop: cancel, done: make(chan error, 1)}
	w.t.Cleanup(cancel)
	names := w.hardware()
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			holders, err := w.holders(ctx, names)
			switch {
			case err != nil && !errors.Is(err, errTwice): // kubelet may be away
			case err != nil:
				a.done <- err
				return
			case len(holders) > 0:
				a.seen++
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				a.done <- nil
				return
			}
		}
	}()
	return a
}

// errTwice is a device that two pods have.
var errTwice = errors.New("two pods have one device")

// holders are the pods that have a device to kubelet, by its address. The names are those of the
// devices in claims.
func (w *worker) holders(ctx context.Context, names map[string]string) (map[string]string, error) {
	all := map[string]string{}
	take := func(id, pod string) error {
		if other := all[id]; other != "" && other != pod {
			return fmt.Errorf("%s: %w: %s and %s", id, errTwice, other, pod)
		}
		all[id] = pod
		return nil
	}
	err := w.PodResources(func(client podresources.PodResourcesListerClient) error {
		list, err := client.List(ctx, &podresources.ListPodResourcesRequest{})
		for _, p := range list.GetPodResources() {
			for _, c := range p.GetContainers() {
				for _, d := range c.GetDevices() {
					for _, id := range d.GetDeviceIds() {
						err = errors.Join(err, take(id, p.GetName()))
					}
				}
				for _, d := range c.GetDynamicResources() {
					for _, r := range d.GetClaimResources() {
						err = errors.Join(err, take(cmp.Or(names[r.GetDeviceName()], r.GetDeviceName()), p.GetName()))
					}
				}
			}
		}
		return err
	})
	return all, err
}
